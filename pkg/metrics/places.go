package metrics

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Absence says what it means that a tree does not have a number.
type Absence int

const (
	// Nothing was counted: it is 0.
	Nothing Absence = iota
	// Never: it is a time or a cost of what never came, as bad as can be.
	Never
	// Unknown: nobody recorded it, or nothing of the kind exists.
	Unknown
)

// Place is where a tree can have a number. The keys of groups and the numbers of
// replicas are *: cls[*].ttft.p99. Any names stand below anomalies and reasons.
type Place struct {
	Path    string
	Absence Absence
	// Higher is better; of all else lower is, or neither.
	Higher bool
}

// Places returns all places, in the order of the tree.
func Places() []Place { return slices.Clone(places) }

var places = func() (all []Place) {
	var visit func(t reflect.Type, path string, absence Absence)
	visit = func(t reflect.Type, path string, absence Absence) {
		switch t.Kind() {
		case reflect.Pointer:
			visit(t.Elem(), path, absence)
		case reflect.Struct:
			for i := range t.NumField() {
				f := t.Field(i)
				at := path
				if !f.Anonymous {
					at = join(path, name(f))
				}
				visit(f.Type, at, absenceOf(at, absence))
			}
		case reflect.Map:
			if t.Elem().Kind() == reflect.Pointer {
				visit(t.Elem(), path+"[*]", Nothing)
			} else {
				all = append(all, Place{Path: path + ".*", Absence: Nothing})
			}
		case reflect.Slice:
			if t == reflect.TypeFor[[]Replica]() {
				visit(t.Elem(), path+"[*]", Unknown)
			}
		case reflect.Float64, reflect.Int64:
			if (strings.HasSuffix(path, ".count") || strings.HasSuffix(path, ".coverage")) && absence == Never {
				absence = Nothing
			}
			all = append(all, Place{path, absence, higherIsBetter(last(path))})
		}
	}
	visit(reflect.TypeFor[Raw](), "", Nothing)
	return all
}()

// absenceOf is what absence means at path, which is absent as whole branches are.
// What depends on what requests did is Nothing or Never; what depends on what was
// recorded or promised is Unknown.
func absenceOf(path string, branch Absence) Absence {
	switch last(path) {
	case "ttft", "tpot", "itl", "e2e", "queue", "critical_path", "tool_wait", "tail_blowup", "preemption_rate", "per_million_tokens":
		return Never
	case "session", "regret", "cost", "replica", "shadow", "load", "goodput", "util_mean", "util_max", "from_us", "until_us", "attainment", "fan_out_utilization", "steps", "iterations":
		return Unknown
	}
	return branch
}

// last is the last name of a path.
func last(path string) string { return path[strings.LastIndexAny("."+path, ".]"):] }

// higherIsBetter reports whether it is of what a path ends with: of what was served, and
// of shares of what was wanted.
func higherIsBetter(name string) bool {
	switch name {
	case "admitted", "completed", "admission_rate", "count", "coverage", "rps", "output_tok_s", "total_tok_s", "ratio", "met",
		"prefix_hit_ratio", "cached_tokens", "jain", "attainment", "fan_out_utilization":
		return true
	}
	return false
}

// index is a key or a number in a path.
var index = regexp.MustCompile(`\[("(\\.|[^"\\])*"|\d+)\]`)

// General is the path with * in the place of keys and of the numbers of replicas.
func General(path string) string { return index.ReplaceAllString(path, "[*]") }

// Keys are the keys in the path, with their brackets.
func Keys(path string) []string { return index.FindAllString(path, -1) }

// PlaceOf returns the place that the path is at. ok is false if there is none.
func PlaceOf(path string) (p Place, ok bool) {
	general := General(path)
	for _, counts := range []string{"anomalies.", "reasons."} {
		if strings.HasPrefix(general, counts) {
			general = counts + "*"
		}
	}
	i := slices.IndexFunc(places, func(p Place) bool { return p.Path == general })
	if i < 0 {
		return Place{}, false
	}
	return places[i], true
}

package metrics

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Missing defines the meaning of a number that a tree does not have.
type Missing int

const (
	// MissingIsZero: nothing was counted.
	MissingIsZero Missing = iota
	// MissingIsWorst: it is a time or a cost of something that never happened, so it is
	// as bad as possible.
	MissingIsWorst
	// MissingIsUnknown: it was not recorded, or nothing of the kind exists.
	MissingIsUnknown
)

// PathInfo describes a path at which a tree can have a number. The keys of groups and the
// indices of replicas are *, as in cls[*].ttft.p99. Any name may follow anomalies and
// reasons.
type PathInfo struct {
	Path    string
	Missing Missing
	// HigherIsBetter is false if lower is better or neither is.
	HigherIsBetter bool
}

// Paths returns all paths in the order of the tree.
func Paths() []PathInfo { return slices.Clone(paths()) }

var paths = sync.OnceValue(func() (all []PathInfo) {
	var visit func(t reflect.Type, path string, missing Missing)
	visit = func(t reflect.Type, path string, missing Missing) {
		switch t.Kind() {
		case reflect.Pointer:
			visit(t.Elem(), path, missing)
		case reflect.Struct:
			for _, f := range jsonFields(t) {
				at := joinPath(path, f.name)
				visit(t.FieldByIndex(f.index).Type, at, missingAt(at, missing))
			}
		case reflect.Map:
			if t.Elem().Kind() == reflect.Pointer {
				visit(t.Elem(), path+"[*]", MissingIsZero)
			} else {
				all = append(all, PathInfo{Path: path + ".*", Missing: MissingIsZero})
			}
		case reflect.Slice:
			if t == reflect.TypeFor[[]Replica]() {
				visit(t.Elem(), path+"[*]", MissingIsUnknown)
			}
		case reflect.Float64, reflect.Int64:
			if (strings.HasSuffix(path, ".count") || strings.HasSuffix(path, ".coverage")) &&
				missing == MissingIsWorst {
				missing = MissingIsZero
			}
			all = append(all, PathInfo{path, missing, higherIsBetter(lastName(path))})
		}
	}
	visit(reflect.TypeFor[Raw](), "", MissingIsZero)
	return all
})

// missingAt returns the meaning of a missing value at path, given that of its parent.
// What depends on the requests is MissingIsZero or MissingIsWorst; what depends on the
// recording or on targets is MissingIsUnknown.
func missingAt(path string, branch Missing) Missing {
	switch lastName(path) {
	case "ttft", "tpot", "itl", "e2e", "queue", "critical_path", "tool_wait", "tail_blowup", "preemption_rate",
		"per_million_tokens", "per_million_tokens_within_slo", "total_per_million_tokens_within_slo",
		"j_per_output_token":
		return MissingIsWorst
	case "sessions", "regret", "cost", "energy", "replicas", "shadow", "load", "bound", "goodput", "util_mean",
		"util_max",
		"tiers", "spec_decode", "lora", "structured_output", "encoder", "dp", "pipeline", "pd", "encode_pool",
		"from_us", "until_us", "attainment", "fan_out_utilization", "steps", "iterations":
		return MissingIsUnknown
	}
	return branch
}

// lastName returns the last name of a path.
func lastName(path string) string { return path[strings.LastIndexAny("."+path, ".]"):] }

// higherIsBetter reports whether a higher value is better, given the last name of a path.
func higherIsBetter(name string) bool {
	switch name {
	case "admitted", "completed", "admission_rate", "count", "coverage", "rps", "output_tok_s", "total_tok_s", "ratio",
		"met", "prefix_hit_ratio", "hit_tokens", "hit_ratio", "cached_tokens", "jain", "attainment",
		"fan_out_utilization", "spearman_ttft", "spearman_e2e", "goodput_ratio", "efficiency", "availability",
		"accepted_tokens", "acceptance_rate", "mean_acceptance_length", "cache_hits", "cache_hit_ratio", "prefix_hits":
		return true
	}
	return false
}

// bracketed matches a key or a number in a path.
var bracketed = regexp.MustCompile(`\[("(\\.|[^"\\])*"|\d+)\]`)

// WildcardPath returns the path with * instead of keys and replica indices.
func WildcardPath(path string) string { return bracketed.ReplaceAllString(path, "[*]") }

// PathKeys returns the keys in the path, with their brackets.
func PathKeys(path string) []string { return bracketed.FindAllString(path, -1) }

// LookupPath describes the path. ok is false if no tree has it.
func LookupPath(path string) (p PathInfo, ok bool) {
	general := WildcardPath(path)
	for _, counts := range []string{"anomalies.", "reasons."} {
		if strings.HasPrefix(general, counts) {
			general = counts + "*"
		}
	}
	all := paths()
	i := slices.IndexFunc(all, func(p PathInfo) bool { return p.Path == general })
	if i < 0 {
		return PathInfo{}, false
	}
	return all[i], true
}

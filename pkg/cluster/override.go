package cluster

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"blis/pkg/policy"
	"blis/pkg/strictyaml"
)

// override is one value that takes the place of the files' own.
type override struct {
	strictyaml.Setting
	// path is the full one, in the parameters' own names.
	path string
}

// overridesOf reads what calls give, "path=value" or "@file", in the order in which
// it is to be applied.
func overridesOf(sets []string) ([]override, error) {
	var all []override
	for _, s := range sets {
		var more []strictyaml.Setting
		if name, isFile := strings.CutPrefix(s, "@"); isFile {
			var err error
			if more, err = strictyaml.ReadSets(name); err != nil {
				return nil, err
			}
		} else {
			path, value, _ := strings.Cut(s, "=")
			more = []strictyaml.Setting{{Path: path, Value: value}}
		}
		for _, m := range more {
			all = append(all, override{m, fullPath(m.Path)})
		}
	}
	return typesFirst(all), nil
}

// fullPath completes a path that begins with a stage of the control plane, and takes
// the own name of a parameter for another one.
func fullPath(path string) string {
	switch stage, _, _ := strings.Cut(path, "."); stage {
	case "admission", "priority", "routing", "scheduler", "preemption", "autoscale":
		path = "policies." + path
	}
	if of, param, ok := strings.Cut(path, ".params."); ok && strings.HasPrefix(of, "policies.") {
		path = of + ".params." + policy.CanonicalParam(param)
	}
	return path
}

// typePath is the path of the type of a policy, which may be part of another one.
var typePath = regexp.MustCompile(`^policies\.(\w+(?:\.of\.\d+|\.use|\.root(?:\.then|\.else)*\.use)*)\.type$`)

// typesFirst moves the type of a policy before what else is said of that policy:
// parameters are those of the type, whichever is named first.
func typesFirst(all []override) []override {
	var sorted []override
	for _, o := range all {
		at := len(sorted)
		if typePath.MatchString(o.path) {
			of := strings.TrimSuffix(o.path, ".type")
			at = 0
			for i, e := range sorted { // but behind what gives all of it, or of what it is in
				if under(of, strings.TrimSuffix(e.path, ".type")) {
					at = i + 1
				}
			}
		}
		sorted = append(sorted, o)
		copy(sorted[at+1:], sorted[at:])
		sorted[at] = o
	}
	return sorted
}

// apply changes c. A policy whose type is changed loses what was said of it: that was
// the other one's.
func (c *Config) apply(all []override) error {
	c.Policies.Complete()
	for i := range all {
		o := &all[i]
		var at []string
		before := ""
		if m := typePath.FindStringSubmatch(o.path); m != nil {
			at = strings.Split(m[1], ".")
			if s := c.Policies.Lookup(at); s != nil {
				before = s.Type
			}
		}
		if err := strictyaml.Set(c, o.path, o.Value); err != nil {
			msg := err.Error()
			if o.File != "" {
				msg = o.Path + ": " + msg
			}
			return o.fault(msg)
		}
		if s := c.Policies.Lookup(at); s != nil && before != "" && s.Type != before {
			*s = policy.Spec{Type: s.Type}
		}
		c.Policies.Complete()
	}
	return nil
}

// fault is an error in what o says: in its file or on the command line.
func (o *override) fault(msg string) error {
	if o.File != "" {
		return &strictyaml.Error{File: o.File, Line: o.Line, Col: o.Col, Msg: msg}
	}
	return &strictyaml.Error{File: fmt.Sprintf("--set %s=%s", o.Path, o.Value), Msg: msg}
}

// in is the path of o with deployments by their place.
func (o *override) in(c *Config) string {
	rest, ok := strings.CutPrefix(o.path, "deployments.")
	if !ok {
		return o.path
	}
	id, rest, deeper := strings.Cut(rest, ".")
	for i := range c.Deployments {
		if c.Deployments[i].ID == id {
			id = strconv.Itoa(i)
			break
		}
	}
	if deeper {
		id += "." + rest
	}
	return "deployments." + id
}

// under reports whether path is at or below other.
func under(path, other string) bool { return path == other || strings.HasPrefix(path, other+".") }

// dotted is a path with [i] as .i.
func dotted(path string) string { return strings.NewReplacer("[", ".", "]", "").Replace(path) }

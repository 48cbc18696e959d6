package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"blis/pkg/policy"
	"blis/pkg/strictyaml"
)

// override is one value that overrides the file's.
type override struct {
	strictyaml.Setting
	// path is the full path, with the own names of parameters.
	path string
}

// overridesOf parses overrides as callers write them, "path=value" or "@file", and
// returns them in the order in which they are applied.
func overridesOf(sets []string) ([]override, error) {
	var all []override
	for _, s := range sets {
		var more []strictyaml.Setting
		if name, isFile := strings.CutPrefix(s, "@"); isFile {
			var err error
			if more, err = strictyaml.ReadSettings(name); err != nil {
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

// fullPath completes a path that begins with a stage of the control plane, and
// replaces the alias of a parameter by its own name.
func fullPath(path string) string {
	switch stage, _, _ := strings.Cut(path, "."); stage {
	case "admission", "priority", "routing", "scheduler", "preemption", "autoscale":
		path = "policies." + path
	}
	if of, param, ok := strings.Cut(path, ".params."); ok && strings.HasPrefix(of, "policies.") {
		path = of + ".params." + policy.ParamName(param)
	}
	return path
}

// policyPath matches the path of the type or of a parameter of a policy, which may be
// part of another policy.
var policyPath = regexp.MustCompile(
	`^(policies\.\w+(?:\.of\.\d+|\.use|\.root(?:\.then|\.else)*\.use)*)\.(type$|params\.)`)

// splitPolicy returns the path of the policy of which path is the type or a
// parameter, and whether it is the type; "" for other paths.
func splitPolicy(path string) (of string, isType bool) {
	m := policyPath.FindStringSubmatch(path)
	if m == nil {
		return "", false
	}
	return m[1], m[2] == "type"
}

// typesFirst moves the type of a policy before its other overrides: parameters are
// those of the type in any order. Overrides of the whole policy, or of one that
// contains it, stay before the type.
func typesFirst(all []override) (sorted []override) {
	for _, o := range all {
		at := len(sorted)
		if of, isType := splitPolicy(o.path); isType {
			at = 0
			for i, e := range sorted {
				if under(of, strings.TrimSuffix(e.path, ".type")) {
					at = i + 1
				}
			}
		}
		sorted = slices.Insert(sorted, at, o)
	}
	return sorted
}

// under reports whether path is at or below other.
func under(path, other string) bool { return path == other || strings.HasPrefix(path, other+".") }

// override applies overrides to the document.
func (s *source) override(sets []string) error {
	all, err := overridesOf(sets)
	if err != nil {
		return err
	}
	for i := range all {
		o := &all[i]
		if err := s.set(o); err != nil {
			if o.File != "" {
				err = fmt.Errorf("%s: %w", o.Path, err)
			}
			return o.Errorf("%v", err)
		}
	}
	return nil
}

// set applies one override. A policy of a new type loses its other settings, which
// were those of the old type.
func (s *source) set(o *override) error {
	path, isType := splitPolicy(o.path)
	if path == "" {
		return s.doc.Set(new(Config), o.path, o.Value, &o.Setting)
	}
	_, before, err := s.policy(path)
	if err != nil {
		return err
	}
	if !isType {
		if err := s.setDefaultParams(path, &o.Setting); err != nil {
			return err
		}
	}
	if err := s.doc.Set(new(Config), o.path, o.Value, &o.Setting); err != nil || !isType {
		return err
	}
	_, after, err := s.policy(path)
	if err != nil || before == nil || before.Type == "" || before.Type == after.Type {
		return err
	}
	return s.doc.Set(new(Config), path, fmt.Sprintf("{type: %q}", after.Type), &o.Setting)
}

// setDefaultParams adds to the document the parameters that the policy at path does
// not set, under their own names, so that an override of one keeps the others.
func (s *source) setDefaultParams(path string, by *strictyaml.Setting) error {
	file, full, err := s.policy(path)
	if err != nil || full == nil {
		return err
	}
	for name := range file.Params {
		if _, ok := full.Params[name]; !ok {
			s.doc.Delete(path + ".params." + name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(full.Params)) {
		at := path + ".params." + name
		if s.doc.Has(at) {
			continue
		}
		value, err := json.Marshal(full.Params[name])
		if err == nil {
			err = s.doc.Set(new(Config), at, string(value), by)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// policy returns the policy at path in the document and with its defaults, nil if
// there is none.
func (s *source) policy(path string) (file, full *policy.Spec, err error) {
	var bundle, complete policy.Bundle
	for _, b := range []*policy.Bundle{&bundle, &complete} {
		if err := s.doc.DecodeAt("policies", b); err != nil {
			return nil, nil, err
		}
	}
	complete.Complete()
	parts := strings.Split(path, ".")[1:]
	return bundle.At(parts), complete.At(parts), nil
}

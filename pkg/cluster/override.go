package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

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
	settings, err := strictyaml.ParseSettings(sets)
	if err != nil {
		return nil, err
	}
	var all []override
	for _, m := range settings {
		path := fullPath(m.Path)
		if stage, ok := strings.CutPrefix(path, "policies."); ok && isStage(stage) && namesType(m.Value) {
			path += ".type"
		}
		all = append(all, override{m, path})
	}
	return typesFirst(all), nil
}

// fullPath completes a path that begins with a stage of the control plane, and
// replaces the alias of a parameter by its own name.
func fullPath(path string) string {
	if stage, _, _ := strings.Cut(path, "."); isStage(stage) {
		path = "policies." + path
	}
	if of, param, ok := strings.Cut(path, ".params."); ok && strings.HasPrefix(of, "policies.") {
		path = of + ".params." + policy.CanonicalParam(param)
	}
	return path
}

// isStage reports whether a name is that of a stage of the control plane that has a policy.
func isStage(name string) bool { return name == "autoscale" || new(policy.Bundle).Stage(name) != nil }

// typeName matches the type of a policy, which may stand for the policy with its default parameters.
var typeName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^"?[a-z]+(?:[-_][a-z0-9]+)*"?$`)
})

// namesType reports whether a value is the type of a policy.
func namesType(value string) bool { return value != "null" && typeName().MatchString(value) }

// policyPath matches the path of the type or of a parameter of a policy, which may be
// part of another policy.
var policyPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(policies\.\w+(?:\.of\.\d+|\.use|\.root(?:\.then|\.else)*\.use)*)\.(type$|params\.)`)
})

// splitPolicy returns the path of a policy if path is its type or one of its
// parameters, else "", and whether path is the type.
func splitPolicy(path string) (of string, isType bool) {
	m := policyPath().FindStringSubmatch(path)
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
	if path == autoscalePath {
		return s.setAutoscaler(o, isType)
	}
	before, err := s.policy(path)
	if err == nil && path != "" && !isType {
		err = s.setDefaultParams(path, before.Params, &o.Setting)
	}
	if err == nil {
		err = s.doc.Set(new(Config), o.path, o.Value, &o.Setting)
	}
	if err != nil || before.Type == "" || !isType {
		return err
	}
	after, err := s.policy(path)
	if err == nil && after.Type != before.Type {
		err = s.doc.Set(new(Config), path, fmt.Sprintf("{type: %q}", after.Type), &o.Setting)
	}
	return err
}

// setAutoscaler sets the type or a parameter of the auto-scaler. A new type keeps the settings that all types have.
func (s *source) setAutoscaler(o *override, isType bool) error {
	var before, after policy.Autoscale
	err := s.doc.DecodeAt(autoscalePath, &before)
	if err == nil && !isType {
		err = s.addParams(autoscalePath, before.Params, &o.Setting)
	}
	if err == nil {
		err = s.doc.Set(new(Config), o.path, o.Value, &o.Setting)
	}
	if err != nil || !isType {
		return err
	}
	if err := s.doc.DecodeAt(autoscalePath, &after); err != nil || after.Type == before.Type {
		return err
	}
	for _, field := range []string{"params", "desired", "program", "root", "state"} {
		s.doc.Delete(autoscalePath + "." + field)
	}
	return nil
}

// setDefaultParams adds to the document the parameters that the policy at path does not set, so
// that an override of one keeps the others. The parameters' own names replace aliases.
func (s *source) setDefaultParams(path string, all map[string]any, by *strictyaml.Setting) error {
	var file policy.Spec
	if err := s.doc.DecodeAt(path, &file); err != nil {
		return err
	}
	for name := range file.Params {
		if _, ok := all[name]; !ok {
			s.doc.Delete(path + ".params." + name)
		}
	}
	return s.addParams(path, all, by)
}

// addParams adds to the document those of parameters that the policy at path does not set.
func (s *source) addParams(path string, all map[string]any, by *strictyaml.Setting) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		at := path + ".params." + name
		if s.doc.Has(at) {
			continue
		}
		text, err := json.Marshal(all[name])
		if err == nil {
			err = s.doc.Set(new(Config), at, string(text), by)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// policy returns the policy at path with its defaults, without a type if there is none.
func (s *source) policy(path string) (policy.Spec, error) {
	var bundle policy.Bundle
	stage, _, nested := strings.Cut(strings.TrimPrefix(path, "policies."), ".")
	spec := bundle.Stage(stage)
	if spec == nil {
		return policy.Spec{}, nil
	}
	err := s.doc.DecodeAt(path, spec)
	if err == nil && (spec.Type != "" || !nested) {
		bundle.Complete()
	}
	return *spec, err
}

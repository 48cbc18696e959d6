package cluster

import (
	"slices"
	"strings"

	"blis/pkg/policy"
	"blis/pkg/strictyaml"
)

// said knows who says what in a configuration: the cluster's file, a bundle of
// policies (nil if there is none), and overrides.
type said struct {
	config       *Config
	file, bundle *strictyaml.Doc
	dir          string // of the file
	sets         []override
	given        []string // sets as the call has them
	// forgotten are paths of what the file has and was derived of something else.
	forgotten []string
}

// fault is an error about the value at path, in the last override that says it or
// part of it, or else in the file.
func (s *said) fault(path, format string, args ...any) error {
	err := s.file.Errorf(path, format, args...).(*strictyaml.Error)
	if o := s.by(path); o != nil {
		return o.fault(strings.Replace(err.Msg, " is not in the file", "", 1))
	}
	if len(s.given) > 0 {
		err.Msg += " (after --set " + strings.Join(s.given, " --set ") + ")"
	}
	return err
}

// by returns the last override that says what is at path, or part of it, nil if none
// does.
func (s *said) by(path string) *override {
	path = dotted(path)
	for i := len(s.sets) - 1; i >= 0; i-- {
		if at := s.sets[i].in(s.config); under(path, at) || under(at, path) {
			return &s.sets[i]
		}
	}
	return nil
}

// policyFault is an error of policies, in what says them.
func (s *said) policyFault(fault *policy.Error) error {
	path := "policies." + fault.Path
	if o := s.by(path); o != nil {
		return o.fault(fault.Error())
	}
	doc := s.file
	if s.bundle != nil {
		doc, path = s.bundle, fault.Path
	}
	if fault.Line > 0 {
		return doc.TextErrorf(path, fault.Line, fault.Col, "%s", fault.Msg)
	}
	return doc.Errorf(path, "%s", fault.Msg)
}

// stated reports whether the file or an override gives a value to path. An override
// of more than that takes the place of what the file and earlier ones say.
func (s *said) stated(path string) bool {
	has := s.file.Has(path)
	path = dotted(path)
	if slices.Contains(s.forgotten, path) {
		has = false
	}
	for i := range s.sets {
		at := s.sets[i].in(s.config)
		if at == path {
			has = true
		} else if deeper, ok := strings.CutPrefix(path, at+"."); ok {
			part, err := strictyaml.Parse("value", []byte(s.sets[i].Value))
			has = err == nil && part.Has(deeper)
		}
	}
	return has
}

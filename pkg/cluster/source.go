package cluster

import (
	"strings"

	"blis/pkg/policy"
	"blis/pkg/strictyaml"
)

// source is the text of a configuration: the cluster file with the overrides applied.
type source struct {
	doc *strictyaml.Doc
	// dir is the folder of the file.
	dir string
	// sets are the overrides as the caller wrote them.
	sets []string
}

// decode decodes the configuration over the defaults.
func (s *source) decode() (*Config, error) {
	c := &Config{ControlPlane: defaultControlPlane()}
	return c, s.doc.Decode(c)
}

// errorf returns an error about the value at path, with the position of the override
// or of the file that sets it.
func (s *source) errorf(path, format string, args ...any) error {
	err := s.doc.Errorf(path, format, args...).(*strictyaml.Error)
	if len(s.sets) > 0 && s.doc.SetBy(path) == nil {
		err.Msg += " (after --set " + strings.Join(s.sets, " --set ") + ")"
	}
	return err
}

// policyError returns err with the position of the override or of the file that sets
// the policy.
func (s *source) policyError(err *policy.Error) error {
	path := "policies." + err.Path
	if set := s.doc.SetBy(path); set != nil {
		return set.Errorf("%v", err)
	}
	if err.Line > 0 {
		return s.doc.TextErrorf(path, err.Line, err.Col, "%s", err.Msg)
	}
	return s.doc.Errorf(path, "%s", err.Msg)
}

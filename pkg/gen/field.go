package gen

import (
	"errors"
	"fmt"

	"blis/pkg/dist"
	"blis/pkg/strictyaml"
)

// field is a part of a spec under validation. All fields of a spec share its first error.
type field struct {
	path string // "" is the spec itself
	*validation
}

// validation keeps the first error of a spec.
type validation struct {
	errorf strictyaml.Errorf
	err    error
}

// newField returns the field of the whole spec.
func newField(errorf strictyaml.Errorf) field { return field{validation: &validation{errorf: errorf}} }

// spec returns the field of the whole spec.
func (f field) spec() field { return field{validation: f.validation} }

// at returns the field called name in f; "" is f itself.
func (f field) at(name string) field {
	switch {
	case f.path == "":
		f.path = name
	case name != "":
		f.path += "." + name
	}
	return f
}

// element returns the element of f, a list, at index i.
func (f field) element(i int) field {
	f.path = fmt.Sprintf("%s[%d]", f.path, i)
	return f
}

// fail records an error about the field called name in f.
func (f field) fail(name, format string, args ...any) {
	if f.err == nil {
		f.err = f.errorf(f.at(name).path, format, args...)
	}
}

// keep records err, if there is no earlier error.
func (v *validation) keep(err error) {
	if v.err == nil {
		v.err = err
	}
}

// keepParam records an error of package dist about f; nil is none.
func (f field) keepParam(err error) {
	if param, ok := errors.AsType[*dist.ParamError](err); ok {
		f.fail(param.Path, "%s", param.Msg)
		return
	}
	f.keep(err)
}

// between records an error if the value of the field called name is not between low and high.
func between[N int64 | float64](f field, name string, value, low, high N) {
	f.keep(strictyaml.Between[N](f.errorf, f.at(name).path)("", value, low, high))
}

// length returns the distribution of lengths at the field called name; nil if it is nil or invalid.
func (f field) length(name string, s *dist.Spec) *dist.Length {
	return f.distribution(name, s, dist.Spec.Length)
}

// duration is length for durations.
func (f field) duration(name string, s *dist.Spec) *dist.Length {
	return f.distribution(name, s, dist.Spec.Duration)
}

func (f field) distribution(name string, s *dist.Spec, build func(dist.Spec) (*dist.Length, error)) *dist.Length {
	if s == nil {
		return nil
	}
	l, err := build(*s)
	f.at(name).keepParam(err)
	return l
}

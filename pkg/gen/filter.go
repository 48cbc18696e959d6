package gen

import (
	"fmt"

	"blis/pkg/filter"
	"blis/pkg/record"
)

// Filter is a condition on requests. The zero Filter keeps all.
type Filter struct {
	text string
	keep func(*record.Request) (bool, error)
}

// UnmarshalText compiles a CEL expression.
func (f *Filter) UnmarshalText(text []byte) error {
	keep, err := filter.CompileRequest(string(text))
	if err != nil {
		return err
	}
	*f = Filter{string(text), keep}
	return nil
}

// keeps reports whether r meets the condition.
func (f *Filter) keeps(r *record.Request) (bool, error) {
	if f.keep == nil {
		return true, nil
	}
	keep, err := f.keep(r)
	if err != nil {
		return false, fmt.Errorf("--where: %s: %w", r.ID, err)
	}
	return keep, nil
}

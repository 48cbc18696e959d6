package policy

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/registry"
)

// Kind of a parameter's value.
type Kind string

// Kinds of parameters. A table has a number for each of some names.
const (
	Number Kind = "number"
	Choose Kind = "choice"
	Flag   Kind = "flag"
	Table  Kind = "table"
)

// Param describes a parameter of a policy.
type Param struct {
	Name, Doc string
	Kind      Kind
	Unit      string // of numbers, "" for a plain number
	// Min and Max bound a number, or the numbers of a table; both may be had. Whole
	// numbers have no fraction.
	Min, Max float64
	Whole    bool
	// Search is the range in which the best value is usually found.
	Search [2]float64
	// Default is a float64, string, bool or map[string]float64; Auto, which is
	// written auto, stands for a number that follows from what is observed.
	Default any
	Auto    bool
	// Choices are those of a choice; Keys says what the names of a table are.
	Choices []string
	Keys    string
}

const auto = "auto"

// policyKind is one row of a table of policies.
type policyKind[P any] struct {
	params []Param
	// pathological policies are bad on purpose, to try detectors on.
	pathological bool
	build        func(*builder, *Spec) P
	// composed policies take more than parameters and are not in themselves
	// something to search.
	composed bool
}

type table[P any] = registry.Table[policyKind[P]]

// Entry describes a policy or, of kind scorer, a term of the router weighted.
type Entry struct {
	Stage, Name, Doc string
	Pathological     bool
	Composed         bool
	Params           []Param
}

// Entries lists all policies there are, stage by stage.
func Entries() []Entry {
	all := slices.Concat(entries("admission", Admissions()), entries("priority", Priorities()), entries("routing", Routers()))
	for _, s := range Scorers {
		all = append(all, Entry{Stage: "scorer", Name: s.Name, Doc: s.Doc})
	}
	return slices.Concat(all, entries("scheduler", Schedulers()), entries("preemption", Preemptors()))
}

func entries[P any](stage string, t table[P]) (all []Entry) {
	for _, e := range t {
		all = append(all, Entry{stage, e.Name, e.Doc, e.Value.pathological, e.Value.composed, e.Value.params})
	}
	return all
}

// values are a policy's parameters, complete and checked.
type values map[string]any

func (v values) number(name string) float64           { return v[name].(float64) }
func (v values) choice(name string) string            { return v[name].(string) }
func (v values) flag(name string) bool                { return v[name].(bool) }
func (v values) table(name string) map[string]float64 { return v[name].(map[string]float64) }

// read returns the parameters that given says, the rest as by default. The
// error is about the parameter that it also returns, "" if about all of them.
func read(of string, params []Param, given map[string]any) (v values, at string, err error) {
	v = values{}
	names := []string{}
	for _, p := range params {
		names = append(names, p.Name)
		v[p.Name] = p.value()
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.Index(names, name)
		if i < 0 && len(names) == 0 {
			return nil, "", fmt.Errorf("%s has no parameters, not %q", of, name)
		}
		if i < 0 {
			return nil, "", registry.Unknown("parameter of "+of, name, names)
		}
		if v[name], err = params[i].read(given[name]); err != nil {
			return nil, name, err
		}
	}
	return v, "", nil
}

// value is the default as policies want it: auto is not a number.
func (p *Param) value() any {
	if p.Default == auto {
		return math.NaN()
	}
	return p.Default
}

// read checks a value that a file has.
func (p *Param) read(x any) (any, error) {
	switch p.Kind {
	case Number:
		if x == auto && p.Auto {
			return math.NaN(), nil
		}
		n, ok := number(x)
		if !ok || !(n >= p.Min && n <= p.Max) || p.Whole && n != math.Trunc(n) {
			return nil, fmt.Errorf("must be %s, is %s", p.Range(), quoted(x))
		}
		return n, nil
	case Choose:
		if s, ok := x.(string); ok && slices.Contains(p.Choices, s) {
			return s, nil
		}
		return nil, registry.Unknown("choice", fmt.Sprint(x), p.Choices)
	case Flag:
		if b, ok := x.(bool); ok {
			return b, nil
		}
		return nil, fmt.Errorf("must be true or false, is %s", quoted(x))
	}
	given, ok := x.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("must have a number for each %s, is %s", p.Keys, quoted(x))
	}
	t := map[string]float64{}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		n, ok := number(given[key])
		if !ok || !(n >= p.Min && n <= p.Max) {
			return nil, fmt.Errorf("%s must be %s, is %s", key, p.Range(), quoted(given[key]))
		}
		t[key] = n
	}
	return t, nil
}

// quoted is a value as errors show it: texts in quotes.
func quoted(x any) string {
	if s, ok := x.(string); ok {
		return strconv.Quote(s)
	}
	return fmt.Sprint(x)
}

// number is the number that a file's value is.
func number(x any) (float64, bool) {
	switch n := x.(type) {
	case float64:
		return n, true
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	}
	return 0, false
}

// Range says which numbers a parameter takes.
func (p *Param) Range() string {
	text := "a number"
	if p.Whole {
		text = "a whole number"
	}
	text += fmt.Sprintf(" between %g and %g", p.Min, p.Max)
	if p.Auto {
		text += ", or auto"
	}
	return text
}

// Text is the parameter in one line.
func (p *Param) Text() string {
	about := string(p.Kind)
	switch p.Kind {
	case Number:
		about = fmt.Sprintf("%g..%g %s", p.Min, p.Max, p.Unit)
		if p.Whole {
			about = "whole, " + about
		}
	case Choose:
		about = strings.Join(p.Choices, " | ")
	case Table:
		about = strings.TrimSpace("numbers by " + p.Keys + ", " + fmt.Sprintf("%g..%g %s", p.Min, p.Max, p.Unit))
	}
	return fmt.Sprintf("%s (%s; %s): %s", p.Name, strings.TrimSpace(about), inWords(p.Default), p.Doc)
}

// inWords is a default as files have it.
func inWords(x any) string {
	t, ok := x.(map[string]float64)
	if !ok {
		return fmt.Sprint(x)
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(t)) {
		parts = append(parts, fmt.Sprintf("%s: %g", key, t[key]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

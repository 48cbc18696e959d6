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

// Kind is the type of a parameter's value.
type Kind string

// The kinds of parameters. A table maps names to numbers.
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
	Unit      string // of numbers, "" for a number without a unit
	// Min and Max bound a number, or the numbers of a table, inclusively. If Whole, they must be integers.
	Min, Max float64
	Whole    bool
	// Search is the range in which the best value is usually found.
	Search [2]float64
	// Default is a float64, string, bool or map[string]float64. If Auto, the value auto selects a
	// number derived from observations.
	Default any
	Auto    bool
	// Choices are the values of a choice; Keys says what the names of a table are.
	Choices []string
	Keys    string
}

const auto = "auto"

// policyKind is the entry of a policy in a table.
type policyKind[P any] struct {
	params []Param
	// pathological policies are deliberately bad, for testing detectors.
	pathological bool
	build        func(*builder, *Spec) P
	// composed policies have more than parameters and cannot be searched by themselves.
	composed bool
	// passesTie: its parameter tie is that of the policy it uses.
	passesTie bool
}

type table[P any] = registry.Table[policyKind[P]]

// Entry describes a policy or, with stage scorer, a term of the weighted router, or, with StageLLMD, a
// plugin.
type Entry struct {
	Stage, Name, Doc string
	Pathological     bool
	Composed         bool
	Params           []Param
}

// StageLLMD is the stage of entries that are plugins of the router llm-d, StageDetector and
// StageUsageLimit those of entries that flow control uses.
const (
	StageLLMD       = "llm-d"
	StageDetector   = "detector"
	StageUsageLimit = "usage-limit"
)

// Entries returns all policies, stage by stage.
func Entries() []Entry {
	all := slices.Concat(entries("admission", admissions()), entries("priority", priorities()),
		entries("routing", routers()))
	for _, s := range Scorers {
		all = append(all, Entry{Stage: "scorer", Name: s.Name, Doc: s.Doc})
	}
	for _, p := range llmdPlugins() {
		doc := p.Value.kind + ": " + p.Doc
		all = append(all, Entry{Stage: StageLLMD, Name: p.Name, Doc: doc, Params: p.Value.params})
	}
	return slices.Concat(all, entries("scheduler", schedulers()), entries("preemption", preemptors()),
		entries("autoscale", autoscalers()),
		partEntries(StageDetector, detectors), partEntries(StageUsageLimit, usageLimits))
}

func partEntries[T any](stage string, t registry.Table[gatePart[T]]) (all []Entry) {
	for _, e := range t {
		all = append(all, Entry{Stage: stage, Name: e.Name, Doc: e.Doc, Params: e.Value.params})
	}
	return all
}

func entries[P any](stage string, t table[P]) (all []Entry) {
	for _, e := range t {
		all = append(all, Entry{stage, e.Name, e.Doc, e.Value.pathological, e.Value.composed, e.Value.params})
	}
	return all
}

// values are a policy's complete and checked parameters.
type values map[string]any

func (v values) number(name string) float64           { return v[name].(float64) }
func (v values) choice(name string) string            { return v[name].(string) }
func (v values) flag(name string) bool                { return v[name].(bool) }
func (v values) table(name string) map[string]float64 { return v[name].(map[string]float64) }

// readParams returns the given parameters, and defaults for the rest. An error comes with the name
// of its parameter, "" if it is about all of them.
func readParams(policy string, params []Param, given map[string]any) (v values, at string, err error) {
	v = values{}
	names := []string{}
	for _, p := range params {
		names = append(names, p.Name)
		v[p.Name] = p.defaultValue()
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.Index(names, name)
		if i < 0 && advice[name] != "" {
			return nil, "", fmt.Errorf("%s has no parameter %q: %s", policy, name, advice[name])
		}
		if i < 0 && len(names) == 0 {
			return nil, "", fmt.Errorf("%s has no parameters, but %q is given", policy, name)
		}
		if i < 0 {
			return nil, "", registry.Unknown("parameter of "+policy, name, names)
		}
		if v[name], err = params[i].parse(given[name]); err != nil {
			return nil, name, err
		}
	}
	return v, "", nil
}

// defaultValue is the default as policies take it: auto is NaN.
func (p *Param) defaultValue() any {
	if p.Default == auto {
		return math.NaN()
	}
	return p.Default
}

// parse checks a value from a file.
func (p *Param) parse(x any) (any, error) {
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
		if !ok || !(n >= p.Min && n <= p.Max) || p.Whole && n != math.Trunc(n) {
			return nil, fmt.Errorf("%s must be %s, is %s", key, p.Range(), quoted(given[key]))
		}
		t[key] = n
	}
	return t, nil
}

// quoted formats a value for errors: strings in quotes.
func quoted(x any) string {
	if s, ok := x.(string); ok {
		return strconv.Quote(s)
	}
	return fmt.Sprint(x)
}

// number converts a value from a file to a number.
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

// Range describes the numbers that a parameter takes.
func (p *Param) Range() string {
	text := "a number"
	if p.Whole {
		text = "an integer"
	}
	text += fmt.Sprintf(" between %g and %g", p.Min, p.Max)
	if p.Auto {
		text += ", or auto"
	}
	return text
}

// Text describes the parameter in one line.
func (p *Param) Text() string {
	about := string(p.Kind)
	switch p.Kind {
	case Number:
		about = fmt.Sprintf("%g..%g %s", p.Min, p.Max, p.Unit)
		if p.Whole {
			about = "integer, " + about
		}
	case Choose:
		about = strings.Join(p.Choices, " | ")
	case Table:
		about = strings.TrimSpace("numbers by " + p.Keys + ", " + fmt.Sprintf("%g..%g %s", p.Min, p.Max, p.Unit))
		if p.Whole {
			about = strings.Replace(about, "numbers", "integers", 1)
		}
	}
	return fmt.Sprintf("%s (%s; %s): %s", p.Name, strings.TrimSpace(about), formatDefault(p.Default), p.Doc)
}

// formatDefault formats a default as in files.
func formatDefault(x any) string {
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

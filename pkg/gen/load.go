package gen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"blis/pkg/limits"
	"blis/pkg/stream"
	"blis/pkg/strictyaml"
)

// loaded is a valid spec with derived data.
type loaded struct {
	// name is the source of text, for errors.
	name string
	text []byte
	// spec is the parsed text with --set, --seed, --requests and --rate applied.
	spec    *Spec
	clients []*clientSource
	classes []stream.SLOClass
}

// loadSpec reads and validates the spec that o names. An invalid spec is a *strictyaml.Error.
func loadSpec(in io.Reader, o Options) (*loaded, error) {
	l := &loaded{}
	var err error
	switch {
	case o.Spec == "-":
		l.name = inputName(in)
		l.text, err = limits.ReadAll(in, l.name, limits.Config)
	case o.Spec != "":
		l.name = o.Spec
		l.text, err = limits.ReadFile(o.Spec, limits.Config)
	default:
		l.name, l.text, err = o.Scenario.load()
	}
	if err != nil {
		return nil, err
	}
	doc, err := strictyaml.Parse(l.name, l.text)
	if err != nil {
		return nil, err
	}
	if err := override(doc, o.Set); err != nil {
		return nil, err
	}
	l.spec = &Spec{dir: filepath.Dir(o.Spec), allowPaths: o.AllowPaths}
	if err := doc.Decode(l.spec); err != nil {
		return nil, err
	}
	if o.Seed != nil {
		l.spec.Seed = *o.Seed
	}
	if o.Requests != 0 {
		l.spec.Requests = int64(o.Requests)
	}
	if o.Rate != 0 {
		if l.spec.AggregateRate == 0 {
			return nil, fmt.Errorf("%s: --rate replaces aggregate_rate, which this spec does not have", l.name)
		}
		l.spec.AggregateRate = float64(o.Rate)
	}
	if l.clients, err = l.spec.clients(doc.Errorf); err != nil {
		return nil, err
	}
	l.classes, err = l.spec.usedClasses(doc.Errorf)
	return l, err
}

// override applies overrides, "path=value" or "@file", to a spec.
func override(doc *strictyaml.Doc, sets []string) error {
	all, err := strictyaml.ParseSettings(sets)
	if err != nil {
		return err
	}
	for i := range all {
		s := &all[i]
		if err := doc.Set(new(Spec), s.Path, s.Value, s); err != nil {
			return s.Errorf("%v", err)
		}
	}
	return nil
}

// inputName is the name of in for errors.
func inputName(in io.Reader) string {
	if n, ok := in.(interface{ Name() string }); ok && n.Name() != "/dev/stdin" {
		return n.Name()
	}
	return "stdin"
}

// digest identifies the workload: the resolved spec, and the filter and the targets of --slo, if any.
func (l *loaded) digest(o *Options) string {
	if o.Where.text == "" && len(o.SLO) == 0 && o.TimeScale == 0 {
		return stream.Digest(l.spec)
	}
	return stream.Digest(struct {
		Spec      *Spec    `json:"spec"`
		Where     string   `json:"where"`
		SLO       []string `json:"slo,omitempty"`
		TimeScale Factor   `json:"time_scale,omitempty"`
	}{l.spec, o.Where.text, o.sloTexts(), o.TimeScale})
}

// warnings reports likely mistakes in the spec.
func (s *Spec) warnings() (warnings []string) {
	if w := s.fractionWarning(); w != "" {
		warnings = append(warnings, w)
	}
	for _, c := range s.Clients {
		if c.Agentic == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(c.Agentic.Tools)) {
			if !slices.ContainsFunc(c.Agentic.Steps, func(s AgenticStep) bool { return s.Tool == name }) {
				warnings = append(warnings, fmt.Sprintf("no step of client %q calls its tool %q", c.ID, name))
			}
		}
	}
	return warnings
}

// fractionWarning warns if the rate fractions do not add up to 1. The tolerance allows three thirds
// with four digits.
func (s *Spec) fractionWarning() string {
	sum := 0.0
	for i := range s.Clients {
		if !s.Clients[i].Arrival.IsTrace() {
			sum += s.Clients[i].RateFraction
		}
	}
	if math.Abs(sum-1) < 0.001 || !s.anyClientHasRate() {
		return ""
	}
	return fmt.Sprintf("the rate_fractions add up to %.4g, not 1: all clients together send %.4g requests a second, "+
		"not aggregate_rate (%g)",
		sum, sum*s.AggregateRate, s.AggregateRate)
}

// printSpec prints the spec that o names as it was written, comments included, with overridden
// values replaced. Where that is not possible it prints JSON.
func printSpec(in io.Reader, out io.Writer, o Options) error {
	l, err := loadSpec(in, o)
	if err != nil {
		return err
	}
	text := l.text
	if o.Seed != nil {
		text = replaceLine(text, "seed", strconv.FormatUint(l.spec.Seed, 10))
	}
	if o.Requests != 0 {
		text = replaceLine(text, "requests", strconv.FormatInt(l.spec.Requests, 10))
	}
	printed := Spec{dir: l.spec.dir}
	doc, err := strictyaml.Parse(l.name, text)
	if err == nil {
		err = doc.Decode(&printed)
	}
	if err != nil || !reflect.DeepEqual(&printed, l.spec) {
		if text, err = json.MarshalIndent(l.spec, "", "  "); err != nil {
			return err
		}
		text = append(text, '\n')
	}
	_, err = out.Write(text)
	return err
}

// replaceLine replaces the value of a top-level key in YAML text, or appends the key.
func replaceLine(text []byte, key, value string) []byte {
	line := regexp.MustCompile(`(?m)^` + key + `:[^#\n]*`)
	if at := line.FindIndex(text); at != nil {
		old := text[at[0]:at[1]]
		gap := old[len(bytes.TrimRight(old, " \t\r")):]
		return bytes.Join([][]byte{text[:at[0]], []byte(key + ": " + value), gap, text[at[1]:]}, nil)
	}
	return append(bytes.TrimRight(bytes.Clone(text), "\n"), "\n"+key+": "+value+"\n"...)
}

package gen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"blis/pkg/registry"
	"blis/pkg/stream"
)

// SLO sets the targets of an SLO class, whatever the source says.
type SLO struct {
	class stream.SLOClass
	text  string
	used  *bool // a request is of the class
}

var sloLatencies = []string{"ttft", "tpot", "e2e"}

// UnmarshalText reads CLASS:ttft=500ms,tpot=50ms,e2e=30s, with at least one target.
func (s *SLO) UnmarshalText(text []byte) error {
	name, targets, ok := strings.Cut(string(text), ":")
	if !ok || name == "" || targets == "" {
		return fmt.Errorf("must be CLASS:ttft=500ms,tpot=50ms, is %q", text)
	}
	class, err := stream.Classes.Get("SLO class", name)
	if err != nil { // one of the user
		class, _ = stream.Classes.Get("SLO class", "standard")
		class.Name = name
	}
	class.Targets = stream.Targets{}
	of := map[string]*float64{"ttft": &class.Targets.TTFTMS, "tpot": &class.Targets.TPOTMS, "e2e": &class.Targets.E2EMS}
	for target := range strings.SplitSeq(targets, ",") {
		latency, value, _ := strings.Cut(target, "=")
		at := of[latency]
		if at == nil {
			return registry.Unknown("latency", latency, sloLatencies)
		}
		d, err := time.ParseDuration(value)
		ms := float64(d) / 1e6
		if err != nil || !(ms > 0 && ms <= maxTargetMS) {
			return fmt.Errorf("%s must be a duration above 0 such as 500ms, is %q", latency, value)
		}
		if *at != 0 {
			return fmt.Errorf("%s is given twice in %q", latency, text)
		}
		*at = ms
	}
	*s = SLO{class, string(text), new(bool)}
	return nil
}

// classes are those of a source, with the targets of --slo. A class that the source has keeps its tier and priority.
func (o *Options) classes(of []stream.SLOClass) []stream.SLOClass {
	all := slices.Clone(of)
	for _, s := range o.SLO {
		at := slices.IndexFunc(all, func(c stream.SLOClass) bool { return c.Name == s.class.Name })
		if at < 0 {
			all = append(all, s.class)
		} else {
			all[at].Targets = s.class.Targets
		}
	}
	return all
}

// classify puts an arrival without an SLO class into the first class of --slo, and notes which classes have requests.
func (o *Options) classify(a *stream.Arrival) {
	class := &a.Request.SLOClass
	if a.IsSession {
		class = &a.Session.SLOClass
	}
	if *class == "" && len(o.SLO) > 0 {
		*class = o.SLO[0].class.Name
	}
	for _, s := range o.SLO {
		*s.used = *s.used || *class == s.class.Name
	}
}

// warnUnusedSLO warns about --slo without effect.
func (o *Options) warnUnusedSLO() {
	for _, s := range o.SLO {
		if !*s.used {
			o.warn(fmt.Sprintf("--slo %s has no effect: no request is of this class", s.text))
		}
	}
}

// sloTexts are the values of --slo as given.
func (o *Options) sloTexts() (all []string) {
	for _, s := range o.SLO {
		all = append(all, s.text)
	}
	return all
}

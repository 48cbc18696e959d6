package sim

import (
	"fmt"
	"math"
	"strings"

	"blis/pkg/hardware"
)

// use is what a deployment's coefficients were used for.
type use struct{ input, output, context hardware.Span }

// sent notes a request of so many tokens.
func (u *use) sent(input, output int64) {
	u.input = widen(u.input, float64(input), float64(input))
	u.output = widen(u.output, float64(output), float64(output))
	if output > 1 { // the first token is a prompt's, the last is not computed
		u.context = widen(u.context, float64(input), float64(input+output-2))
	}
}

func widen(s hardware.Span, least, most float64) hardware.Span {
	if s == nil {
		return hardware.Span{least, most}
	}
	s[0], s[1] = min(s[0], least), max(s[1], most)
	return s
}

// caveats say where step times are not those of measurements: a roofline's, or
// coefficients' beyond what they were measured for.
func (s *simulation) caveats() (warnings []string) {
	for i := range s.deployments {
		d := &s.deployments[i]
		if d.computed {
			warnings = append(warnings, fmt.Sprintf("deployment %s: step times are a roofline's, computed and not measured", d.id))
		}
		if beyond := s.beyond(d); beyond != "" {
			warnings = append(warnings, beyond)
		}
	}
	return warnings
}

// beyond says where a deployment's coefficients were used beyond what they were measured
// for; "" if they were not.
func (s *simulation) beyond(d *deployment) string {
	if d.measured == nil {
		return ""
	}
	r := hardware.Range{InputTokens: d.use.input, OutputTokens: d.use.output, ContextTokens: d.use.context}
	for k := d.first; k < d.end; k++ {
		e := s.replicas[k].engine.Stats()
		r.DecodeSequences = upTo(r.DecodeSequences, e.PeakDecode)
		r.PrefillTokens = upTo(r.PrefillTokens, e.PeakPrefill)
	}
	if out := d.measured.Outside(r); len(out) > 0 {
		return fmt.Sprintf("deployment %s: step times are extrapolated: its %s", d.id, strings.Join(out, "; "))
	}
	return ""
}

// upTo widens s, of which only the end counts: every run has small steps too.
func upTo(s hardware.Span, most int64) hardware.Span {
	if most == 0 {
		return s
	}
	return widen(s, math.Inf(1), float64(most))
}

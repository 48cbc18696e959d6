package sim

import (
	"fmt"
	"math"
	"strings"

	"blis/pkg/hardware"
)

// coverage is the range in which a deployment's coefficients were used.
type coverage struct{ input, output, context hardware.Span }

// coverages observes, by deployment, the range in which coefficients are used.
type coverages []coverage

func (coverages) hooks() []hook { return []hook{onSend} }

func (c coverages) observe(s *simulation, _ hook, i int32) error {
	r := s.request(i)
	c[s.replicas[r.replica].deployment].add(r.out.InputTokens, r.out.OutputTokens)
	return nil
}

// add records a request.
func (u *coverage) add(input, output int64) {
	u.input = widen(u.input, float64(input), float64(input))
	u.output = widen(u.output, float64(output), float64(output))
	if output > 1 { // the prefill yields the first token; the last is not computed
		u.context = widen(u.context, float64(input), float64(input+output-2))
	}
}

func widen(s hardware.Span, lo, hi float64) hardware.Span {
	if s == nil {
		return hardware.Span{lo, hi}
	}
	s[0], s[1] = min(s[0], lo), max(s[1], hi)
	return s
}

// caveats are warnings about step times that were not measured: from a roofline, or extrapolated.
func (c coverages) caveats(s *simulation) (warnings []string) {
	for i := range s.deployments {
		d := &s.deployments[i]
		if d.isRoofline {
			warnings = append(
				warnings,
				fmt.Sprintf("deployment %s: step times are computed from a roofline, not measured",
					d.id),
			)
		}
		if beyond := c.extrapolation(s, i); beyond != "" {
			warnings = append(warnings, beyond)
		}
	}
	return warnings
}

// extrapolation says where a deployment's coefficients were used outside the range in which they
// were measured; empty if they were not.
func (c coverages) extrapolation(s *simulation, deployment int) string {
	d, used := &s.deployments[deployment], &c[deployment]
	if d.measuredRange == nil {
		return ""
	}
	r := hardware.Range{InputTokens: used.input, OutputTokens: used.output, ContextTokens: used.context}
	for k := d.first; k < d.end; k++ {
		e := s.replicas[k].engine.Stats()
		r.DecodeSequences = widenMax(r.DecodeSequences, e.PeakDecode)
		r.PrefillTokens = widenMax(r.PrefillTokens, e.PeakPrefill)
	}
	if out := d.measuredRange.Extrapolations(r); len(out) > 0 {
		return fmt.Sprintf("deployment %s: step times are extrapolated: its %s", d.id, strings.Join(out, "; "))
	}
	return ""
}

// widenMax widens s upward only, because every run also has small steps.
func widenMax(s hardware.Span, hi int64) hardware.Span {
	if hi == 0 {
		return s
	}
	return widen(s, math.Inf(1), float64(hi))
}

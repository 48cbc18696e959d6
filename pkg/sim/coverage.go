package sim

import (
	"fmt"
	"math"
	"strings"

	"blis/pkg/cluster"
	"blis/pkg/hardware"
)

// coverages observes, by deployment, the token counts with which coefficients are used.
type coverages []hardware.Range

func (coverages) hooks() []hook { return []hook{onSend} }

func (c coverages) observe(s *simulation, _ hook, i int32) error {
	r := s.request(i)
	used := &c[s.replicas[r.replica].deployment]
	input, output := float64(r.out.InputTokens), float64(r.out.OutputTokens)
	used.InputTokens.Widen(input)
	used.OutputTokens.Widen(output)
	if output > 1 { // the prefill yields the first token; the last is not computed
		used.ContextTokens.Widen(input, input+output-2)
	}
	return nil
}

// unmeasured says how the step times of a deployment were computed and why; "" if they were measured.
func unmeasured(d *cluster.Deployment) string {
	switch d.Latency.Model {
	case "roofline":
		text := "computed from a roofline, not measured"
		if why, ok := strings.CutPrefix(d.Latency.Source, "computed: "); ok {
			text += ": " + why
		}
		return text
	case "operators":
		text := "sums of kernels measured on " + d.Computed.Operators.System
		if n := len(d.Computed.Operators.Notes); n > 0 {
			text += fmt.Sprintf("; for %d the tables have only similar ones (computed.operators.notes)", n)
		}
		return text
	}
	return ""
}

// caveats are warnings about step times that were not measured: computed, or extrapolated.
func (c coverages) caveats(s *simulation) (warnings []string) {
	for i := range s.deployments {
		d := &s.deployments[i]
		if d.unmeasured != "" {
			warnings = append(warnings, fmt.Sprintf("deployment %s: step times are %s", d.id, d.unmeasured))
		}
		if zero := zeroSteps(s, d); zero != "" {
			warnings = append(warnings, zero)
		}
		if beyond := c.extrapolation(s, i); beyond != "" {
			warnings = append(warnings, beyond)
		}
	}
	return warnings
}

// zeroSteps warns if all steps of a deployment took the minimum, as with coefficients of 0; "" if they did not.
func zeroSteps(s *simulation, d *deployment) string {
	var steps, busy int64
	for k := d.first; k < d.end; k++ {
		e := s.replicas[k].engine.Stats()
		steps, busy = steps+e.Steps, busy+e.BusyUS
	}
	if steps == 0 || busy > steps {
		return ""
	}
	return fmt.Sprintf("deployment %s: all %d steps take the minimum of 1 µs: its coefficients are 0 or too small",
		d.id, steps)
}

// extrapolation says where a deployment's coefficients were used outside the range in which they
// were measured; empty if they were not.
func (c coverages) extrapolation(s *simulation, deployment int) string {
	d, r := &s.deployments[deployment], c[deployment]
	if d.measuredRange == nil {
		return ""
	}
	var decode, prefill int64
	for k := range s.replicas {
		if s.replicas[k].deployment != deployment {
			continue
		}
		e := s.replicas[k].engine.Stats()
		decode, prefill = max(decode, e.PeakDecode), max(prefill, e.PeakPrefill)
	}
	// Only the largest steps count, because every run also has small ones.
	r.DecodeSequences = hardware.Span{math.Inf(1), float64(decode)}
	r.PrefillTokens = hardware.Span{math.Inf(1), float64(prefill)}
	if out := d.measuredRange.Extrapolations(r); len(out) > 0 {
		return fmt.Sprintf("deployment %s: step times are extrapolated: its %s", d.id, strings.Join(out, "; "))
	}
	return ""
}

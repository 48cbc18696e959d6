package calibrate

import (
	_ "embed"
	"fmt"
	"strings"
)

// suggestedBenchmark is a small workload that would identify what a recording does not.
type suggestedBenchmark struct {
	// Why says what the recording lacks, and what to add.
	Why string `json:"why"`
	// Spec is the workload for blis-gen.
	Spec string `json:"spec"`
}

// checkIdentifiability suggests a benchmark for coefficients that are not identifiable.
func checkIdentifiability(r *report) {
	f, constant := &r.fit, r.setup.nearConstantLength()
	if f.method == "" || len(f.id.Not) == 0 && constant == "" {
		return
	}
	r.Suggested = r.setup.suggestBenchmark(f, constant != "")
	if constant != "" {
		r.setup.warnf("%s", constant)
	}
	if len(f.id.Not) > 0 {
		r.setup.warnf("not identifiable: %s: %s", strings.Join(f.id.Not, ", "), r.Suggested.Why)
	}
}

// nearConstantLength warns that nearly all prompts of client timings have one length; "" if
// not.
func (s *setup) nearConstantLength() string {
	var lengths []float64
	for _, r := range s.replays {
		for _, q := range r.requests {
			lengths = append(lengths, float64(q.InputTokens))
		}
	}
	lo, hi := middle(lengths, 40)
	if len(s.steps) > 0 || !(hi <= 1.1*lo) {
		return ""
	}
	return fmt.Sprintf("prompts have %s tokens: alpha[0] and alpha[1] are hardly separate from beta[1]; "+
		"do not use these coefficients for prompts of other lengths", formatRange(lo, hi))
}

func formatRange(lo, hi float64) string {
	if lo == hi {
		return fmt.Sprintf("%g", lo)
	}
	return fmt.Sprintf("%g to %g", lo, hi)
}

// benchmark is the spec of the suggested workload, with formats of its two rates and its longest prompt.
//
//go:embed benchmark.yaml
var benchmark string

// suggestBenchmark adds prompts of other lengths if α or β1 are not identifiable, and loads far
// from the recorded one if β0, β2 or β3 are not.
func (s *setup) suggestBenchmark(f *fitResult, constantLength bool) *suggestedBenchmark {
	var why, add []string
	if constantLength || f.id.Has(names[alpha0]) || f.id.Has(names[alpha1]) || f.id.Has(names[beta1]) {
		lengths := "the computed prompts have similar lengths"
		if r := s.ranges(); r.InputTokens != nil {
			lengths = fmt.Sprintf("prompts have %s tokens", formatRange(r.InputTokens[0], r.InputTokens[1]))
		}
		why, add = append(why, lengths), append(add, "add prompts of 128 and of 4096 tokens that do not repeat")
	}
	if f.id.Has(names[beta0]) || f.id.Has(names[beta2]) || f.id.Has(names[beta3]) {
		why = append(why, fmt.Sprintf("batches have %.3g sequences (standard deviation %.2g)",
			f.load.sequences, f.load.sd))
		add = append(add, "add a low and a high rate")
	}
	longest := min(4096, max(256, int64(s.deployment.Engine.MaxModelLen)-512))
	// A few sequences per step, and half of the batch slots.
	step := max(1, f.value[beta0]+8*f.value[beta2]) * 1e-6
	low, high := 4/(step*256), float64(s.deployment.Engine.MaxNumSeqs)/2/(2*step*256)
	// Prompts and decoding take at most half of the time, without overload.
	decoding := f.value[beta2] + f.value[beta3]*float64(128+longest+256)/2
	prompts := f.value[beta1] * f.shape.perToken(float64(128+longest)/2) * float64(128+longest) / 2
	busy := (prompts + 256*decoding) * 1e-6
	if busy > 0 {
		high = min(high, 0.5/busy)
	}
	low = min(low, high/4)
	rate := func(v float64) float64 { return max(0.01, round(v, 2)) }
	return &suggestedBenchmark{strings.Join(why, "; ") + ": " + strings.Join(add, ", "),
		fmt.Sprintf(benchmark, rate(low), rate(high/low), longest)}
}

package calibrate

import (
	"fmt"
	"strings"
)

// Advice is a small benchmark that would tell what a recording does not.
type Advice struct {
	// Why says what the recording lacks.
	Why string `json:"why"`
	// Spec is a workload for blis-gen; a load generator sends the like.
	Spec string `json:"spec"`
}

// alike says that nearly all prompts of a recording of clients are of one length; ""
// where they differ, or where steps tell.
func (s *setup) alike() string {
	var lengths []float64
	for _, r := range s.runs {
		for _, q := range r.requests {
			lengths = append(lengths, float64(q.InputTokens))
		}
	}
	if len(s.steps) > 0 || len(lengths) == 0 {
		return ""
	}
	least, most := extent(lengths)
	if most > 1.1*least {
		return ""
	}
	return fmt.Sprintf("prompts are all of %s tokens: time of alpha[0] and alpha[1] may be beta[1]'s and the other way round, but for what prompts add to the steps of other requests; do not trust them for prompts of other lengths", fromTo(least, most))
}

// fromTo is between what two numbers something lies, or the number that it is.
func fromTo(least, most float64) string {
	if least == most {
		return fmt.Sprintf("%g", least)
	}
	return fmt.Sprintf("%g to %g", least, most)
}

// advise finds what to measure so that the confounded coefficients are told apart:
// prompts of other lengths where α or β1 are among them, and loads far from the
// recorded one where β0 or β2 are.
func (s *setup) advise(f *fitted, alike string) *Advice {
	r := s.ranges()
	var why, add []string
	if alike != "" || f.id.has(names[alpha0]) || f.id.has(names[alpha1]) || f.id.has(names[beta1]) {
		lengths := "the prompts that were computed are too much alike"
		if r.InputTokens != nil {
			lengths = fmt.Sprintf("prompts are of %s tokens", fromTo(r.InputTokens[0], r.InputTokens[1]))
		}
		why, add = append(why, lengths), append(add, "add prompts of 128 and of 4096 tokens that repeat nothing")
	}
	if f.id.has(names[beta0]) || f.id.has(names[beta2]) || f.id.has(names[beta3]) {
		why = append(why, fmt.Sprintf("batches are of %.3g sequences, give or take %.2g", f.load.sequences, f.load.scatter))
		add = append(add, "add a low and a high rate")
	}
	most := min(4096, max(256, int64(s.deployment.Engine.MaxModelLen)-512))
	// A step of a few sequences and one near half of the batch.
	step := max(1, f.Beta[0]+8*f.Beta[2]) * 1e-6
	low, high := 4/(step*256), float64(s.deployment.Engine.MaxNumSeqs)/2/(2*step*256)
	// GPUs compute prompts, too: more than half of the time on these and on what each
	// sequence adds would be overload.
	work := (f.Beta[1]*float64(128+most)/2 + 256*(f.Beta[2]+f.Beta[3]*float64(128+most+256)/2)) * 1e-6
	if work > 0 {
		high = min(high, 0.5/work)
	}
	low = min(low, high/4)
	rate := func(v float64) float64 { return max(0.01, round(v, 2)) }
	var b strings.Builder
	fmt.Fprintf(&b, `version: "2"
seed: 1
aggregate_rate: %g  # requests/s, for a few sequences at a time; after five minutes as many as fill half a batch
horizon: 600000000
load_profile: {type: step, segments: [{start_time: 300000000, multiplier: %g}]}
clients:
  - id: short
    rate_fraction: 0.5
    arrival: {process: poisson}
    input_distribution: {type: constant, params: {value: 128}}
    output_distribution: {type: constant, params: {value: 256}}
  - id: long
    rate_fraction: 0.5
    arrival: {process: poisson}
    input_distribution: {type: constant, params: {value: %d}}
    output_distribution: {type: constant, params: {value: 256}}
`, rate(low), rate(high/low), most)
	return &Advice{Why: strings.Join(why, "; ") + ": " + strings.Join(add, ", "), Spec: b.String()}
}

package stream

// Methods of estimating a regret.
const (
	MethodEstimated = "estimated"
	MethodExact     = "exact"
)

// Stages and methods of regrets.
var (
	regretStages = []string{StageAdmission, StageRouting, StagePrefillRouting}
	methods      = []string{MethodEstimated, MethodExact}
)

// Regret is the effect that the alternatives to one decision would have had.
//
//wire:record regret encode decode
type Regret struct {
	Kind string `json:"kind"`
	// Id of the decision.
	Decision string `json:"decision" wire:"unique"`
	// Id of the request.
	Request string `json:"request" wire:"unique"`
	// Stage that decided.
	Stage string `json:"stage" wire:"oneof=regretStages"`
	// Method: estimated at the decision, or exact by re-simulation from it.
	Method string `json:"method" wire:"oneof=methods"`
	// Estimated E2E of the choice minus that of the best candidate, in ms; only if estimated.
	HindsightMS *float64 `json:"hindsight_ms,omitempty"`
	// Estimated E2E of the choice minus that of the candidate that the same estimator prefers when it knows only what
	// the policy knew, in ms. It may be negative; only if estimated.
	AvoidableMS *float64 `json:"avoidable_ms,omitempty"`
	// The best alternatives by estimate, best first; if estimated, including the choice.
	Alternatives []Alternative `json:"alternatives" wire:"fresh"`
	// How far the run moves by itself; only if exact, absent if nothing arrives after the decision.
	Sensitivity *Sensitivity `json:"sensitivity,omitempty"`
}

// Sensitivity is how far a run moves by itself: the largest absolute changes in controls, which overrule
// no decision but give one later request one output token more.
//
//wire:object sensitivity encode decode
type Sensitivity struct {
	// Number of controls.
	Controls int64 `json:"controls"`
	// Largest net number of requests that gain or lose their targets.
	SLO int64 `json:"slo"`
	// Largest change of the number of completed requests.
	Completed int64 `json:"completed"`
	// Largest change of the sum of the TTFT of all requests, in ms.
	TTFTMS float64 `json:"ttft_ms"`
	// Largest change of the sum of the E2E of all requests, in ms.
	E2EMS float64 `json:"e2e_ms"`
	// Largest change of the TTFT of a request that was decided about, in ms.
	OwnTTFTMS float64 `json:"own_ttft_ms"`
	// Largest change of the E2E of a request that was decided about, in ms.
	OwnE2EMS float64 `json:"own_e2e_ms"`
}

// Alternative is a candidate of routing or a verdict of admission.
//
//wire:object alternative encode decode
type Alternative struct {
	// Deployment of the candidate.
	Deployment string `json:"deployment,omitempty"`
	// Index of the candidate in its deployment, from 0.
	Replica Index `json:"replica,omitzero"`
	// Verdict of admission.
	Verdict string `json:"verdict,omitempty"`
	// Whether this is the choice.
	Chosen bool `json:"chosen,omitempty"`
	// Estimated TTFT of the request there, from the true state, in ms.
	TTFTMS *float64 `json:"ttft_ms,omitempty"`
	// Estimated E2E of the request there, from the true state, in ms.
	E2EMS *float64 `json:"e2e_ms,omitempty"`
	// Estimated E2E of the request there, from what the policy saw, in ms.
	ViewMS *float64 `json:"view_ms,omitempty"`
	// Effect on the request itself; only if exact.
	Own *Difference `json:"own,omitempty"`
	// Effect on all requests; only if exact.
	All *Difference `json:"all,omitempty"`
	// The effect on all requests is within the sensitivity of the run; only if exact.
	Insensitive bool `json:"insensitive,omitempty"`
}

// Difference is the effect that an alternative would have had.
//
//wire:object difference encode decode
type Difference struct {
	// Requests that missed their targets and would have met them.
	SLOGained int64 `json:"slo_gained"`
	// Requests that met their targets and would have missed them.
	SLOLost int64 `json:"slo_lost"`
	// Additional requests that would have completed; negative if fewer.
	Completed int64 `json:"completed" wire:"min=-maxExact"`
	// Requests that completed in both cases with different latencies.
	LatencyChanged int64 `json:"latency_changed"`
	// Sum over them of the actual TTFT minus that of the alternative, in ms.
	TTFTMS float64 `json:"ttft_ms"`
	// Sum over them of the actual E2E minus that of the alternative, in ms.
	E2EMS float64 `json:"e2e_ms"`
}

// finite reports whether all numbers of g are.
func (g *Regret) finite() bool {
	ok := finitePtr(g.HindsightMS) && finitePtr(g.AvoidableMS)
	if x := g.Sensitivity; x != nil {
		ok = ok && finite(x.TTFTMS) && finite(x.E2EMS) && finite(x.OwnTTFTMS) && finite(x.OwnE2EMS)
	}
	for i := range g.Alternatives {
		a := &g.Alternatives[i]
		ok = ok && finitePtr(a.TTFTMS) && finitePtr(a.E2EMS) && finitePtr(a.ViewMS)
		for _, d := range [...]*Difference{a.Own, a.All} {
			ok = ok && (d == nil || finite(d.TTFTMS) && finite(d.E2EMS))
		}
	}
	return ok
}

func finitePtr(v *float64) bool { return v == nil || finite(*v) }

package stream

// Methods of estimating a regret.
const (
	MethodEstimated = "estimated"
	MethodExact     = "exact"
)

// Stages and methods of regrets.
var (
	regretStages = []string{StageAdmission, StageRouting}
	methods      = []string{MethodEstimated, MethodExact}
)

// Regret is the effect that the alternatives to one decision would have had.
//
//wire:record regret decode
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
}

// Alternative is a candidate of routing or a verdict of admission.
//
//wire:object alternative decode
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
}

// Difference is the effect that an alternative would have had.
//
//wire:object difference decode
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

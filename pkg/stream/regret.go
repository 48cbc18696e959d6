package stream

// Methods by which a Regret was found.
const (
	MethodEstimated = "estimated"
	MethodExact     = "exact"
)

// Regret is what other choices would have made of one decision.
type Regret struct {
	Kind     string `json:"kind"`
	Decision string `json:"decision"`
	Request  string `json:"request"`
	// Stage is that of the decision, Method MethodEstimated or MethodExact.
	Stage  string `json:"stage"`
	Method string `json:"method"`
	// HindsightMS is by how much the estimated E2E of the choice is above that of
	// the best candidate, AvoidableMS by how much it is above that of the candidate
	// which the same estimator prefers that knows no more than the policy; the
	// latter may be negative. Of estimated ones only.
	HindsightMS *float64 `json:"hindsight_ms,omitempty"`
	AvoidableMS *float64 `json:"avoidable_ms,omitempty"`
	// Alternatives are the best ones by estimate, the best first; of an estimated
	// one the choice is among them.
	Alternatives []Alternative `json:"alternatives"`
}

// Alternative is a candidate of routing, or a verdict of admission.
type Alternative struct {
	Deployment string `json:"deployment,omitempty"`
	Replica    Index  `json:"replica,omitzero"`
	Verdict    string `json:"verdict,omitempty"`
	// Chosen: it is what was decided.
	Chosen bool `json:"chosen,omitempty"`
	// TTFTMS and E2EMS are estimated of the true state, ViewMS is E2E as estimated of
	// what the policy saw.
	TTFTMS *float64 `json:"ttft_ms,omitempty"`
	E2EMS  *float64 `json:"e2e_ms,omitempty"`
	ViewMS *float64 `json:"view_ms,omitempty"`
	// Own is the difference that it would have made to the request, All to all
	// requests, in a run that goes on from the decision. Of exact ones only.
	Own *Difference `json:"own,omitempty"`
	All *Difference `json:"all,omitempty"`
}

// Difference is what an alternative would have changed.
type Difference struct {
	// Gained requests would have met their targets and did not, Lost ones did and
	// would not have.
	Gained int64 `json:"gained"`
	Lost   int64 `json:"lost"`
	// Completed is how many more requests would have completed.
	Completed int64 `json:"completed"`
	// Changed requests completed in both and would have had other times; TTFTMS and
	// E2EMS are the sums over them of actual less alternative: what was lost.
	Changed int64   `json:"changed"`
	TTFTMS  float64 `json:"ttft_ms"`
	E2EMS   float64 `json:"e2e_ms"`
}

// What a Regret may name as its stage and its method.
var (
	regretStages = []string{StageAdmission, StageRouting}
	methods      = []string{MethodEstimated, MethodExact}
)

var regretObject = describe[Regret](KindRegret, "What other choices would have made of one decision.",
	Field{Name: "kind", Doc: "Always regret.", Required: true, OneOf: []string{KindRegret}},
	Field{Name: "decision", Doc: "The id of the decision.", Required: true},
	Field{Name: "request", Doc: "The id of the request that it is about.", Required: true},
	Field{Name: "stage", Doc: "Who decided.", Required: true, OneOf: regretStages},
	Field{Name: "method", Doc: "How it was found: estimated at the decision, or by playing on from it.", Required: true, OneOf: methods},
	Field{Name: "hindsight_ms", Doc: "By how much the estimated E2E of the choice is above that of the best candidate, in ms."},
	Field{Name: "avoidable_ms", Doc: "By how much it is above that of the candidate which the estimator prefers that knows what the policy knew, in ms."},
	Field{Name: "alternatives", Doc: "The best candidates by estimate, or other verdicts.", Required: true},
)

var alternativeObject = describe[Alternative]("alternative", "A candidate of routing, or a verdict of admission.",
	Field{Name: "deployment", Doc: "The deployment of the candidate."},
	Field{Name: "replica", Doc: "The index of the candidate in its deployment, from 0.", Max: maxIndex},
	Field{Name: "verdict", Doc: "The verdict of admission."},
	Field{Name: "chosen", Doc: "Whether it is what was decided."},
	Field{Name: "ttft_ms", Doc: "The TTFT that the request would have had there, estimated of the true state, in ms."},
	Field{Name: "e2e_ms", Doc: "Its E2E, estimated likewise."},
	Field{Name: "view_ms", Doc: "Its E2E, estimated of what the policy saw."},
	Field{Name: "own", Doc: "What it would have changed for the request."},
	Field{Name: "all", Doc: "What it would have changed for all requests."},
)

var differenceObject = describe[Difference]("difference", "What an alternative would have changed.",
	Field{Name: "gained", Doc: "Requests that would have met their targets and did not.", Required: true, Max: maxExact},
	Field{Name: "lost", Doc: "Requests that met their targets and would not have.", Required: true, Max: maxExact},
	Field{Name: "completed", Doc: "How many more requests would have completed.", Required: true, Min: -maxExact, Max: maxExact},
	Field{Name: "changed", Doc: "Requests that completed in both and would have had other times.", Required: true, Max: maxExact},
	Field{Name: "ttft_ms", Doc: "The sum over these of the actual TTFT less that of the alternative, in ms.", Required: true},
	Field{Name: "e2e_ms", Doc: "The same of E2E.", Required: true},
)

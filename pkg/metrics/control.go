package metrics

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/stream"
)

// Control reports the control plane, except for routing to replicas.
type Control struct {
	// Delays counts the requests' admission delays.
	Delays int64 `json:"delays"`
	// SignalAgeMS is the age of the replica signals that policies read, one sample for
	// each value, replica and read; absent if all signals are immediate.
	SignalAgeMS *Age  `json:"signal_age_ms,omitempty"`
	Flow        *Flow `json:"flow,omitempty"`
	// Rules are the expressions and branches of the policies. Fallbacks counts the
	// evaluations that failed, or in which a filter removed all candidates, so that the
	// safe default decided.
	Rules     []Rule `json:"rules,omitempty"`
	Fallbacks int64  `json:"fallbacks"`
}

// Age summarizes signal ages, in ms.
type Age struct {
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// Flow reports flow control. Queued requests waited, up to Peak at a time for one model;
// Rejected requests met a full queue; Expired requests exceeded the maximum wait.
type Flow struct {
	Queued   int64 `json:"queued"`
	Peak     int64 `json:"peak"`
	Rejected int64 `json:"rejected"`
	Expired  int64 `json:"expired"`
}

// Rule is an expression or a branch of a policy. Path is its position in the policies,
// Rule its text. Evaluated counts evaluations (a filter or a score has one per
// candidate), Hits the evaluations of a condition that were true, of a leaf that decided,
// or of a number that had a value. Failed counts failures (a filter that removes all
// candidates fails once per decision).
type Rule struct {
	Path      string `json:"path"`
	Rule      string `json:"rule"`
	Evaluated int64  `json:"evaluated"`
	Hits      int64  `json:"hits"`
	Failed    int64  `json:"failed"`
	// Error is the first error of a Starlark program, with the line and column of the program.
	Error string `json:"error,omitempty"`
}

// Shadow compares the router's prediction of cached prompt tokens, from its shadow of the
// caches or its last snapshot of them, with the tokens that were cached or loaded from a KV tier, over the
// requests that entered a batch. OverTokens were predicted and not cached, UnderTokens
// cached and not predicted. Diverged counts the requests with either.
type Shadow struct {
	Requests       int64 `json:"requests"`
	Diverged       int64 `json:"diverged"`
	ExpectedTokens int64 `json:"expected_tokens"`
	CachedTokens   int64 `json:"cached_tokens"`
	OverTokens     int64 `json:"over_tokens"`
	UnderTokens    int64 `json:"under_tokens"`
}

// HasPrefixPrediction declares that the router predicts cached tokens, even if every
// prediction is 0.
func (a *Accumulator) HasPrefixPrediction() { a.hasPrefixPrediction = true }

func (s *Shadow) add(o *stream.Outcome) {
	if o.ScheduledUS.IsZero() {
		return
	}
	found := o.CachedTokens + o.LoadedTokens.Total()
	s.Requests++
	s.ExpectedTokens += o.ExpectedCachedTokens
	s.CachedTokens += found
	switch d := o.ExpectedCachedTokens - found; {
	case d > 0:
		s.OverTokens += d
		s.Diverged++
	case d < 0:
		s.UnderTokens -= d
		s.Diverged++
	}
}

// SetControl sets the report of the control plane.
func (a *Accumulator) SetControl(c *Control) { a.control = c }

// SetScale sets the actions of the auto-scaler, and the time for which requests waited for capacity.
func (a *Accumulator) SetScale(ups, downs, oscillations, waitUS int64) {
	a.scale, a.capacityWaitUS = &Scale{Ups: ups, Downs: downs, Oscillations: oscillations}, waitUS
}

// SetFailures sets what is known of replicas that went down.
func (a *Accumulator) SetFailures(f *Failures) { a.failures = f }

// Warning reports policy expressions that failed and filters that removed all candidates;
// "" if there are none.
func (c *Control) Warning() string {
	if c == nil || c.Fallbacks == 0 {
		return ""
	}
	worst := slices.MaxFunc(c.Rules, func(x, y Rule) int { return cmp.Compare(x.Failed, y.Failed) })
	return fmt.Sprintf("policies: expressions failed or filters removed all candidates %d times, and the fallback"+
		" decided; %s failed %d times in %d evaluations: %s", c.Fallbacks, worst.Path, worst.Failed, worst.Evaluated,
		cmp.Or(worst.Error, worst.Rule))
}

// Regret totals the estimated regret of routing decisions, in ms of the requests that were
// routed: of E2E in hindsight and avoidable, and of TTFT in hindsight.
type Regret struct {
	Decisions       int64   `json:"decisions"`
	HindsightMS     float64 `json:"hindsight_ms"`
	AvoidableMS     float64 `json:"avoidable_ms"`
	HindsightTTFTMS float64 `json:"hindsight_ttft_ms"`
	// Reliability is absent unless decisions were re-simulated with enough alternatives.
	Reliability *Reliability `json:"reliability,omitempty"`
	// PrefillRouting totals that of the choices of prefill replicas; absent if there were none.
	PrefillRouting *PrefillRegret `json:"prefill_routing,omitempty"`
}

// PrefillRegret is Regret of the choices of prefill replicas.
type PrefillRegret struct {
	Decisions       int64   `json:"decisions"`
	HindsightMS     float64 `json:"hindsight_ms"`
	AvoidableMS     float64 `json:"avoidable_ms"`
	HindsightTTFTMS float64 `json:"hindsight_ttft_ms"`
}

// Reliability says how well the estimates rank the alternatives that were re-simulated:
// Spearman's correlation of the estimated and the exact change of TTFT and E2E of the
// request itself; absent if all changes are equal. Alternatives is their number.
type Reliability struct {
	Alternatives int64    `json:"alternatives"`
	SpearmanTTFT *float64 `json:"spearman_ttft,omitempty"`
	SpearmanE2E  *float64 `json:"spearman_e2e,omitempty"`
}

// AddRegret counts one decision with its regret in µs: the choice of a prefill replica, or of the one that decodes.
func (a *Accumulator) AddRegret(prefill bool, hindsightUS, avoidableUS, hindsightTTFTUS int64) {
	r := &a.regret
	if prefill {
		r = &a.prefillRegret
	}
	r.decisions++
	r.hindsightUS += hindsightUS
	r.avoidableUS += avoidableUS
	r.hindsightTTFTUS += hindsightTTFTUS
}

// AddReliability sets the reliability of the estimates.
func (a *Accumulator) AddReliability(alternatives int64, ttft, e2e *float64) {
	a.regret.reliability = &Reliability{alternatives, ttft, e2e}
}

// regret is Regret in integer µs, so that the order of additions does not matter.
type regret struct {
	decisions, hindsightUS, avoidableUS, hindsightTTFTUS int64
	reliability                                          *Reliability
}

// tree returns the totals, with those of the choices of prefill replicas.
func (r *regret) tree(prefill *regret) *Regret {
	if r.decisions == 0 {
		return nil
	}
	x := &Regret{r.decisions, float64(r.hindsightUS) / 1000, float64(r.avoidableUS) / 1000,
		float64(r.hindsightTTFTUS) / 1000, r.reliability, nil}
	if p := prefill; p.decisions > 0 {
		x.PrefillRouting = &PrefillRegret{p.decisions, float64(p.hindsightUS) / 1000, float64(p.avoidableUS) / 1000,
			float64(p.hindsightTTFTUS) / 1000}
	}
	return x
}

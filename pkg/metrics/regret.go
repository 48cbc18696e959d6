package metrics

// Regret totals the estimated regret of routing decisions, in ms of E2E of the requests
// that were routed.
type Regret struct {
	Decisions   int64   `json:"decisions"`
	HindsightMS float64 `json:"hindsight_ms"`
	AvoidableMS float64 `json:"avoidable_ms"`
}

// AddRegret counts one decision with its regret in µs.
func (a *Accumulator) AddRegret(hindsightUS, avoidableUS int64) {
	r := &a.regret
	r.decisions++
	r.hindsightUS += hindsightUS
	r.avoidableUS += avoidableUS
}

// regret is Regret in integer µs, so that the order of additions does not matter.
type regret struct{ decisions, hindsightUS, avoidableUS int64 }

func (r *regret) tree() *Regret {
	if r.decisions == 0 {
		return nil
	}
	return &Regret{r.decisions, float64(r.hindsightUS) / 1000, float64(r.avoidableUS) / 1000}
}

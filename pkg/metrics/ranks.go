package metrics

// RankTotals are sums over the steps of a data-parallel rank that runs in lockstep with others. In Dummies of the Steps
// it had a dummy batch. The others took StepUS, during WaitUS of which it waited for the slowest rank. Tokens are those
// that it computed, and Widest those of the rank with most in each step.
type RankTotals struct{ Steps, Dummies, StepUS, WaitUS, Tokens, Widest int64 }

// DP reports data-parallel ranks that run in lockstep. Steps are those of all ranks. IdleShare is the share of them
// with a dummy batch, since the rank had no request to compute. WaitShare is the share of the time of the other steps
// during which a rank waited for the slowest one. Imbalance is the number of tokens of the rank with most, divided by
// the mean of all ranks; steps weigh by their tokens.
type DP struct {
	Steps     int64    `json:"steps"`
	IdleShare float64  `json:"idle_share"`
	WaitShare *float64 `json:"wait_share,omitempty"`
	Imbalance float64  `json:"imbalance"`
}

// lockstep adds up the steps of ranks; nil if there are none.
func lockstep(replicas []ReplicaTotals) *DP {
	var t RankTotals
	for i := range replicas {
		r := &replicas[i].Ranks
		t.Steps, t.Dummies, t.StepUS = t.Steps+r.Steps, t.Dummies+r.Dummies, t.StepUS+r.StepUS
		t.WaitUS, t.Tokens, t.Widest = t.WaitUS+r.WaitUS, t.Tokens+r.Tokens, t.Widest+r.Widest
	}
	if t.Steps == 0 {
		return nil
	}
	return &DP{Steps: t.Steps, IdleShare: float64(t.Dummies) / float64(t.Steps), WaitShare: ratio(t.WaitUS, t.StepUS),
		Imbalance: float64(t.Widest) / float64(t.Tokens)}
}

package attribution

// Averages are over the losing requests of a pattern.
type Averages struct {
	Signal SignalAverages
	Queue  QueueAverages
	Ahead  AheadAverages
	Prompt PromptAverages
	Decode DecodeAverages
	Slots  SlotAverages
	Delay  DelayAverages
}

// SignalAverages are the age of the signals about the chosen replica, and the queue that they
// showed, nil where the router did not read it.
type SignalAverages struct {
	AgeMS float64
	Queue *float64
}

// QueueAverages are the actual queue at the chosen replica and the shortest one, and how many
// requests the chosen replica had in total, and the one with the fewest.
type QueueAverages struct{ Own, Shortest, Resident, FewestResident float64 }

// AheadAverages are tokens that the replica started to compute while the requests waited, and
// of these those of lower classes, of the heavy tenant, and of prompts computed before.
type AheadAverages struct{ Total, LowerPriority, HeavyTenant, Recomputed float64 }

// PromptAverages are prompt tokens: all, those expected to be cached, and those found cached.
type PromptAverages struct{ Input, Expected, Cached float64 }

// DecodeAverages are output tokens, and the prompt tokens of other requests that the replica
// prefilled while it decoded them.
type DecodeAverages struct{ Output, Interfering float64 }

// SlotAverages are how many requests ran in batches while these waited for a slot, and the share
// of the blocks that they held.
type SlotAverages struct{ Running, KVShare float64 }

// DelayAverages are how often admission delayed the requests, the time in admission, how often
// they were preempted, and the time in the queue after that.
type DelayAverages struct{ Delays, AdmissionMS, Preemptions, PreemptedMS float64 }

// averaged lists the averages except Signal.Queue, with what of a request each is over.
var averaged = [...]struct {
	into func(*Averages) *float64
	of   func(*request) float64
}{
	{func(m *Averages) *float64 { return &m.Signal.AgeMS },
		func(r *request) float64 { return float64(r.routing.chosen.ageUS) / 1000 }},
	{func(m *Averages) *float64 { return &m.Queue.Own },
		func(r *request) float64 { return float64(r.contention.queue) }},
	{func(m *Averages) *float64 { return &m.Queue.Shortest },
		func(r *request) float64 { return float64(r.contention.shortest) }},
	{func(m *Averages) *float64 { return &m.Queue.Resident },
		func(r *request) float64 { return float64(r.contention.resident) }},
	{func(m *Averages) *float64 { return &m.Queue.FewestResident },
		func(r *request) float64 { return float64(r.contention.fewestResident) }},
	{func(m *Averages) *float64 { return &m.Ahead.Total },
		func(r *request) float64 { return float64(r.contention.ahead.total) }},
	{func(m *Averages) *float64 { return &m.Ahead.LowerPriority },
		func(r *request) float64 { return float64(r.contention.ahead.lowerPriority) }},
	{func(m *Averages) *float64 { return &m.Ahead.HeavyTenant },
		func(r *request) float64 { return float64(r.contention.ahead.heavyTenant) }},
	{func(m *Averages) *float64 { return &m.Ahead.Recomputed },
		func(r *request) float64 { return float64(r.contention.ahead.recomputed) }},
	{func(m *Averages) *float64 { return &m.Prompt.Input },
		func(r *request) float64 { return float64(r.tokens.input) }},
	{func(m *Averages) *float64 { return &m.Prompt.Expected },
		func(r *request) float64 { return float64(r.tokens.expected) }},
	{func(m *Averages) *float64 { return &m.Prompt.Cached },
		func(r *request) float64 { return float64(r.tokens.cached) }},
	{func(m *Averages) *float64 { return &m.Decode.Output },
		func(r *request) float64 { return float64(r.tokens.output) }},
	{func(m *Averages) *float64 { return &m.Decode.Interfering },
		func(r *request) float64 { return float64(r.contention.interfering) }},
	{func(m *Averages) *float64 { return &m.Slots.Running }, func(r *request) float64 { return r.contention.running }},
	{func(m *Averages) *float64 { return &m.Slots.KVShare }, func(r *request) float64 { return r.contention.kvShare }},
	{func(m *Averages) *float64 { return &m.Delay.Delays }, func(r *request) float64 { return float64(r.delays) }},
	{func(m *Averages) *float64 { return &m.Delay.AdmissionMS },
		func(r *request) float64 { return float64(r.times.split()[PartAdmission]) / 1000 }},
	{func(m *Averages) *float64 { return &m.Delay.Preemptions },
		func(r *request) float64 { return float64(r.preemptions) }},
	{func(m *Averages) *float64 { return &m.Delay.PreemptedMS },
		func(r *request) float64 { return float64(r.times.preemptedUS) / 1000 }},
}

// averager sums up requests for Averages.
type averager struct {
	sums            Averages
	n               float64
	queueSum, reads float64 // of the requests whose router read the queue
}

func (v *averager) add(r *request) {
	v.n++
	if q := r.routing.chosen.queue; q >= 0 {
		v.queueSum += float64(q)
		v.reads++
	}
	for _, x := range averaged {
		*x.into(&v.sums) += x.of(r)
	}
}

func (v *averager) averages() Averages {
	m := v.sums
	for _, x := range averaged {
		*x.into(&m) /= v.n
	}
	if v.reads > 0 {
		queue := v.queueSum / v.reads
		m.Signal.Queue = &queue
	}
	return m
}

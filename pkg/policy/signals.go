package policy

import (
	"math"

	"blis/pkg/expr"
)

// Signals are the names that expressions may use. Every scope has those of the
// request; what else depends on where the policy stands.

// candidate is what a routing expression is about: one replica, in a view.
type candidate struct {
	*View
	replica *Replica
}

// signal is a field of expressions over T, and what must be kept up for it.
type signal[T any] struct {
	expr.Field[T]
	needs Needs
}

func num[T any](name, doc string, needs Needs, get func(*T) float64) signal[T] {
	return signal[T]{expr.Field[T]{Name: name, Doc: doc, Type: expr.Number, Number: get}, needs}
}

// text is of the request: there are no other texts.
func text[T any](name, doc string, get func(*T) string) signal[T] {
	return signal[T]{expr.Field[T]{Name: name, Doc: doc, Type: expr.Text, Text: get}, NeedRequest}
}

func flag[T any](name, doc string, needs Needs, get func(*T) bool) signal[T] {
	return signal[T]{expr.Field[T]{Name: name, Doc: doc, Type: expr.Flag, Flag: get}, needs}
}

// requestSignals are those of the request that of returns.
func requestSignals[T any](of func(*T) *Request, now func(*T) int64) []signal[T] {
	return []signal[T]{
		num("req.input_tokens", "Tokens of the prompt.", NeedRequest, func(t *T) float64 { return float64(of(t).InputTokens) }),
		num("req.predicted_output_tokens", "What the answer's length is predicted to be; where the request does not say, the mean of its tenant's completed ones.", NeedRequest|NeedPredicted,
			func(t *T) float64 { return of(t).Predicted }),
		text("req.slo_class", "The SLO class, \"\" without one.", func(t *T) string { return of(t).Class }),
		text("req.tier", "critical, standard or sheddable.", func(t *T) string { return of(t).Tier }),
		num("req.priority", "The class's priority; from routing on, what the priority policy gave.", NeedRequest|NeedPriority, func(t *T) float64 { return of(t).Priority }),
		text("req.tenant", "The tenant, \"\" without one.", func(t *T) string { return of(t).Tenant }),
		text("req.model", "The model.", func(t *T) string { return of(t).Model }),
		text("req.session", "The session, \"\" without one.", func(t *T) string { return of(t).Session }),
		num("req.turn", "Place in its session, from 0.", NeedRequest, func(t *T) float64 { return float64(of(t).Turn) }),
		num("req.arrival_s", "When it arrived, in s.", NeedRequest, func(t *T) float64 { return float64(of(t).ArrivalUS) / 1e6 }),
		num("req.deadline_s", "When it is aborted, in s; infinite without a deadline.", NeedRequest, func(t *T) float64 {
			if d := of(t).DeadlineUS; d >= 0 {
				return float64(d) / 1e6
			}
			return math.Inf(1)
		}),
		num("req.age_ms", "Time since its arrival.", NeedRequest, func(t *T) float64 { return float64(now(t)-of(t).ArrivalUS) / 1000 }),
		num("req.delays", "How often admission delayed it.", NeedRequest, func(t *T) float64 { return float64(of(t).Delays) }),
	}
}

// routerSignals are the router's own counts.
func routerSignals[T any](of func(*T) *View) []signal[T] {
	return []signal[T]{
		num("tenant.requests", "Requests of the tenant so far, this one included.", NeedTenant, func(t *T) float64 { return float64(of(t).Tenant.Requests) }),
		num("tenant.active", "Requests of the tenant that were admitted and have not left.", NeedTenant, func(t *T) float64 { return float64(of(t).Tenant.Active) }),
		num("tenant.rate", "The tenant's requests a second over the last 10 s.", NeedTenant|NeedRates, func(t *T) float64 { return of(t).Tenant.Rate }),
		flag("tenant.burst", "In the last second at least 10 requests of the tenant and three times its rate of the last 60 s.", NeedTenant|NeedRates, func(t *T) bool { return of(t).Tenant.Burst }),
		num("cluster.inflight", "Requests that were admitted and have not left.", 0, func(t *T) float64 { return float64(of(t).Cluster.Inflight) }),
		num("cluster.rate", "Requests offered a second over the last 10 s.", NeedClusterRates, func(t *T) float64 { return of(t).Cluster.Rate }),
		num("cluster.throughput", "Requests completed a second over the last 10 s.", NeedClusterRates, func(t *T) float64 { return of(t).Cluster.Throughput }),
		num("cluster.replicas", "Replicas that can hold the request.", 0, func(t *T) float64 { return float64(len(of(t).Replicas)) }),
		num("cluster.saturation", "Mean over these of the larger of queue/5 and KV usage/0.8.", NeedQueueDepth|NeedKVUtil, func(t *T) float64 { return of(t).Saturation() }),
		num("best.est_ttft_ms", "The least over these of queue length times mean step and the prompt's own time.", NeedQueueDepth|NeedShadow|NeedEstimate,
			func(t *T) float64 { return of(t).BestTTFTUS(math.NaN()) / 1000 }),
		num("best.queue_depth", "The shortest of their queues.", NeedQueueDepth, func(t *T) float64 {
			least := int32(math.MaxInt32)
			for i := range of(t).Replicas {
				least = min(least, of(t).Replicas[i].QueueDepth)
			}
			return float64(least)
		}),
	}
}

// replicaSignals are those of the candidate.
func replicaSignals() []signal[candidate] {
	type c = candidate
	all := []signal[c]{
		num("replica.index", "Number of the replica.", 0, func(t *c) float64 { return float64(t.replica.Index) }),
		num("replica.inflight", "Requests that were sent there and have not left; never stale.", 0, func(t *c) float64 { return float64(t.replica.Inflight) }),
		num("replica.prefix_match", "Share of the prompt's full blocks that the router believes to be there, 0..1.", NeedShadow, func(t *c) float64 { return t.replica.share() }),
		num("replica.queue_depth", "Requests that wait.", NeedQueueDepth, func(t *c) float64 { return float64(t.replica.QueueDepth) }),
		num("replica.running", "Sequences in the batch.", NeedRunning, func(t *c) float64 { return float64(t.replica.Running) }),
		num("replica.kv_util", "Share of the blocks in use, 0..1.", NeedKVUtil, func(t *c) float64 { return t.replica.KVUtil }),
		num("replica.free_blocks", "Blocks not in use.", NeedKVUtil, func(t *c) float64 { return float64(t.replica.FreeBlocks) }),
		num("replica.hit_rate", "Share of prompt tokens found cached over the last 10 s.", NeedHitRate, func(t *c) float64 { return t.replica.Stats.HitRate }),
		num("replica.recent_ttft_ms", "Mean time to first token over the last 10 s, 0 without any.", NeedRecentTTFT, func(t *c) float64 { return t.replica.Stats.RecentTTFTMS }),
		num("replica.recent_tpot_ms", "Mean time per output token over the last 10 s, 0 without any.", NeedRecentTPOT, func(t *c) float64 { return t.replica.Stats.RecentTPOTMS }),
		num("replica.est_wait_ms", "Queue length times the mean time of a step.", NeedEstWait, func(t *c) float64 { return t.replica.Stats.EstWaitMS }),
		num("replica.capacity", "How many more sequences it would run: max_num_seqs - running - queued.", NeedQueueDepth|NeedRunning, func(t *c) float64 { return float64(t.replica.Capacity()) }),
		flag("replica.ready", "Whether it serves.", 0, func(*c) bool { return true }),
	}
	for f := range Fields {
		if f == FieldCache {
			continue // has no signal: scorers see it
		}
		all = append(all, num("replica.age_ms."+FieldNames[f], "Age of replica."+FieldNames[f]+".", 1<<f,
			func(t *c) float64 { return float64(max(0, t.NowUS-max(0, t.replica.Stats.TakenUS[f]))) / 1000 }))
	}
	return all
}

// viewSignals are for admission, priority, and what is decided for all
// candidates together.
func viewSignals() []signal[View] {
	self := func(v *View) *View { return v }
	return append(requestSignals(func(v *View) *Request { return v.Request }, func(v *View) int64 { return v.NowUS }), routerSignals(self)...)
}

// candidateSignals are for scores and filters.
func candidateSignals() []signal[candidate] {
	all := requestSignals(func(c *candidate) *Request { return c.Request }, func(c *candidate) int64 { return c.NowUS })
	all = append(all, routerSignals(func(c *candidate) *View { return c.View })...)
	return append(all, replicaSignals()...)
}

// localSignals are for schedulers, with hints by their names; running ones add
// what only a running sequence has.
func localSignals(hints []string, running bool) []signal[Local] {
	type l = Local
	all := append(requestSignals(func(t *l) *Request { return t.Request }, func(t *l) int64 { return t.NowUS }),
		num("replica.queue_depth", "Requests that wait.", 0, func(t *l) float64 { return float64(t.Replica.QueueDepth) }),
		num("replica.running", "Sequences in the batch.", 0, func(t *l) float64 { return float64(t.Replica.Running) }),
		num("replica.kv_util", "Share of the blocks in use, 0..1.", 0, func(t *l) float64 { return t.Replica.KVUtil }),
		num("replica.free_blocks", "Blocks not in use.", 0, func(t *l) float64 { return float64(t.Replica.FreeBlocks) }))
	for i, name := range hints {
		all = append(all, num("hint."+name, "Hint of the priority policy.", 0, func(t *l) float64 { return t.Hints[i] }))
	}
	if running {
		all = append(all,
			num("seq.generated_tokens", "Tokens that have appeared.", 0, func(t *l) float64 { return float64(t.Sequence.Generated) }),
			num("seq.computed_tokens", "Tokens that are computed, which preemption throws away.", 0, func(t *l) float64 { return float64(t.Sequence.Computed) }),
			num("seq.blocks", "Blocks held.", 0, func(t *l) float64 { return float64(t.Sequence.Blocks) }))
	}
	return all
}

// fieldsOf are the signals as expressions take them.
func fieldsOf[T any](signals []signal[T]) []expr.Field[T] {
	fields := make([]expr.Field[T], len(signals))
	for i := range signals {
		fields[i] = signals[i].Field
	}
	return fields
}

// needsOf is what an expression needs of them.
func needsOf[T any](e *expr.Expression[T], signals []signal[T]) (n Needs) {
	used := map[string]bool{}
	for _, name := range e.Uses() {
		used[name] = true
	}
	for _, s := range signals {
		if used[s.Name] {
			n |= s.needs
		}
	}
	return n
}

// SignalEntry describes a signal and the stages whose expressions may use it.
type SignalEntry struct {
	Name, Doc string
	Type      expr.Type
	Stages    []string
}

// SignalEntries lists all signals that there are, but for hints, which bundles
// name.
func SignalEntries() []SignalEntry {
	var all []SignalEntry
	add := func(stage, name, doc string, kind expr.Type) {
		for i := range all {
			if all[i].Name == name {
				all[i].Stages = append(all[i].Stages, stage)
				return
			}
		}
		all = append(all, SignalEntry{name, doc, kind, []string{stage}})
	}
	for _, s := range viewSignals() {
		add("admission", s.Name, s.Doc, s.Type)
		add("priority", s.Name, s.Doc, s.Type)
	}
	for _, s := range candidateSignals() {
		add("routing", s.Name, s.Doc, s.Type)
	}
	for _, s := range localSignals(nil, false) {
		add("scheduler", s.Name, s.Doc, s.Type)
	}
	for _, s := range localSignals(nil, true) {
		add("preemption", s.Name, s.Doc, s.Type)
	}
	return all
}

package policy

import (
	"math"
	"slices"
	"strings"

	"blis/pkg/expr"
)

// Signals are the names that expressions may use. Every scope has those of the request; the others
// depend on the stage.

// candidate is the scope of a routing expression: one replica in a view.
type candidate struct {
	*View
	replica *Replica
}

// deadlineSignal is the only signal that can be infinite.
const deadlineSignal = "req.deadline_s"

// signal is a field of expressions over T, and the view fields it needs.
type signal[T any] struct {
	expr.Field[T]
	needs Needs
}

func num[T any](name, doc string, needs Needs, get func(*T) float64) signal[T] {
	return signal[T]{expr.Field[T]{Name: name, Doc: doc, Type: expr.Number, Number: get}, needs}
}

// text is a string signal of the request; no other strings exist.
func text[T any](name, doc string, get func(*T) string) signal[T] {
	return signal[T]{expr.Field[T]{Name: name, Doc: doc, Type: expr.Text, Text: get}, NeedRequest}
}

func flag[T any](name, doc string, needs Needs, get func(*T) bool) signal[T] {
	return signal[T]{expr.Field[T]{Name: name, Doc: doc, Type: expr.Flag, Flag: get}, needs}
}

// requestSignals are the signals of the request that of returns.
func requestSignals[T any](of func(*T) *Request, now func(*T) int64) []signal[T] {
	return []signal[T]{
		num("req.input_tokens", "Tokens of the prompt.", NeedRequest,
			func(t *T) float64 { return float64(of(t).InputTokens) }),
		num("req.predicted_output_tokens",
			"Predicted output length; without a prediction, the mean of the tenant's completed requests.",
			NeedRequest|NeedPredicted, func(t *T) float64 { return of(t).Predicted }),
		text("req.slo_class", "The SLO class, \"\" without one.", func(t *T) string { return of(t).Class }),
		text("req.tier", "critical, standard or sheddable.", func(t *T) string { return of(t).Tier }),
		num("req.priority", "Priority of the SLO class; from routing on, the result of the priority policy.",
			NeedRequest|NeedPriority, func(t *T) float64 { return of(t).Priority }),
		num("req.requested_priority", "Priority that it asks for, lower is more urgent; 0 if it asks for none.",
			NeedRequest, func(t *T) float64 { return of(t).Requested }),
		text("req.tenant", "The tenant, \"\" without one.", func(t *T) string { return of(t).Tenant }),
		text("req.model", "The model.", func(t *T) string { return of(t).Model }),
		text("req.session", "The session, \"\" without one.", func(t *T) string { return of(t).Session }),
		num("req.turn", "Index in its session, from 0.", NeedRequest,
			func(t *T) float64 { return float64(of(t).Turn) }),
		num("req.arrival_s", "Arrival time in s.", NeedRequest,
			func(t *T) float64 { return float64(of(t).ArrivalUS) / 1e6 }),
		num(
			deadlineSignal,
			"Deadline in s, at which it is aborted; infinite without one.",
			NeedRequest,
			func(t *T) float64 {
				if d := of(t).DeadlineUS; d >= 0 {
					return float64(d) / 1e6
				}
				return math.Inf(1)
			},
		),
		num("req.age_ms", "Time since arrival.", NeedRequest,
			func(t *T) float64 { return float64(now(t)-of(t).ArrivalUS) / 1000 }),
		num("req.delays", "How often admission delayed it.", NeedRequest,
			func(t *T) float64 { return float64(of(t).Delays) }),
	}
}

// routerSignals are the router's own counts.
func routerSignals[T any](of func(*T) *View) []signal[T] {
	return []signal[T]{
		num("tenant.requests", "Requests of the tenant so far, including this one.", NeedTenant,
			func(t *T) float64 { return float64(of(t).Tenant.Requests) }),
		num("tenant.active", "Requests of the tenant in flight (admitted, not yet ended).", NeedTenant,
			func(t *T) float64 { return float64(of(t).Tenant.Active) }),
		num("tenant.rate", "Requests of the tenant per second over the last 10 s.", NeedTenant|NeedRates,
			func(t *T) float64 { return of(t).Tenant.Rate }),
		flag("tenant.burst",
			"Whether the tenant sent at least 10 requests in the last second, at three times its 60 s rate.",
			NeedTenant|NeedRates, func(t *T) bool { return of(t).Tenant.Burst }),
		num("cluster.inflight", "Requests in flight (admitted, not yet ended).", 0,
			func(t *T) float64 { return float64(of(t).Cluster.Inflight) }),
		num("cluster.rate", "Requests offered per second over the last 10 s.", NeedClusterRates,
			func(t *T) float64 { return of(t).Cluster.Rate }),
		num("cluster.throughput", "Requests completed per second over the last 10 s.", NeedClusterRates,
			func(t *T) float64 { return of(t).Cluster.Throughput }),
		num("cluster.replicas", "Replicas that can hold the request.", 0,
			func(t *T) float64 { return float64(len(of(t).Replicas)) }),
		num("cluster.saturation", "Mean of max(queue/5, KV usage/0.8) over these replicas.",
			NeedQueueDepth|needKVUtil, func(t *T) float64 { return of(t).Saturation() }),
		num("best.est_ttft_ms", "Lowest estimated TTFT of these replicas: queue depth x mean step + prompt time.",
			NeedQueueDepth|NeedShadow|NeedEstimate,
			func(t *T) float64 { return of(t).BestTTFTUS(math.NaN()) / 1000 }),
		num(
			"best.queue_depth",
			"Queue depth of the replica with the shortest queue.",
			NeedQueueDepth,
			func(t *T) float64 {
				shortest := int32(math.MaxInt32)
				for i := range of(t).Replicas {
					shortest = min(shortest, of(t).Replicas[i].QueueDepth)
				}
				return float64(shortest)
			},
		),
	}
}

// replicaSignals are the signals of the candidate.
func replicaSignals() []signal[candidate] {
	type c = candidate
	all := []signal[c]{
		num("replica.index", "Index of the replica.", 0, func(t *c) float64 { return float64(t.replica.Index) }),
		num("replica.inflight", "Requests sent there that have not left; never stale.", 0,
			func(t *c) float64 { return float64(t.replica.Inflight) }),
		num("replica.prefix_match",
			"Share of the prompt's full blocks that the router expects to be cached there, 0..1.", NeedShadow,
			func(t *c) float64 { return t.replica.matchShare() }),
		num("replica.queue_depth", "Waiting requests.", NeedQueueDepth,
			func(t *c) float64 { return float64(t.replica.QueueDepth) }),
		num("replica.running", "Sequences in the batch.", NeedRunning,
			func(t *c) float64 { return float64(t.replica.Running) }),
		num("replica.kv_util", "Share of KV blocks in use, 0..1.", needKVUtil,
			func(t *c) float64 { return t.replica.KVUtil }),
		num("replica.free_blocks", "Free KV blocks.", needKVUtil,
			func(t *c) float64 { return float64(t.replica.FreeBlocks) }),
		num("replica.hit_rate", "Share of prompt tokens found in the cache over the last 10 s.", NeedHitRate,
			func(t *c) float64 { return t.replica.Stats.HitRate }),
		num("replica.recent_ttft_ms", "Mean time to first token over the last 10 s, 0 without any.", NeedRecentTTFT,
			func(t *c) float64 { return t.replica.Stats.RecentTTFTMS }),
		num("replica.recent_tpot_ms", "Mean time per output token over the last 10 s, 0 without any.", NeedRecentTPOT,
			func(t *c) float64 { return t.replica.Stats.RecentTPOTMS }),
		num("replica.est_wait_ms", "Queue depth x mean step time.", NeedEstWait,
			func(t *c) float64 { return t.replica.Stats.EstWaitMS }),
		num("replica.kv_util_cpu", "Share of the blocks of the KV tier cpu in use, 0..1.", NeedTier,
			func(t *c) float64 { return t.replica.Stats.KVUtilCPU }),
		num("replica.loading", "Requests that load from KV tiers; queue_depth has them, too.", NeedTier,
			func(t *c) float64 { return float64(t.replica.Stats.Loading) }),
		num("replica.capacity", "Free sequence slots: max_num_seqs - running - queued.", NeedQueueDepth|NeedRunning,
			func(t *c) float64 { return float64(t.replica.Capacity()) }),
		flag("replica.ready", "Whether it accepts requests.", 0, func(*c) bool { return true }),
	}
	for f := range Fields {
		if f == FieldCache {
			continue // no signal: only scorers read it
		}
		all = append(all, num("replica.age_ms."+FieldNames[f], "Age of replica."+FieldNames[f]+".", 1<<f,
			func(t *c) float64 { return float64(max(0, t.NowUS-max(0, t.replica.Stats.TakenUS[f]))) / 1000 }))
	}
	return all
}

// viewSignals are for admission, priority, and conditions of routing trees over policies.
func viewSignals() []signal[View] {
	self := func(v *View) *View { return v }
	return append(
		requestSignals(func(v *View) *Request { return v.Request }, func(v *View) int64 { return v.NowUS }),
		routerSignals(self)...)
}

// candidateSignals are for scores and filters.
func candidateSignals() []signal[candidate] {
	all := requestSignals(func(c *candidate) *Request { return c.Request }, func(c *candidate) int64 { return c.NowUS })
	all = append(all, routerSignals(func(c *candidate) *View { return c.View })...)
	return append(all, replicaSignals()...)
}

// localSignals are for schedulers and preemption, with hints by their names; running adds the
// signals of a running sequence.
func localSignals(hints []string, running bool) []signal[Local] {
	type l = Local
	all := append(requestSignals(func(t *l) *Request { return t.Request }, func(t *l) int64 { return t.NowUS }),
		num("replica.queue_depth", "Waiting requests.", 0, func(t *l) float64 { return float64(t.Replica.QueueDepth) }),
		num("replica.running", "Sequences in the batch.", 0, func(t *l) float64 { return float64(t.Replica.Running) }),
		num("replica.kv_util", "Share of KV blocks in use, 0..1.", 0, func(t *l) float64 { return t.Replica.KVUtil }),
		num("replica.free_blocks", "Free KV blocks.", 0, func(t *l) float64 { return float64(t.Replica.FreeBlocks) }))
	for i, name := range hints {
		all = append(all,
			num("hint."+name, "Hint of the priority policy.", 0, func(t *l) float64 { return t.Hints[i] }))
	}
	if running {
		all = append(
			all,
			num("seq.generated_tokens", "Tokens emitted so far.", 0,
				func(t *l) float64 { return float64(t.Sequence.Generated) }),
			num("seq.computed_tokens", "Computed tokens, which a preemption discards.", 0,
				func(t *l) float64 { return float64(t.Sequence.Computed) }),
			num("seq.blocks", "Blocks held.", 0, func(t *l) float64 { return float64(t.Sequence.Blocks) }),
		)
	}
	return all
}

// fieldsOf returns the expression fields of signals.
func fieldsOf[T any](signals []signal[T]) []expr.Field[T] {
	fields := make([]expr.Field[T], len(signals))
	for i := range signals {
		fields[i] = signals[i].Field
	}
	return fields
}

// needsOf returns what an expression that uses these signals needs.
func needsOf[T any](uses []string, signals []signal[T]) (n Needs) {
	used := map[string]bool{}
	for _, name := range uses {
		name, _, _ = strings.Cut(name, "[") // an element of a table or a list
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

// SignalEntries returns all signals except hints, which bundles name. state.NAME is for all variables.
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
	for _, s := range deploymentSignals() {
		add("autoscale", s.Name, s.Doc, s.Type)
	}
	for _, s := range memberSignals() {
		add("fleet", s.Name, s.Doc, s.Type)
	}
	for _, stage := range []string{"admission", "priority", "routing", "scheduler", "preemption", "autoscale"} {
		var names []string
		if hasState(stage, "expression") {
			names = []string{"NAME"}
		}
		for _, s := range slices.Concat(memorySignals[View](names), decisionSignals[View](stage)) {
			add(stage, s.Name, s.Doc, s.Type)
		}
	}
	return all
}

package sim

import (
	"cmp"
	"iter"
	"math"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/kv"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// bounds finds what no routing can beat. No request takes less than alone on a replica whose cache holds all that
// it shares with any other prompt of the workload, whatever is served first. What requests must wait for each other
// comes on top, see workItem.
type bounds struct {
	s       *simulation
	engines []*engine.Engine // of the deployments
	tree    *kv.Tree
	prompts requestTable
	// users are how many prompts and outputs have each node.
	users map[kv.Node]int
	// The sums over requests: alone, with targets, and those that meet them.
	calls, judged, met int64
	alone              des.Time
	items              [][]workItem // by model
}

// bound returns the mean E2E latency and the met SLO targets that no routing can beat; nil if step times jitter.
func (s *simulation) bound(c *cluster.Config, w workload) (*metrics.Bound, error) {
	b := &bounds{s: s, tree: kv.NewTree(), users: map[kv.Node]int{}}
	for i := range c.Deployments {
		d := &c.Deployments[i]
		if d.Latency.Jitter.CV > 0 {
			return nil, nil
		}
		cfg := engineConfig(d)
		// Requests have no grammars here: all may be compiled already, and the masks filled in no time.
		if cfg.LoRA != nil { // all adapters may be there already
			cfg.LoRA.LoadUS, cfg.LoRA.CopyUS = 0, 0
		}
		cfg.Encoder = nil // all embeddings may be there already
		b.engines = append(b.engines, engine.New(cfg, s.deployments[i].model,
			kv.NewCache(b.tree, cacheConfig(d))))
	}
	for i := range w {
		for q := range w[i].calls() {
			for _, span := range b.prompts.resolvePrompt(b.tree, nil, q, false) {
				b.users[span.Node]++
			}
		}
	}
	b.items = make([][]workItem, len(s.models))
	for i := range w {
		if err := b.add(&w[i]); err != nil {
			return nil, err
		}
	}
	if b.calls == 0 {
		return nil, nil
	}
	sum := float64(b.alone) + b.waiting(c)
	bound := &metrics.Bound{E2EMeanMS: sum / float64(b.calls) / 1000}
	if b.judged > 0 {
		ratio := float64(b.met) / float64(b.judged)
		bound.GoodputRatio = &ratio
	}
	return bound, nil
}

// add counts an arrival.
func (b *bounds) add(a *recordedArrival) error {
	o, model, known := workItem{arrival: float64(*a.At())}, -1, true
	var calls []des.Time // of a session, 0 for its tools
	if a.IsSession {
		calls = make([]des.Time, len(a.Session.Steps))
	}
	for q, k := range a.calls() {
		call, err := b.call(q)
		if err != nil {
			return err
		}
		of := b.s.modelIndex(q.Model)
		known = known && call.e2e > 0 && (model < 0 || of == model)
		model = of
		o.least += float64(call.e2e)
		o.decoding += float64(call.decoding)
		o.prefill += float64(q.InputTokens - int64(call.shared))
		o.decode += float64(q.OutputTokens - 1)
		if a.IsSession {
			calls[k] = call.e2e
		}
	}
	if a.IsSession {
		o.least = float64(longestPath(&a.Session, calls))
	}
	if known && model >= 0 { // a session that calls several models waits at each of them; that is left out
		b.items[model] = append(b.items[model], o)
	}
	return nil
}

// soloCall is a request alone, on the deployment that is fastest with it: the times until its first and its last
// token, 0 if none can serve it. decoding is the longest time between these on any deployment.
type soloCall struct {
	ttft, e2e, decoding des.Time
	shared              int // prompt tokens that may be cached
}

// call counts a request.
func (b *bounds) call(q *stream.Request) (c soloCall, err error) {
	if model := b.s.modelIndex(q.Model); model >= 0 {
		path, shared := b.shared(q)
		c.shared = shared
		for _, i := range b.s.models[model].deployments {
			first, last, err := b.fastest(i, q, path, shared)
			if err != nil {
				return c, err
			}
			if last > 0 && (c.e2e == 0 || last < c.e2e) {
				c.ttft, c.e2e = first, last
			}
			c.decoding = max(c.decoding, last-first)
		}
	}
	b.calls, b.alone = b.calls+1, b.alone+c.e2e
	if class := b.s.router.names.classes[q.SLOClass]; class != nil && class.Targets != (stream.Targets{}) {
		b.judged++
		if metrics.Meets(class.Targets, c.ttft, c.e2e, q.OutputTokens) {
			b.met++
		}
	}
	return c, nil
}

// waiting is a lower bound of the time in all, in µs, that requests take more than alone.
func (b *bounds) waiting(c *cluster.Config) (sum float64) {
	for i, m := range b.s.models {
		var costs []*stepPrices
		replicas := 0
		for _, d := range m.deployments {
			of := stepCosts(&c.Deployments[d], b.s.deployments[d].model)
			if costs == nil {
				costs = of
			}
			for k := range costs {
				costs[k] = costs[k].merge(of[min(k, len(of)-1)])
			}
			replicas += b.s.deployments[d].end - b.s.deployments[d].first
		}
		most := 0.0
		for _, cost := range costs {
			most = max(most, cost.total(b.items[i], float64(replicas), maxHalvings))
		}
		sum += most
	}
	return sum
}

// shared returns the path of a prompt, and how many of its tokens may be cached since another prompt has them.
func (b *bounds) shared(q *stream.Request) (path kv.Path, tokens int) {
	path = b.prompts.resolvePrompt(b.tree, nil, q, false)
	for _, span := range path {
		if b.users[span.Node] < 2 {
			break
		}
		tokens = int(min(int64(span.End), q.InputTokens-1))
	}
	return path, tokens
}

// fastest returns the TTFT and the E2E latency of a request alone on a replica of deployment i, 0 if it cannot
// serve it.
func (b *bounds) fastest(i int, q *stream.Request, path kv.Path, shared int) (ttft, e2e des.Time, err error) {
	d := &b.s.deployments[i]
	if q.Grammar != "" && !d.grammars.simulated ||
		d.limits.rejectReason(q.InputTokens, q.OutputTokens, q.Adapter) != "" {
		return 0, 0, nil
	}
	if shared > 0 { // another request computes these tokens
		if _, _, err := alone(b.engines[i], engine.Request{Path: path, Input: shared, Output: 1,
			Adapter: b.s.router.names.adapter(q.Adapter)}); err != nil {
			return 0, 0, err
		}
	}
	ttft, e2e, err = alone(b.engines[i], engine.Request{Path: path, Input: int(q.InputTokens),
		Output: int(q.OutputTokens), Drafts: b.drafts(q), Adapter: b.s.router.names.adapter(q.Adapter)})
	queueing := d.model.Queueing(q.InputTokens)
	return ttft + queueing, e2e + queueing, err
}

// drafts is what decides which drafts of a request are accepted: the same as in the run.
func (b *bounds) drafts(q *stream.Request) engine.Drafts {
	d := engine.Drafts{Seed: draftSeed(b.s.draftSeed, q.ID), Acceptance: -1}
	if q.DraftAcceptance != nil {
		d.Acceptance = *q.DraftAcceptance
	}
	return d
}

// alone runs a request on an idle engine, from the end of its last step on, and returns the times until its client
// has the first token and the last.
func alone(e *engine.Engine, r engine.Request) (first, last des.Time, err error) {
	start := e.Step().End + 1_000_000_000 // later than any token of the last request
	e.Enqueue(r)
	for now := start; ; {
		started, err := e.Start(now)
		if err != nil || !started {
			return first - start, last - start, err
		}
		e.Coast(math.MaxInt64, math.MaxInt)
		now = e.Step().End
		result, err := e.Finish(now)
		if err != nil {
			return 0, 0, err
		}
		if last = result.DeliveredAt; len(result.First) > 0 {
			first = last
		}
	}
}

// calls are its requests, those of a session without times, with their steps.
func (a *recordedArrival) calls() iter.Seq2[*stream.Request, int] {
	return func(yield func(*stream.Request, int) bool) {
		if !a.IsSession {
			yield(&a.Request, 0)
			return
		}
		v := &a.Session
		for k := range v.Steps {
			step := &v.Steps[k]
			if step.Tool == "" && !yield(&stream.Request{ID: step.RequestID(v.ID), InputTokens: step.InputTokens,
				OutputTokens: step.OutputTokens, Prompt: v.AppendPrompt(nil, k), SLOClass: v.SLOClass,
				DraftAcceptance: step.DraftAcceptance, Model: cmp.Or(step.Model, v.Model), Adapter: v.Adapter,
				Grammar: step.Grammar}, k) {
				return
			}
		}
	}
}

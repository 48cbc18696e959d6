// Package capacity computes how much of a cluster's serving capacity a workload
// takes: offered load over capacity, where 1 is saturation.
//
//	load = replica time that the calls need / (replicas · time offered)
//
// The replica time is that of saturated replicas, whose steps cannot share more
// work: each step is as full as the engine allows with calls like these, and takes
// as long as the deployment's latency model says. On average a saturated step
// finishes r calls, so one call takes T(r)/r of a replica:
//
//	a step computes r·(prompt tokens) and r·(output − 1) decode tokens;
//	max_num_seqs:           r·(steps of a call) ≤ max_num_seqs, where a prompt takes
//	                        one step per chunk and an output takes output − 1; with
//	                        asynchronous scheduling the batch slot is free one step later;
//	max_num_batched_tokens: r·(tokens that a call computes) ≤ max_num_batched_tokens;
//	kv_cache:               r·(KV tokens of a call, summed over its steps) ≤ the cache's.
//
// r is the largest value that meets all three. T is the mean over steps with prompt
// chunks, as many as the calls have chunks, and over steps that only decode.
//
// What the prefix cache saves depends on when and where calls run, so there are two
// loads. One assumes that every prefix of an earlier call is found, computed once and
// stored once. The other assumes that nothing is found or shared. The truth lies
// between the two.
//
// Not modeled: preemption and recomputation, uneven routing, and variation of the
// batch around its mean. One replica with a permanent backlog serves 1 to 4 % less than
// computed here when max_num_seqs or max_num_batched_tokens limits it, and 4 to 9 % less
// when the KV cache does.
package capacity

import (
	"fmt"
	"iter"
	"slices"

	"blis/pkg/cluster"
)

// Call is one model call. Cached counts the leading prompt tokens that an earlier
// call also had. An empty Model is the cluster's first model.
type Call struct {
	Model                 string
	Input, Output, Cached int64
}

// Load is a workload's offered load relative to a cluster's capacity.
type Load struct {
	// Offered is the highest offered load over capacity of any model, with all shared
	// prefixes found in the cache. Uncached is the same with none found. Both are
	// absent if no call can be served or no time passes.
	Offered  *float64 `json:"offered_over_capacity,omitempty"`
	Uncached *float64 `json:"uncached,omitempty"`
	// OfferedS is the time in seconds over which the calls arrive.
	OfferedS float64 `json:"offered_s"`
	Models   []Model `json:"models"`
	// Unserved counts calls for a model without a deployment. TooLong counts calls
	// longer than any deployment of their model accepts. Neither counts toward load.
	Unserved int64 `json:"unserved,omitempty"`
	TooLong  int64 `json:"too_long,omitempty"`
}

// Model is the load on one model's deployments.
type Model struct {
	Model    string `json:"model"`
	Replicas int    `json:"replicas"`
	Calls    int64  `json:"calls"`
	// Offered and Uncached are as in Load. The capacities are in calls per second of
	// all replicas together.
	Offered          *float64 `json:"offered_over_capacity,omitempty"`
	Uncached         *float64 `json:"uncached,omitempty"`
	Capacity         float64  `json:"capacity_per_s"`
	CapacityUncached float64  `json:"capacity_uncached_per_s"`
	// Limit names what limits the steps of the first deployment when prefixes are
	// found: max_num_seqs, max_num_batched_tokens or kv_cache.
	Limit string `json:"limit"`
}

// Of returns the load of calls that arrive within us µs.
func Of(c *cluster.Config, calls iter.Seq[Call], us int64) (*Load, error) {
	models, err := modelsOf(c)
	if err != nil {
		return nil, err
	}
	l := &Load{OfferedS: float64(us) / 1e6, Models: []Model{}}
	l.distribute(models, calls)
	for _, m := range models {
		if len(m.calls) == 0 {
			continue
		}
		part := m.load()
		if us > 0 {
			perSecond := float64(part.Calls) * 1e6 / float64(us)
			part.Offered, part.Uncached = new(perSecond/part.Capacity), new(perSecond/part.CapacityUncached)
			l.Offered, l.Uncached = larger(l.Offered, part.Offered), larger(l.Uncached, part.Uncached)
		}
		l.Models = append(l.Models, part)
	}
	return l, nil
}

func larger(a, b *float64) *float64 {
	if a == nil || *b > *a {
		return b
	}
	return a
}

// distribute gives each model the calls that it can serve.
func (l *Load) distribute(models []*servedModel, calls iter.Seq[Call]) {
	byName := map[string]*servedModel{"": models[0]}
	for _, m := range models {
		byName[m.name] = m
	}
	for call := range calls {
		c := lengths{int32(call.Input), int32(call.Output), int32(call.Cached)}
		switch m := byName[call.Model]; {
		case m == nil:
			l.Unserved++
		case !m.accepts(c):
			l.TooLong++
		default:
			m.calls = append(m.calls, c)
		}
	}
}

// servedModel is a model with its deployments and the calls to it.
type servedModel struct {
	name    string
	engines []*engine
	calls   []lengths
}

// lengths are the token counts of a Call. Stream records limit them to 31 bits.
type lengths struct{ input, output, cached int32 }

// modelsOf returns the models of a cluster in file order.
func modelsOf(c *cluster.Config) ([]*servedModel, error) {
	var models []*servedModel
	for i := range c.Deployments {
		d := &c.Deployments[i]
		e, err := newEngine(d)
		if err != nil {
			return nil, fmt.Errorf("deployment %s: %w", d.ID, err)
		}
		at := slices.IndexFunc(models, func(m *servedModel) bool { return m.name == d.Model })
		if at < 0 {
			at = len(models)
			models = append(models, &servedModel{name: d.Model})
		}
		models[at].engines = append(models[at].engines, e)
	}
	return models, nil
}

// accepts reports whether any deployment can serve a call of these lengths.
func (m *servedModel) accepts(c lengths) bool {
	return slices.ContainsFunc(m.engines, func(e *engine) bool { return e.accepts(c) })
}

// load returns the model's capacities. Different deployments are assumed to receive
// calls in proportion to their capacity.
func (m *servedModel) load() Model {
	part := Model{Model: m.name, Calls: int64(len(m.calls))}
	for i, e := range m.engines {
		part.Replicas += e.replicas
		calls := m.calls
		if len(m.engines) > 1 { // others may have accepted some
			calls = slices.DeleteFunc(slices.Clone(calls), func(c lengths) bool { return !e.accepts(c) })
		}
		perSecond, limit := e.capacity(calls, e.caching)
		part.Capacity += perSecond
		if i == 0 {
			part.Limit = limit
		}
		perSecond, _ = e.capacity(calls, false)
		part.CapacityUncached += perSecond
	}
	return part
}

// Package capacity says how much of a cluster a workload takes: offered load over
// capacity, of which 1 is saturation.
//
//	load = busy time that the calls need / (replicas · time offered)
//
// The busy time is that of replicas at their limit, where nothing more can be
// shared: each step is as full as the engine lets it be with calls like these,
// and takes what the deployment's latency model says. In its long-run mean a
// step at the limit finishes r calls, so that a call takes T(r)/r of a replica:
//
//	a step computes r·(prompt tokens) and r·(output − 1) decode tokens;
//	seats:  r·(steps that a call stays) ≤ max_num_seqs, where a prompt stays
//	        for as many steps as it has chunks, an answer for output − 1, and
//	        with asynchronous scheduling the seat for one more;
//	budget: r·(tokens that a call computes) ≤ max_num_batched_tokens;
//	memory: r·(slots that a call holds, summed over its steps) ≤ the cache's.
//
// r is the largest that keeps all three. T is the mean of the steps that compute
// prompts, as many as calls have chunks, and of those that only decode.
//
// What the prefix cache saves depends on when and where calls run. There are two
// loads: one with every prefix found that any earlier call had, computed once
// and held once; one with nothing found and everything held by itself. The truth
// lies between.
//
// Left out: preemptions, and what they compute twice; that routers do not spread
// calls evenly; that a step at the limit may be fuller or emptier than the mean.
// One replica that always has more to do gets through 1 to 4 % less than this
// says where seats or the budget bound it, and 4 to 9 % less where memory does.
package capacity

import (
	"fmt"
	"iter"

	"blis/pkg/cluster"
)

// Call is one call of a model. Cached are the leading tokens of its prompt that
// some earlier call had. Model is "" for the cluster's first.
type Call struct {
	Model                 string
	Input, Output, Cached int64
}

// Load is how much of a cluster a workload takes.
type Load struct {
	// Offered is the largest of the models': offered load over capacity, with all
	// shared prefixes found in caches. Uncached is the largest where none is.
	// They are absent where no call can be served or no time passes.
	Offered  *float64 `json:"offered_over_capacity,omitempty"`
	Uncached *float64 `json:"uncached,omitempty"`
	// OfferedS is the time, in s, that the calls are spread over.
	OfferedS float64 `json:"offered_s"`
	Models   []Model `json:"models"`
	// Unserved calls ask for a model that nobody serves, TooLong are longer than
	// any deployment of theirs takes. They count nowhere else.
	Unserved int64 `json:"unserved,omitempty"`
	TooLong  int64 `json:"too_long,omitempty"`
}

// Model is the part of one model's deployments.
type Model struct {
	Model    string `json:"model"`
	Replicas int    `json:"replicas"`
	Calls    int64  `json:"calls"`
	// Offered and Uncached are as in Load, the capacities in calls per second of
	// all replicas.
	Offered          *float64 `json:"offered_over_capacity,omitempty"`
	Uncached         *float64 `json:"uncached,omitempty"`
	Capacity         float64  `json:"capacity_per_s"`
	CapacityUncached float64  `json:"capacity_uncached_per_s"`
	// Limit is what bounds the steps of the first deployment, with prefixes found:
	// seats, budget or memory.
	Limit string `json:"limit"`
}

// Of returns the load of calls that are offered within us µs.
func Of(c *cluster.Config, calls iter.Seq[Call], us int64) (*Load, error) {
	models, err := deployed(c)
	if err != nil {
		return nil, err
	}
	l := &Load{OfferedS: float64(us) / 1e6, Models: []Model{}}
	l.assign(models, calls)
	for _, m := range models {
		if len(m.calls) == 0 {
			continue
		}
		part := m.load()
		if us > 0 {
			perSecond := float64(part.Calls) * 1e6 / float64(us)
			part.Offered, part.Uncached = pointer(perSecond/part.Capacity), pointer(perSecond/part.CapacityUncached)
			l.Offered, l.Uncached = larger(l.Offered, part.Offered), larger(l.Uncached, part.Uncached)
		}
		l.Models = append(l.Models, part)
	}
	return l, nil
}

func pointer(x float64) *float64 { return &x }

func larger(a, b *float64) *float64 {
	if a == nil || *b > *a {
		return b
	}
	return a
}

// assign gives each model the calls that it can serve.
func (l *Load) assign(models []*model, calls iter.Seq[Call]) {
	byName := map[string]*model{"": models[0]}
	for _, m := range models {
		byName[m.name] = m
	}
	for call := range calls {
		c := lengths{int32(call.Input), int32(call.Output), int32(call.Cached)}
		switch m := byName[call.Model]; {
		case m == nil:
			l.Unserved++
		case !m.holds(c):
			l.TooLong++
		default:
			m.calls = append(m.calls, c)
		}
	}
}

// model is a model at work: its deployments and its calls.
type model struct {
	name    string
	engines []*engine
	calls   []lengths
}

// lengths are those of a Call, which the wire keeps within 31 bits.
type lengths struct{ input, output, cached int32 }

// deployed returns the models of a cluster, in the order of its file.
func deployed(c *cluster.Config) ([]*model, error) {
	var models []*model
	byName := map[string]*model{}
	for i := range c.Deployments {
		e, err := newEngine(&c.Deployments[i])
		if err != nil {
			return nil, fmt.Errorf("deployment %s: %w", c.Deployments[i].ID, err)
		}
		name := c.Deployments[i].Model
		if byName[name] == nil {
			byName[name] = &model{name: name}
			models = append(models, byName[name])
		}
		byName[name].engines = append(byName[name].engines, e)
	}
	return models, nil
}

// holds reports whether any deployment can serve the call at all.
func (m *model) holds(c lengths) bool {
	for _, e := range m.engines {
		if e.holds(c) {
			return true
		}
	}
	return false
}

// load returns the model's capacities. Deployments that differ are taken to get
// calls in proportion to what they can serve.
func (m *model) load() Model {
	part := Model{Model: m.name, Calls: int64(len(m.calls))}
	for i, e := range m.engines {
		part.Replicas += e.replicas
		perSecond, limit := e.capacity(m.calls, e.caches)
		part.Capacity += perSecond
		if i == 0 {
			part.Limit = limit
		}
		perSecond, _ = e.capacity(m.calls, false)
		part.CapacityUncached += perSecond
	}
	return part
}

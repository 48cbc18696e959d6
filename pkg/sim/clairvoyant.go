package sim

import (
	"cmp"

	"blis/pkg/engine"
	"blis/pkg/latency"
	"blis/pkg/metrics"
	"blis/pkg/policy"
)

// clairvoyant is the routing of --clairvoyant. It follows a plan that was made with knowledge of all arrivals and
// output lengths: a rule for each window of arrivals. The rules use the true state of the replicas.
type clairvoyant struct {
	*oracle
	plan *plan
	// next is the candidate whose turn it is by the rule rotate.
	next int
}

// plan is what a clairvoyant router does: rules[k] after k times window arrivals, the last one to the end.
type plan struct {
	rules  []int
	window int64
}

// ruleAt is the rule for the decisions after that many arrivals.
func (p *plan) ruleAt(arrivals int64) int {
	return p.rules[min(int64(len(p.rules)), max(1, (arrivals+p.window-1)/p.window))-1]
}

func newClairvoyant(replicas int, p *plan) *clairvoyant {
	return &clairvoyant{oracle: newOracle(replicas), plan: p}
}

func (c *clairvoyant) clone() chooser {
	return &clairvoyant{oracle: c.oracle.clone(), plan: c.plan, next: c.next}
}

// outlook is what a rule knows of a candidate: its estimate, the requests that it holds, cached prompt tokens,
// and by how many µs in all the request would delay these requests.
type outlook struct {
	estimate
	held, cached int64
	delays       float64
	// meets: the request would meet its targets.
	meets bool
}

// A routingRule returns the cost of a candidate; the lowest is chosen, of equal ones that with the lowest E2E latency.
type routingRule func(o *outlook) float64

// rules are what a plan is made of. Two more have no cost: keepPolicy and rotate.
var rules = []routingRule{
	func(o *outlook) float64 { return float64(o.e2e) },
	func(o *outlook) float64 { return float64(o.ttft) },
	func(o *outlook) float64 { return float64(o.e2e) + o.delays },
	func(o *outlook) float64 { return float64(o.e2e) + float64(4*o.delays) },
	func(o *outlook) float64 { return float64(o.held) },
	func(o *outlook) float64 { return -float64(o.cached) },
	func(o *outlook) float64 { return float64(o.held) - float64(float64(o.cached)/1000) },
	// A request that misses its targets anyway goes where it delays the others least.
	func(o *outlook) float64 {
		if o.meets {
			return float64(o.e2e) - missCost
		}
		return o.delays
	},
}

// missCost is longer than any E2E latency in µs.
const missCost = 1e15

const (
	keepPolicy = -1 - iota
	rotate
)

// allRules are the rules that plans are made of. The policy is the first, which wins a tie.
func allRules() []int {
	all := []int{keepPolicy, rotate}
	for i := range rules {
		all = append(all, i)
	}
	return all
}

// choose chooses by the plan. The policy is asked too, so that its state is that of a run without the plan.
func (c *clairvoyant) choose(s *simulation, slot int32, v *policy.View) (policy.Choice, error) {
	own, err := policyChooser{}.choose(s, slot, v)
	return c.follow(s, slot, v, own, err)
}

// choosePrefill chooses by the same rule.
func (c *clairvoyant) choosePrefill(s *simulation, slot int32, v *policy.View) (policy.Choice, error) {
	own, err := policyChooser{}.choosePrefill(s, slot, v)
	return c.follow(s, slot, v, own, err)
}

// follow replaces the policy's own choice by that of the plan.
func (c *clairvoyant) follow(s *simulation, slot int32, v *policy.View, own policy.Choice,
	err error) (policy.Choice, error) {
	number := c.plan.ruleAt(s.counts.Offered)
	if err != nil || number == keepPolicy {
		return own, err
	}
	if err := s.observers.notify(s, onRouting, slot); err != nil {
		return policy.Choice{}, err
	}
	r := s.request(slot)
	best := c.estimate(s, r, v)[0]
	if number == rotate {
		best = c.estimates[c.next%len(c.estimates)]
		c.next++
	} else {
		best = c.lowest(s, r, rules[number])
	}
	for _, e := range c.estimates {
		v.Trace.RecordLoad(e.candidate, float64(e.e2e)/1000)
	}
	return policy.Choice{Candidate: best.candidate, Score: float64(best.e2e) / 1000, Reason: "clairvoyant"}, nil
}

// lowest returns the candidate with the lowest cost.
func (c *clairvoyant) lowest(s *simulation, r *request, of routingRule) estimate {
	best, least := c.estimates[0], 0.0
	for i, e := range c.estimates {
		o := c.outlook(s, r, e, &c.forecasts[i])
		if cost := of(&o); i == 0 || cmp.Or(cmp.Compare(cost, least), cmp.Compare(e.e2e, best.e2e)) < 0 {
			best, least = e, cost
		}
	}
	return best
}

// outlook returns what rules know of a candidate.
func (c *clairvoyant) outlook(s *simulation, r *request, e estimate, f *engine.Forecast) outlook {
	at := &s.replicas[e.replica]
	o := outlook{estimate: e, cached: f.Cached, held: int64(at.engine.Running()+at.engine.Waiting()) +
		int64(len(c.sent[e.replica]))}
	o.delays = delays(s.deployments[at.deployment].model, f, r)
	o.meets = metrics.Meets(r.class.Targets, e.ttft, e.e2e, r.out.OutputTokens)
	return o
}

// delays is by how many µs a request delays the requests of a replica, in all: those that decode or wait by its
// prompt, those that decode by its output.
func delays(m latency.Model, f *engine.Forecast, r *request) float64 {
	now := latency.Batch{Decode: f.Decode, Context: f.Context}
	step, tokens := int64(0), max(1, r.out.InputTokens-f.Cached)
	if f.Decode > 0 {
		step = m.Step(now)
	}
	prompt := now
	prompt.Prefill, prompt.Chunks, prompt.PriorContext = tokens, 1, f.Cached
	prompt.Pairs = tokens*f.Cached + tokens*(tokens+1)/2
	sum := float64(float64(f.Decode+f.Queued) * float64(m.Step(prompt)-step))
	if f.Decode > 0 {
		now.Decode, now.Context = now.Decode+1, now.Context+r.out.InputTokens+r.out.OutputTokens/2
		longer := float64(m.Step(now) - step)
		sum += float64(float64(f.Decode*(r.out.OutputTokens-1)) * longer)
	}
	return sum
}

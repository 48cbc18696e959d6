package reference

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Member is a deployment of a fleet: deployments of one model that an auto-scaler scales together. Its replicas are
// those of Config, but for what is here.
type Member struct {
	// Start is the number of its replicas at first, Min and Max bound it.
	Start, Min, Max int
	// Price of a replica for an hour.
	Price float64
	// Seqs is MaxNumSeqs. A step takes Slower times as long.
	Seqs, Slower int
}

// MemberName is the name of member k.
func MemberName(k int) string { return fmt.Sprintf("m%d", k) }

// Member is the configuration of the replicas of member k.
func (c *Config) Member(k int) Config {
	m, of := c.Scaling.Fleet[k], *c
	of.MaxNumSeqs, of.Beta = m.Seqs, slices.Clone(c.Beta)
	for i := range of.Beta {
		of.Beta[i] *= float64(m.Slower)
	}
	if c.StepTime != nil {
		of.StepTime = func(b Batch) int64 { return int64(m.Slower) * c.StepTime(b) }
	}
	return of
}

// PlacementRule is a pair of CEL numbers, by which deployments get and lose replicas, and the same in Go.
type PlacementRule struct {
	Grow, Shrink     string
	ofGrow, ofShrink func(d deployment, m Member, id string) float64
}

// PlacementRules are for fleets. The first one is the default.
var PlacementRules = []PlacementRule{
	{"-deployment.price", "deployment.price",
		func(_ deployment, m Member, _ string) float64 { return -m.Price },
		func(_ deployment, m Member, _ string) float64 { return m.Price }},
	{"deployment.queue_depth - deployment.replicas * deployment.price", "deployment.replicas - deployment.inflight",
		func(d deployment, m Member, _ string) float64 { return d.queueDepth - float64(d.replicas*m.Price) },
		func(d deployment, _ Member, _ string) float64 { return d.replicas - d.inflight }},
	{"-1 / deployment.ready", "deployment.kv_util / deployment.queue_depth - 1",
		func(d deployment, _ Member, _ string) float64 { return -1 / d.ready },
		func(d deployment, _ Member, _ string) float64 { return d.kvUtil/d.queueDepth - 1 }},
	{`deployment.id == "m1" ? deployment.starting : deployment.rate`,
		"deployment.utilization + deployment.draining / 8",
		func(d deployment, _ Member, id string) float64 {
			if id == "m1" {
				return d.starting
			}
			return d.rate
		},
		func(d deployment, _ Member, _ string) float64 { return d.utilization + d.draining/8 }},
}

// place chooses the member that gets a replica, if sign is 1, or loses one: of those within their bounds afterward, and
// then of those with replicas that start if any lose one, the one with the highest number. A rule that fails is below
// all numbers. Of equals the first one grows and the last one shrinks.
func (s *simulation) place(x *scaler, sign int, now int64) int {
	c := x.config
	if len(c.Fleet) == 0 {
		return 0
	}
	var may, starting []int
	for k, m := range c.Fleet {
		present := s.ofMember(k, s.present(x))
		if n := len(present) + sign; n > m.Max && sign > 0 || n < m.Min && sign < 0 {
			continue
		}
		may = append(may, k)
		if slices.ContainsFunc(present, func(i int) bool { return s.replicas[i].life.state != "ready" }) {
			starting = append(starting, k)
		}
	}
	if sign < 0 && len(starting) > 0 {
		may = starting
	}
	best, highest := may[0], math.Inf(-1)
	for _, k := range may {
		of := PlacementRules[c.Rule].ofGrow
		if sign < 0 {
			of = PlacementRules[c.Rule].ofShrink
		}
		signals := s.deploymentOf(x, func(all []int) []int { return s.ofMember(k, all) }, now)
		score := of(signals, c.Fleet[k], MemberName(k))
		if math.IsNaN(score) || math.IsInf(score, 0) {
			score = math.Inf(-1)
		}
		if score > highest || score == highest && sign < 0 {
			best, highest = k, score
		}
	}
	change := "add"
	if sign < 0 {
		change = "remove"
	}
	s.fleet = append(s.fleet, fmt.Sprintf("%d %s: %s, of %d", now, MemberName(best), change, len(may)))
	return best
}

// ofMember are those of some replicas that belong to a member.
func (s *simulation) ofMember(k int, all []int) (some []int) {
	for _, i := range all {
		if s.replicas[i].member == k {
			some = append(some, i)
		}
	}
	return some
}

// byMember orders replicas by their members.
func (s *simulation) byMember(all []int) []int {
	slices.SortStableFunc(all, func(a, b int) int { return s.replicas[a].member - s.replicas[b].member })
	return all
}

// addMember adds a replica of a member, or of the only deployment. x is nil unless an auto-scaler adds it.
func (s *simulation) addMember(x *scaler, k int) *replica {
	c := &s.config
	if x != nil && x.prefills {
		c = &c.Disaggregation.Pool
	} else if c.Scaling != nil && len(c.Scaling.Fleet) > 0 {
		of := c.Member(k)
		c = &of
	}
	r := newReplica(c)
	r.index, r.member = len(s.replicas), k
	s.replicas = append(s.replicas, r)
	return r
}

// RandomFleets is RandomScaling with several deployments that scale together.
func RandomFleets(seed uint64) (Config, []Request) {
	c, requests := RandomScaling(seed)
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x666c6565))}
	s, zero := c.Scaling, c.Scaling.Min == 0
	if s.Policy == "predicted-load" { // that is for one kind of replica
		s.Policy, s.Settle, s.Cancel = "oscillator", false, false
	}
	c.Replicas, s.Min, s.Max, s.Rule = 0, 0, 0, d.between(0, len(PlacementRules)-1)
	for range d.between(2, 3) {
		m := Member{Start: d.between(1, 2), Price: pick(d, 0.5, 1, 1, 2, 4), Seqs: pick(d, c.MaxNumSeqs, c.MaxNumSeqs,
			d.between(1, 4)), Slower: pick(d, 1, 1, 2, 3)}
		m.Min, m.Max = d.between(1, m.Start), m.Start+d.between(0, 3)
		if zero || c.Flow != nil && d.percent(50) {
			m.Min = 0
		}
		s.Fleet = append(s.Fleet, m)
		c.Replicas, s.Min, s.Max = c.Replicas+m.Start, s.Min+m.Min, s.Max+m.Max
	}
	return c, requests
}

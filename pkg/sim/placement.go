package sim

import (
	"fmt"

	"blis/pkg/policy"
	"blis/pkg/stream"
)

// placement is the choice of the deployment of a fleet that gets or loses a replica.
type placement struct {
	grows      bool
	chosen     int32
	considered []placementScore
}

// placementScore is a deployment that could get or lose one; isKnown is false if its expression failed.
type placementScore struct {
	deployment int32
	replicas   int
	score      float64
	isKnown    bool
}

// joinFleets makes deployments that scale together share the auto-scaler of the first of them, with the bounds of all.
func (s *simulation) joinFleets() {
	for i := range s.deployments {
		e := s.deployments[i].elastic
		if e == nil {
			continue
		}
		e.lead = e
		e.members = []int32{int32(i)}
		if e.placement == nil {
			continue
		}
		for k := range i {
			if x := s.deployments[k].elastic; x != nil && x.lead == x && x.model == e.model {
				x.members, e.lead, e.members = append(x.members, int32(i)), x, nil
				x.limiter.AddBounds(e.least, e.most)
				x.plan.Behavior.Min += e.least
			}
		}
	}
}

// size is the number of replicas of the deployments that e scales which do not drain, and of those that do.
func (s *simulation) size(e *elastic) (present, draining int) {
	for _, m := range e.members {
		x := s.deployments[m].elastic
		present, draining = present+len(x.present), draining+x.draining
	}
	return present, draining
}

// place chooses the deployment of those that e scales which gets a replica, or loses one if grows is false.
func (s *simulation) place(e *elastic, grows bool) (int32, error) {
	if len(e.members) == 1 {
		return e.members[0], nil
	}
	p := &s.fleet.placed
	*p = placement{grows: grows, chosen: missing, considered: p.considered[:0]}
	best := 0
	for _, m := range s.mayChange(e, grows) {
		d := &s.deployments[m]
		f := policy.Fleet{NowUS: s.now, Traffic: e.traffic, ScaledUS: max(0, e.stats.lastAction), ID: d.id,
			Price: d.replicaPrice()}
		s.lookAt(&f, d, e.placement.Needs())
		x := placementScore{deployment: m, replicas: len(d.elastic.present)}
		x.score, x.isKnown = e.placement.Score(&f, grows)
		p.considered = append(p.considered, x)
		if b := p.considered[best]; x.isKnown && (!b.isKnown || x.score > b.score || x.score == b.score && !grows) ||
			!x.isKnown && !b.isKnown && !grows {
			best = len(p.considered) - 1
		}
	}
	p.chosen = p.considered[best].deployment
	return p.chosen, s.observers.notify(s, onPlace, e.members[0])
}

// mayChange are the deployments of a fleet that are within their bounds after a change by one replica. Where replicas
// start, those go first.
func (s *simulation) mayChange(e *elastic, grows bool) (some []int32) {
	starts := false
	for _, m := range e.members {
		x := s.deployments[m].elastic
		switch n := len(x.present); {
		case grows && n < x.most:
			some = append(some, m)
		case !grows && n > x.least:
			start := s.fleet.members[s.nextRemoved(x)].phase != ready
			if start && !starts {
				starts, some = true, some[:0]
			}
			if start == starts {
				some = append(some, m)
			}
		}
	}
	return some
}

// replicaPrice is the price of a replica for an hour.
func (d *deployment) replicaPrice() float64 { return float64(d.gpus) * d.perGPUHour }

// placement records the choice of a deployment that gets or loses a replica.
func (o *traceWriter) placement(s *simulation, lead int32) error {
	p, e := &s.fleet.placed, s.deployments[lead].elastic
	x := stream.ScalingChoice{Kind: stream.KindScalingChoice, Decision: decisionID(e.lookNumber),
		AtUS: stream.Micros(s.now), Deployment: s.deployments[p.chosen].id, Change: stream.AddReplica}
	if !p.grows {
		x.Change = stream.RemoveReplica
	}
	x.Reason = "highest " + e.placement.Source(p.grows)
	if len(p.considered) == 1 {
		x.Reason = "no other may change"
	}
	for _, c := range p.considered {
		y := stream.ScalingCandidate{Deployment: s.deployments[c.deployment].id, Replicas: int64(c.replicas)}
		if c.isKnown {
			y.Score = &c.score
		}
		if c.deployment == p.chosen && !c.isKnown {
			x.Reason = fmt.Sprintf("%s failed", e.placement.Source(p.grows))
		}
		x.Considered = append(x.Considered, y)
	}
	return o.records.Any(&x)
}

package attribution

import (
	"fmt"
	"slices"
)

var slowReplica = Condition{Name: "slow_replica", Component: engineComponent, rank: rankCapacity, parts: afterAdmitted,
	Doc: "on a replica whose time per output token is at least 1.35 times that of a peer of the same model with as" +
		" many requests, or its configured step times, where too few requests can be compared; or of a deployment" +
		" that is so much slower than one with other hardware; or a failure made it take 1.35 times as long there;" +
		" or on another replica when all were full, and slow ones cost at least 15 % of the capacity",
	cause: func(p *Pattern) string {
		slower := p.mean(func(r *request) float64 { return r.evidence.slower })
		if len(p.losing) > 0 {
			switch e := &p.losing[0].evidence; {
			case e.slowConfigured:
				return fmt.Sprintf("by its configured step times %s takes %s times as long for a step as a peer; too"+
					" few requests are similar to measure it", p.Value, slower)
			case e.slowFailure:
				return fmt.Sprintf("a failure made steps of %s take %s times as long, for %s of %s ms that these"+
					" requests spent there (means)", p.Value, slower, p.mean(slowMS), p.mean(atReplicaMS))
			}
		}
		text := fmt.Sprintf("%s takes %s times as long for an output token as a peer with as many requests (measured)",
			p.Value, slower)
		if n := p.elsewhere(); n > 0 {
			text += fmt.Sprintf("; %d of these misses were at its peers, which took its share", n)
		}
		return text
	},
	Hint:   "replace or repair that replica, or send it less (route by est_wait_ms or recent_tpot_ms)",
	change: (*proposal).fasterReplica,
	others: []remedy{{"send nothing to replicas that were slow in the last seconds", (*proposal).avoidSlow},
		leastLoaded, otherRouters[2], {"have replicas to spare", (*proposal).spareReplicas}},
	holds: func(a *Analyzer, r *request) bool {
		if r.replica == missing || r.scheduled() == never {
			return false
		}
		if s := &a.stats.speeds; s.slower[r.replica] >= slowFactor {
			e := r.evidence.except()
			e.slowReplica, e.slower, e.slowConfigured = r.replica, s.slower[r.replica], s.configured[r.replica]
			return true
		}
		return a.slowByFailure(r) || a.tookShare(r)
	},
	value: (*Analyzer).slowUnit, valueName: (*Analyzer).slowUnitName}

// minLostCapacity is the share of the capacity that matters to the peers of slow replicas.
const minLostCapacity = 0.15

// tookShare reports whether r waited, or was slow, at a replica that had to take the share of a slow one.
func (a *Analyzer) tookShare(r *request) bool {
	s, model := &a.stats.speeds, a.topology.deploymentOf(r.replica).Model
	if s.lostCapacity[model] < minLostCapacity || !r.allReplicasFull() {
		return false
	}
	e := r.evidence.except()
	e.slowReplica = s.slowest[model]
	e.slower, e.slowConfigured = s.slower[e.slowReplica], s.configured[e.slowReplica]
	return true
}

// slowByFailure reports whether a failure made r take at least slowFactor times as long at its replica.
func (a *Analyzer) slowByFailure(r *request) bool {
	id := a.topology.replicas[r.replica]
	for i := range a.episodes {
		x := &a.episodes[i]
		if x.Type != "replica_slow" || x.Deployment != id.deployment || x.Replica != id.index {
			continue
		}
		us := min(x.EndUS, r.ended()) - max(x.StartUS, r.enqueued())
		lost := float64(float64(us) * x.Severity) // the share of the time of steps that was lost
		if whole := float64(r.ended() - r.enqueued()); lost > 0 && whole >= slowFactor*(whole-lost) {
			e := r.evidence.except()
			e.slowReplica, e.slower, e.slowFailure, e.slowUS = r.replica, 1/(1-x.Severity), true, int64(us)
			return true
		}
	}
	return false
}

// elsewhere counts the losing requests of the pattern that were not at the slow replica.
func (p *Pattern) elsewhere() (n int) {
	for _, r := range p.losing {
		if r.replica != r.evidence.slowReplica && !p.run.stats.speeds.deployment[r.evidence.slowReplica] {
			n++
		}
	}
	return n
}

// slowUnit is the number of a slow replica, or that of a slow deployment after those of all replicas.
func (a *Analyzer) slowUnit(r *request) int32 {
	n := r.evidence.slowReplica
	if s := &a.stats.speeds; !r.evidence.slowFailure && s.deployment[n] {
		id := a.topology.replicas[n].deployment
		own := slices.IndexFunc(a.topology.Deployments, func(d deployment) bool { return d.ID == id })
		return int32(len(a.topology.replicas) + own)
	}
	return n
}

func (a *Analyzer) slowUnitName(value int32) string {
	if n := int(value) - len(a.topology.replicas); n >= 0 {
		return "deployment " + a.topology.Deployments[n].ID
	}
	return a.Replica(value)
}

// Quantities of which causes name the mean.

func slowMS(r *request) float64      { return float64(r.evidence.slowUS) / 1000 }
func atReplicaMS(r *request) float64 { return latencyMS(r.enqueued(), r.ended()) }

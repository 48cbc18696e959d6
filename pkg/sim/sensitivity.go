package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"blis/pkg/dist"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// Exact regret over all requests is mostly sensitivity: after any change, however small, later batches and
// choices differ, and the sum moves. Controls measure by how much: forks at re-simulated decisions in which
// nothing is overruled, but one later request has one output token more.
const (
	// controlsOf is the number of controls that a decision is compared with: the nearest ones.
	controlsOf = 8
	// maxControls is the number of controls of a run. With more than three decisions they share them.
	maxControls = 24
	// controlArrivals is the number of arrivals after a decision of which one is perturbed.
	controlArrivals = 32
)

// controls returns the controls of the selected decisions, which are in order.
func controls(selected []pastDecision) (all []*trial) {
	n := min(maxControls, controlsOf*len(selected))
	for k := range n {
		at := k * len(selected) / n
		d := &selected[at]
		all = append(all, &trial{of: d, event: d.event, replica: missing, override: override{decision: -1},
			control: fmt.Sprintf("control %d", k)})
	}
	return all
}

// perturb gives one request one output token more: one of the next arrivals, or a later call of an open
// session. It reports whether there is one. name is that of the random stream.
func (s *simulation) perturb(name string) bool {
	arrivals := s.feed.(*memoryFeed)
	var open []*session
	for i := range s.sessions.open {
		if v := &s.sessions.open[i]; v.inUse && v.nextCall() >= 0 {
			open = append(open, v)
		}
	}
	left := min(controlArrivals, arrivals.n-arrivals.at)
	if left+len(open) == 0 {
		return false
	}
	if k := dist.NewStream(uint64(s.events.count), name).IntN(left + len(open)); k < left {
		arrivals.lengthen(arrivals.at + k)
	} else {
		lengthen(&open[k-left].Session, open[k-left].nextCall())
	}
	return true
}

// nextCall is the first model call that has not been issued, -1 if there is none.
func (v *session) nextCall() int {
	for k := range v.Steps {
		if v.Steps[k].Tool == "" && !v.steps[k].issued {
			return k
		}
	}
	return -1
}

// lengthen gives arrival number target one output token more: the request, or the first call of the session.
func (f *memoryFeed) lengthen(target int) {
	load := f.load
	f.load = func(i int, a *stream.Arrival) int64 {
		position := load(i, a)
		isCall := func(s stream.SessionStep) bool { return s.Tool == "" }
		if i == target && !a.IsSession {
			a.Request.OutputTokens++
		} else if i == target {
			lengthen(&a.Session, slices.IndexFunc(a.Session.Steps, isCall))
		}
		return position
	}
}

// lengthen gives a call of a session one output token more. The steps are copied, since forks share them.
func lengthen(v *stream.Session, call int) {
	if v.Steps = slices.Clone(v.Steps); call >= 0 {
		v.Steps[call].OutputTokens++
	}
}

// sensitivity returns the largest changes in the controls nearest to the i-th selected decision; nil if there is
// no control.
func sensitivity(selected []pastDecision, i int, all []*trial) *stream.Sensitivity {
	ran := slices.DeleteFunc(slices.Clone(all), func(t *trial) bool { return t.change.All == nil })
	distance := func(t *trial) int64 { return max(t.event-selected[i].event, selected[i].event-t.event) }
	slices.SortStableFunc(ran, func(a, b *trial) int { return cmp.Compare(distance(a), distance(b)) })
	if len(ran) == 0 {
		return nil
	}
	s := &stream.Sensitivity{Controls: int64(min(len(ran), controlsOf))}
	for _, t := range ran[:s.Controls] {
		own := t.change.Own
		widen(s, t.change.All)
		s.OwnTTFTMS, s.OwnE2EMS = max(s.OwnTTFTMS, math.Abs(own.TTFTMS)), max(s.OwnE2EMS, math.Abs(own.E2EMS))
	}
	return s
}

// widen raises a sensitivity to a change for all requests.
func widen(s *stream.Sensitivity, d *stream.Difference) {
	s.SLO = max(s.SLO, d.SLOGained-d.SLOLost, d.SLOLost-d.SLOGained)
	s.Completed = max(s.Completed, d.Completed, -d.Completed)
	s.TTFTMS, s.E2EMS = max(s.TTFTMS, math.Abs(d.TTFTMS)), max(s.E2EMS, math.Abs(d.E2EMS))
}

// within reports whether a change for all requests is not larger than the controls' are.
func within(d *stream.Difference, s *stream.Sensitivity) bool {
	net := d.SLOGained - d.SLOLost
	return max(net, -net) <= s.SLO && max(d.Completed, -d.Completed) <= s.Completed &&
		math.Abs(d.TTFTMS) <= s.TTFTMS && math.Abs(d.E2EMS) <= s.E2EMS
}

// The reliability of estimates is measured on reliabilityDecisions decisions drawn at random, each with
// reliabilityAlternatives: those with the highest estimated regret would overrate or underrate it.
const (
	reliabilityDecisions    = 16
	reliabilityAlternatives = 2
	// minReliability is the minimum number of alternatives.
	minReliability = 10
)

// reliabilityTrials returns alternatives of decisions drawn at random. Named decisions are their own sample.
func (g *regretRecorder) reliabilityTrials() (all []*trial) {
	if g.worst == 0 {
		return nil
	}
	order := dist.NewStream(0, "reliability").Perm(len(g.decisions))
	for _, i := range order[:min(reliabilityDecisions, len(order))] {
		d := g.decisions[i]
		d.admission.number = -1
		routing := d.trials()
		for _, t := range routing[:min(reliabilityAlternatives, len(routing))] {
			t.ownOnly = true
			all = append(all, t)
		}
	}
	return all
}

// addReliability adds to the metrics how well the estimates rank alternatives of routing decisions: the rank
// correlation of the estimated and the exact change of the request itself.
func (g *regretRecorder) addReliability(all []*trial) {
	var ttft, e2e [2][]float64 // estimated, exact
	for _, t := range all {
		own := t.change.Own
		if t.replica == missing || own.Completed != 0 {
			continue
		}
		chosen := t.of.chosen
		ttft[0], ttft[1] = append(ttft[0], float64(chosen.ttft-t.estimate.ttft)), append(ttft[1], own.TTFTMS)
		e2e[0], e2e[1] = append(e2e[0], float64(chosen.e2e-t.estimate.e2e)), append(e2e[1], own.E2EMS)
	}
	if len(e2e[0]) < minReliability {
		return
	}
	correlation := func(x [2][]float64) *float64 {
		if rho, ok := stat.Spearman(x[0], x[1]); ok {
			return &rho
		}
		return nil
	}
	g.totals.AddReliability(int64(len(e2e[0])), correlation(ttft), correlation(e2e))
}

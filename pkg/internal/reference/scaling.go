package reference

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/portable"
)

// Scaling is an auto-scaler. The cluster starts with Config.Replicas.
type Scaling struct {
	Min, Max int
	// Fleet are deployments that scale together, none if there is one. Rule is the number in PlacementRules. Replicas,
	// Min and Max are then sums.
	Fleet []Member
	Rule  int
	// Policy is target-utilization, queue-depth, average-value, threshold, slo-attainment, predicted-load, expression,
	// tree or oscillator; Signal is kv_util, utilization, queue_depth, running or inflight.
	Policy, Signal string
	// Formula is the number in Formulas of an expression or tree. Trigger is the number in Conditions of the condition
	// of a trigger, which must hold for HoldUS, or 0.
	Formula, Trigger int
	HoldUS           int64
	// Each: a threshold is compared with each replica. Settle: nothing changes while replicas start or drain.
	Each, Settle bool
	// Inclusive: a value at a limit is beyond it. CheckRemoval: nothing is removed if the others would reach Up.
	// Cancel: what starts may be removed.
	Inclusive, CheckRemoval, Cancel bool
	Predict                         Prediction

	Target, Tolerance float64
	Up, Down          float64
	Step              int
	IntervalUS        int64
	// Activation is the number of requests that may wait before a deployment without replicas gets one.
	Activation int
	// UpWindowUS and DownWindowUS are the windows of stabilization.
	UpWindowUS, DownWindowUS, CooldownUS int64
	UpLimits, DownLimits                 []ScaleLimit
	Select                               string // max, min or disabled
	ProvisionUS, LoadUS                  int64
	// Curve is linear, exponential or step.
	Curve    string
	WarmupUS int64
	Factor   float64
	// WarmingWaits: replicas that warm up get no requests.
	WarmingWaits bool
	// Immediate: requests of replicas that go fail; Redirect: they go to other replicas. Otherwise they fail after
	// TimeoutUS, unless that is 0.
	Immediate, Redirect bool
	TimeoutUS           int64
}

// ScaleLimit is a change of Replicas or of Percent in PeriodUS.
type ScaleLimit struct {
	Replicas int
	Percent  float64
	PeriodUS int64
}

// scaler is the state of an auto-scaler, of the prefill replicas or the others.
type scaler struct {
	config   *Scaling
	prefills bool
	checkAt  int64
	// idle is the number of looks since which nothing has happened; see waitsForever.
	idle int
	// heldAt is since when the trigger's condition has held, or Never. looks are those so far, with the number of
	// requests that had arrived.
	heldAt int64
	looks  []numberAt
	// act: the number of replicas is to become desired.
	act     bool
	desired int
	advised []numberAt // recommendations
	changed []numberAt // changes of the number of replicas
	lastAct int64
	// removing has what the last look would have removed of what starts: the advice, and how many served and started.
	removing  [3]int
	predicted predicted
}

type numberAt struct {
	at int64
	n  int
}

// life is the state of a replica in a cluster that scales.
type life struct {
	state string // provisioning, loading, warming, ready, draining or gone
	// nextAt is when a new replica goes on to its next state, killAt when the requests of one that drains fail.
	nextAt, killAt int64
	warmFrom       int64 // Never before
	health
}

// next is when the state changes by itself.
func (l *life) next() []int64 {
	switch {
	case l.isStarting():
		return []int64{l.nextAt}
	case l.state == "draining" && l.killAt != Never:
		return []int64{l.killAt}
	}
	return nil
}

// warm is the length of a step that starts at now.
func (c *Scaling) warm(l *life, now, us int64) float64 {
	if c == nil || l.warmFrom == Never || now-l.warmFrom >= c.WarmupUS {
		return float64(us)
	}
	x := float64(now-l.warmFrom) / float64(c.WarmupUS)
	factor := c.Factor
	switch c.Curve {
	case "linear":
		factor = 1 + float64((c.Factor-1)*(1-x))
	case "exponential":
		factor = 1 + float64((c.Factor-1)*portable.Exp(-5*x))
	}
	return float64(us) * factor
}

// inStates lists the replicas in these states.
func (s *simulation) inStates(x *scaler, states ...string) (all []int) {
	for i, r := range s.replicas {
		if r.prefills == x.prefills && slices.Contains(states, r.life.state) {
			all = append(all, i)
		}
	}
	return s.byMember(all)
}

// enter puts a replica into a state.
func (s *simulation) enter(i int, state string, now int64) {
	l := &s.replicas[i].life
	l.state = state
	name := "replica"
	if s.replicas[i].prefills {
		name = "prefill replica"
	}
	s.fleet = append(s.fleet, fmt.Sprintf("%d %s %d %s with %d", now, name, s.replicas[i].index, state, s.inflight(i)))
	if state == "ready" || state == "warming" && !s.replicas[i].config.starts().WarmingWaits {
		l.known, s.flow.due = true, true
	}
	if state == "draining" || state == "gone" {
		l.known = false
	}
}

// dispatchScaling performs the first pending event of auto-scaling and reports whether there was one.
func (s *simulation) dispatchScaling(now int64) bool {
	for _, x := range s.scalers {
		if x.checkAt != now {
			continue
		}
		x.checkAt += x.config.IntervalUS
		if s.waitsForever(x) {
			x.checkAt = Never
		}
		s.checkScale(x, now)
		return true
	}
	for _, x := range s.scalers {
		if x.act {
			x.act = false
			s.changeReplicas(x, now)
			return true
		}
	}
	for i, r := range s.replicas {
		if r.life.state == "draining" && r.life.killAt == now {
			r.life.killAt = Never
			s.loseAll(i, now)
			return true
		}
	}
	for i, r := range s.replicas {
		if r.life.isStarting() && r.life.nextAt == now {
			s.advance(i, now)
			return true
		}
	}
	return false
}

func (s *simulation) advance(i int, now int64) {
	c, l := s.replicas[i].config.starts(), &s.replicas[i].life
	switch {
	case l.state == "provisioning" || l.state == "failed":
		l.nextAt = now + c.LoadUS
		s.enter(i, "loading", now)
	case l.state == "loading" && c.WarmupUS > 0:
		l.nextAt, l.warmFrom = now+c.WarmupUS, now
		s.enter(i, "warming", now)
	default:
		s.enter(i, "ready", now)
	}
}

// maxIdle is the number of looks without a replica after which nothing will happen any more, if nothing has.
const maxIdle = 1000

// waitsForever reports whether requests wait in flow control for a replica that the auto-scaler will not add.
func (s *simulation) waitsForever(x *scaler) bool {
	x.idle++
	if len(s.present(x))+len(s.inStates(x, "draining")) > 0 || slices.ContainsFunc(s.requests, func(q *request) bool {
		waits := q.stage == stageBlocked || q.stage == stageFlow && q.until == Never && q.DeadlineUS == Never
		return !q.final() && !waits
	}) {
		x.idle = 0
	}
	return x.idle > maxIdle
}

// checkScale looks at the cluster.
func (s *simulation) checkScale(x *scaler, now int64) {
	c := x.config
	if s.config.SnapshotUS == 0 {
		s.readReports(now)
	}
	if !s.triggered(x, now) {
		return
	}
	x.looks = append(x.looks, numberAt{now, s.arrivals(-1, now)})
	current := len(s.present(x))
	advice := s.fromZero(x, current, s.advice(x, current, now))
	if len(x.advised) == 0 {
		x.advised = append(x.advised, numberAt{now, current})
	}
	x.advised = append(x.advised, numberAt{now, advice})
	lowest, highest := advice, advice
	for _, a := range x.advised {
		if a.at > now-c.UpWindowUS {
			lowest = min(lowest, a.n)
		}
		if a.at > now-c.DownWindowUS {
			highest = max(highest, a.n)
		}
	}
	n := current
	if lowest > current {
		n = lowest
	} else if highest < current {
		n = highest
	}
	if x.lastAct != Never && now-x.lastAct < c.CooldownUS {
		n = current
	}
	if n > current {
		n = max(current, min(n, s.limit(x, c.UpLimits, current, now, 1)))
	} else if n < current {
		n = min(current, max(n, s.limit(x, c.DownLimits, current, now, -1)))
	}
	if current == 0 && advice > 0 {
		n = max(n, 1)
	}
	n = min(max(n, c.Min), c.Max)
	s.fleet = append(s.fleet, fmt.Sprintf("%d of %d: advice %d, desired %d", now, current, advice, n))
	if n != current {
		x.changed = append(x.changed, numberAt{now, n - current})
		x.act, x.desired, x.lastAct = true, n, now
	}
}

// fromZero is the advice for a deployment that may have no replicas.
func (s *simulation) fromZero(x *scaler, current, advice int) int {
	c, waiting := x.config, len(s.flow.waiting)
	if c.Min > 0 {
		return advice
	}
	if current == 0 && waiting <= c.Activation {
		return 0
	}
	left := waiting
	for _, i := range s.inStates(x, "warming", "ready") {
		left += s.inflight(i)
	}
	if current == 0 || left > 0 {
		return max(advice, 1)
	}
	return advice
}

// limit is the number of replicas that the limits of one direction allow.
func (s *simulation) limit(x *scaler, limits []ScaleLimit, current int, now int64, sign int) int {
	if x.config.Select == "disabled" {
		return current
	}
	if len(limits) == 0 {
		return sign * 1000000
	}
	var most, least int
	for i, l := range limits {
		start := current
		for _, x := range x.changed {
			if x.at > now-l.PeriodUS {
				start -= x.n
			}
		}
		to := start + sign*l.Replicas
		if l.Replicas == 0 && sign > 0 {
			to = int(math.Ceil(float64(start)*(100+l.Percent)/100 - 1e-9))
		} else if l.Replicas == 0 {
			to = int(math.Floor(float64(start)*(100-l.Percent)/100 + 1e-9))
		}
		change := (to - current) * sign
		if i == 0 {
			most, least = change, change
		}
		most, least = max(most, change), min(least, change)
	}
	if x.config.Select == "min" {
		return current + sign*least
	}
	return current + sign*most
}

// chooseServing lets a router choose among replicas that serve.
func (s *simulation) chooseServing(all *router, q *request, among []int) (chosen, expected int) {
	if all.config.Routing == "round-robin" {
		if chosen = s.nextTurn(all, among); all.hasIndexes() {
			expected = all.remember(q, s.replicas[chosen].index)
		}
		return chosen, expected
	}
	if s.config.SnapshotUS == 0 {
		all.readReports(s.pool(s.replicas[among[0]].prefills), all.now)
	}
	sub := *all
	sub.inflight, sub.indexes, sub.blocks, sub.reports, sub.among = nil, nil, nil, reports{}, among
	var replicas []*replica
	for _, i := range among {
		k := s.replicas[i].index
		sub.inflight, sub.indexes = append(sub.inflight, all.inflight[k]), append(sub.indexes, all.indexes[k])
		sub.reports.keep(&all.reports, k)
		replicas = append(replicas, s.replicas[i])
	}
	at, expected := sub.choose(q, replicas)
	chosen = among[at]
	all.tieDraws = sub.tieDraws
	s.count(chosen, 1)
	all.indexes[s.replicas[chosen].index] = sub.indexes[at]
	return chosen, expected
}

// nextTurn is the replica whose last turn is longest ago.
func (s *simulation) nextTurn(of *router, among []int) int {
	for len(of.lastTurns) < len(s.replicas) {
		of.lastTurns = append(of.lastTurns, 0)
	}
	chosen := among[0]
	for _, i := range among {
		if of.lastTurns[i] < of.lastTurns[chosen] {
			chosen = i
		}
	}
	of.turns++
	of.lastTurns[chosen] = of.turns
	s.count(chosen, 1)
	return chosen
}

package scale

import (
	"math"
	"slices"
)

// Behavior limits how fast the number of replicas changes. The zero value of a field does not limit.
type Behavior struct {
	// Min and Max bound the number of replicas.
	Min, Max int
	// Up and Down limit growing and shrinking.
	Up, Down Direction
	// CooldownUS is the time after a change in which there is no other.
	CooldownUS int64
}

// Direction limits changes in one direction.
type Direction struct {
	// StabilizationUS is a window. The number grows to the lowest recommendation in it at most, and shrinks to
	// the highest at most.
	StabilizationUS int64
	// Limits are limits of the change in a period, all from the number of replicas at its start. Select says which
	// of them holds.
	Limits []Limit
	Select Select
}

// Limit allows a change in a period by Replicas or, if that is 0, by Percent of the number at its start.
type Limit struct {
	Replicas int
	Percent  float64
	PeriodUS int64
}

// Select chooses among limits.
type Select uint8

// The values of Select: the limit that allows most, the one that allows least, or no change at all.
const (
	selectMax Select = iota
	selectMin
	selectDisabled
)

// Scaler applies a Behavior to the recommendations for one deployment.
type Scaler struct {
	behavior Behavior
	// recommendations and changes of the number of replicas, as far back as a window or period needs them.
	recommendations, changes []dated
	// lastChangeUS is the time of the last change, noChange before.
	lastChangeUS int64
}

// dated is a number of replicas, or a change of it, at a time.
type dated struct {
	atUS int64
	n    int
}

const noChange = math.MinInt64 / 2

// NewScaler returns a scaler that has seen nothing.
func NewScaler(b Behavior) *Scaler { return &Scaler{behavior: b, lastChangeUS: noChange} }

// AddBounds adds the bounds of a deployment that s scales, too.
func (s *Scaler) AddBounds(least, most int) {
	s.behavior.Min, s.behavior.Max = s.behavior.Min+least, s.behavior.Max+most
}

// Clone returns an independent copy.
func (s *Scaler) Clone() *Scaler {
	c := *s
	c.recommendations, c.changes = slices.Clone(s.recommendations), slices.Clone(s.changes)
	return &c
}

// Next returns the number of replicas after a recommendation. nowUS grows from call to call; current is the number
// now. The caller reports what it then changes to Changed.
//
// The rules are those of normalizeDesiredReplicasWithBehaviors in horizontal.go. The number of replicas at the first
// call counts as a recommendation of that time. The first replica of a deployment without any is not limited: KEDA
// starts it itself (requestScale in pkg/scaling/executor/scale_scaledobjects.go).
func (s *Scaler) Next(nowUS int64, current, recommended int) int {
	b := &s.behavior
	if len(s.recommendations) == 0 {
		s.recommendations = append(s.recommendations, dated{nowUS, current})
	}
	s.recommendations = append(s.recommendations, dated{nowUS, recommended})
	s.recommendations = since(s.recommendations, nowUS-max(b.Up.StabilizationUS, b.Down.StabilizationUS, 1))
	n := s.stabilized(nowUS, current)
	switch {
	case nowUS-s.lastChangeUS < b.CooldownUS:
		n = current
	case n > current:
		n = min(n, max(current, s.limit(nowUS, current, &b.Up, 1)))
	case n < current:
		n = max(n, min(current, s.limit(nowUS, current, &b.Down, -1)))
	}
	if current == 0 && recommended > 0 {
		n = max(n, 1)
	}
	n = max(n, b.Min)
	if b.Max > 0 {
		n = min(n, b.Max)
	}
	return n
}

// Changed remembers a change of the number of replicas by delta, after the call of Next at that time.
func (s *Scaler) Changed(nowUS int64, delta int) {
	if delta == 0 {
		return
	}
	s.lastChangeUS = nowUS
	s.changes = append(s.changes, dated{nowUS, delta})
	s.changes = since(s.changes, nowUS-max(s.behavior.Up.period(), s.behavior.Down.period()))
}

// since removes what is not newer than cutoff.
func since(all []dated, cutoff int64) []dated {
	return slices.DeleteFunc(all, func(d dated) bool { return d.atUS <= cutoff })
}

// stabilized is the current number, raised to the lowest recommendation of the window for growing and lowered to the
// highest of that for shrinking. The last recommendation is in both.
func (s *Scaler) stabilized(nowUS int64, current int) int {
	last := s.recommendations[len(s.recommendations)-1].n
	lowest, highest := last, last
	for _, r := range s.recommendations {
		if r.atUS > nowUS-s.behavior.Up.StabilizationUS {
			lowest = min(lowest, r.n)
		}
		if r.atUS > nowUS-s.behavior.Down.StabilizationUS {
			highest = max(highest, r.n)
		}
	}
	return min(max(current, lowest), highest)
}

// limit is the number of replicas up to which a direction allows a change; sign is 1 for growing, −1 for shrinking.
func (s *Scaler) limit(nowUS int64, current int, d *Direction, sign int) int {
	if d.Select == selectDisabled {
		return current
	}
	if len(d.Limits) == 0 {
		return sign * maxReplicas
	}
	all := make([]int, len(d.Limits)) // the allowed change, in the direction's sign
	for i, l := range d.Limits {
		start := current
		for _, c := range s.changes {
			if c.atUS > nowUS-l.PeriodUS {
				start -= c.n
			}
		}
		all[i] = sign * (start + sign*l.Replicas)
		if l.Replicas == 0 {
			all[i] = sign * percentOf(start, 100+float64(float64(sign)*l.Percent), sign)
		}
	}
	if d.Select == selectMin {
		return sign * slices.Min(all)
	}
	return sign * slices.Max(all)
}

// percentOf is a share of n replicas, rounded in the direction of sign.
func percentOf(n int, percent float64, sign int) int {
	x := float64(n) * percent / 100
	if sign > 0 {
		return ceil(x)
	}
	return int(math.Floor(x + slack))
}

// period is the longest one of the limits.
func (d *Direction) period() int64 {
	longest := int64(0)
	for _, l := range d.Limits {
		longest = max(longest, l.PeriodUS)
	}
	return longest
}

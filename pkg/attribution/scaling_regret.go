package attribution

import (
	"cmp"
	"slices"
	"strings"

	"blis/pkg/stream"
)

// ScalingRegret is a change of the number of replicas that was simulated again.
type ScalingRegret struct {
	Decision, Deployment string
	AtUS                 stream.Micros
	Current, Desired     int64
	// Best is the alternative with which most requests meet their targets, of equals that with the lowest sum of
	// E2E. It is nil if the run does better than all, as far as its own sensitivity shows.
	Best *stream.ScalingAlternative
}

// ScalingRegret takes the regret of a change of the number of replicas.
func (a *Analyzer) ScalingRegret(g *stream.ScalingRegret) {
	r := ScalingRegret{Decision: strings.Clone(g.Decision), Deployment: strings.Clone(g.Deployment), AtUS: g.AtUS,
		Current: g.Current, Desired: g.Desired}
	for _, x := range g.Alternatives {
		if !x.Insensitive && compareChanges(x.All, &stream.Difference{}) > 0 &&
			(r.Best == nil || compareChanges(x.All, r.Best.All) > 0) {
			r.Best = &x
		}
	}
	a.scalingRegrets = append(a.scalingRegrets, r)
}

// compareChanges compares what changes would have gained.
func compareChanges(a, b *stream.Difference) int {
	return cmp.Or(cmp.Compare(a.SLOGained-a.SLOLost, b.SLOGained-b.SLOLost), cmp.Compare(a.Completed, b.Completed),
		cmp.Compare(a.E2EMS, b.E2EMS))
}

// worstScaling returns the changes whose best alternative gains most first; those without one are last.
func (a *Analyzer) worstScaling() []ScalingRegret {
	worst := slices.Clone(a.scalingRegrets)
	slices.SortStableFunc(worst, func(x, y ScalingRegret) int {
		switch {
		case x.Best != nil && y.Best != nil:
			return compareChanges(y.Best.All, x.Best.All)
		case x.Best != nil:
			return -1
		case y.Best != nil:
			return 1
		}
		return 0
	})
	return worst
}

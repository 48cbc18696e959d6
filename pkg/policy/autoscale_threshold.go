package policy

import (
	"slices"
	"strings"
)

var thresholdParams = append([]Param{
	fleetSignal("utilization"),
	{Name: "up", Kind: Number, Min: 0, Max: 1e6, Search: [2]float64{0.5, 0.95}, Default: 0.8,
		Doc: "mean of the signal above which replicas are added"},
	{Name: "down", Kind: Number, Min: 0, Max: 1e6, Search: [2]float64{0.05, 0.5}, Default: 0.3,
		Doc: "mean below which they are removed"},
	{Name: "step", Kind: Number, Whole: true, Unit: "replicas", Min: 1, Max: 1e4, Search: [2]float64{1, 8},
		Default: 1.0, Doc: "replicas added or removed at once"},
	{Name: "across", Kind: Choose, Choices: []string{"mean", acrossEach}, Default: "mean",
		Doc: "what is compared: the mean, or each replica: any above the upper limit, all below the lower"},
	{Name: "inclusive", Kind: Flag, Default: false, Doc: "a value equal to a limit counts as beyond it"},
	{Name: "check_removal", Kind: Flag, Default: false,
		Doc: "no removal if the value would reach the upper limit when fewer replicas share the load"},
}, settlingParams...)

// acrossEach is the value of across that compares each replica.
const acrossEach = "each"

// threshold adds step replicas above up and removes as many below down.
type threshold struct {
	meanSignal
	settling
	up, down                      float64
	step                          int
	each, inclusive, checkRemoval bool
}

func newThreshold(b *builder, s *Spec) Autoscaler {
	v := b.params(s, thresholdParams)
	t := &threshold{newMeanSignal(v.choice("signal")), newSettling(b, v), v.number("up"), v.number("down"),
		int(v.number("step")), v.choice("across") == acrossEach, v.flag("inclusive"), v.flag("check_removal")}
	if t.down > t.up {
		b.fail("params.down", "must be at most up, %g, is %g", t.up, t.down)
	}
	return t
}

func (t *threshold) Recommend(f *Fleet) Recommendation {
	most := t.read(f)
	if t.each && len(t.values) > 0 {
		most = slices.Max(t.values)
	}
	n, above, within, below := t.base(f), ">", "<=", "<"
	if t.inclusive {
		above, within, below = ">=", "<", "<="
	}
	switch {
	case len(t.values) == 0:
		return t.hold(f, "no replica serves")
	case t.waits(f):
		return t.hold(f, whySettling)
	case most > t.up || t.inclusive && most == t.up:
		return t.settled(f, Recommendation{n + t.step, Reason{t.quantity(), most, above, t.up}})
	case most < t.down || t.inclusive && most == t.down:
		after := most * float64(n) / float64(max(1, n-t.step))
		if t.checkRemoval && after >= t.up {
			return t.settled(f, Recommendation{n, Reason{t.quantity() + " after a removal", after, ">=", t.up}})
		}
		return t.settled(f, Recommendation{n - t.step, Reason{t.quantity(), most, below, t.down}})
	}
	t.removal = removal{}
	return Recommendation{f.Current(), Reason{t.quantity(), most, within, t.up}}
}

// quantity names what is compared.
func (t *threshold) quantity() string {
	if t.each {
		return "highest " + strings.TrimPrefix(t.name, "mean ")
	}
	return t.name
}

func (t *threshold) Clone() Autoscaler { c := *t; c.values = nil; return &c }

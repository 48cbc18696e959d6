package policy

import "math"

// deadlineAware is urgent as the deadline comes near; without one, as what the
// class was promised for the first token does. A request with neither has 0.
type deadlineAware struct{ reads }

func newDeadlineAware(*builder, *Spec) Prioritizer { return deadlineAware{reads(NeedRequest)} }

func (deadlineAware) Hints() []string { return []string{"slack_ms"} }

func (deadlineAware) Priority(v *View, hints *[MaxHints]float64) (float64, string) {
	slack := math.Inf(1)
	if r := v.Request; r.DeadlineUS >= 0 {
		slack = float64(r.DeadlineUS-v.NowUS) / 1000
	} else if r.TTFTTargetMS > 0 {
		slack = r.TTFTTargetMS - float64(v.NowUS-r.ArrivalUS)/1000
	}
	hints[0] = slack
	return 1e6 / max(1, slack), ""
}

func (d deadlineAware) Clone() Prioritizer { return d }

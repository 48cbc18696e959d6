package policy

type invertedSLO struct{ hintless }

func newInvertedSLO(*builder, *Spec) Prioritizer { return invertedSLO{} }

func (invertedSLO) Needs() Needs { return NeedRequest }

// 0 - x, since -0 and 0 would be written differently.
func (invertedSLO) Priority(v *View, _ *[MaxHints]float64) (float64, string) {
	return 0 - v.Request.Priority, ""
}
func (i invertedSLO) Clone() Prioritizer { return i }

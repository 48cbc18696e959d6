package policy

type sloBased struct{ hintless }

func newSLOBased(*builder, *Spec) Prioritizer { return sloBased{} }

func (sloBased) Needs() Needs { return NeedRequest }

func (sloBased) Priority(v *View, _ *[MaxHints]float64) (float64, string) {
	return v.Request.Priority, ""
}
func (s sloBased) Clone() Prioritizer { return s }

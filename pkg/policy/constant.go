package policy

type constant struct{ hintless }

func newConstant(*builder, *Spec) Prioritizer { return constant{} }

func (constant) Priority(*View, *[MaxHints]float64) (float64, string) { return 0, "" }
func (c constant) Clone() Prioritizer                                 { return c }

// IsConstant reports whether p gives everybody 0.
func IsConstant(p Prioritizer) bool {
	_, ok := p.(constant)
	return ok
}

package policy

type lastIn struct{ plain }

func newLastIn(*builder, *Spec) Preemptor { return lastIn{} }

func (lastIn) Victim(*Local) float64 { return 0 }
func (l lastIn) Clone() Preemptor    { return l }

// IsLastIn reports whether p prefers nobody, so that there is no need to ask.
func IsLastIn(p Preemptor) bool {
	_, ok := p.(lastIn)
	return ok
}

package policy

type alwaysAdmit struct{ plain }

func newAlwaysAdmit(*builder, *Spec) Admitter { return alwaysAdmit{} }

func (alwaysAdmit) Admit(*View) Verdict { return Verdict{} }
func (a alwaysAdmit) Clone() Admitter   { return a }

// IsAlwaysAdmit reports whether a has nothing to decide.
func IsAlwaysAdmit(a Admitter) bool {
	_, ok := a.(alwaysAdmit)
	return ok
}

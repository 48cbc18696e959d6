package policy

type rejectAll struct{ plain }

func newRejectAll(*builder, *Spec) Admitter { return rejectAll{} }

func (rejectAll) Admit(*View) Verdict {
	return Verdict{Action: Reject, Reason: Reason{What: "rejects all"}}
}
func (r rejectAll) Clone() Admitter { return r }

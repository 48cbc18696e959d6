package policy

// preemptors choose the running sequence to preempt when blocks run out.
func preemptors() table[Preemptor] {
	type kind = policyKind[Preemptor]
	return table[Preemptor]{
		{Name: "last-in", Doc: "the sequence admitted last", Value: kind{build: newLastIn}},
		{Name: "lowest-priority", Doc: "the sequence with the lowest priority; of equal ones the one admitted last",
			Value: kind{build: newLowestPriority}},
		{Name: "expression", Doc: "CEL: victim is a number, the highest is preempted",
			Value: kind{composed: true, build: newVictimExpression}},
		{Name: "starlark", Doc: "program in Starlark: victim(…) returns a number, the highest is preempted",
			Value: kind{composed: true, build: newVictimProgram}},
		{Name: "tree", Doc: "decision tree (root) whose leaves are numbers or policies",
			Value: kind{composed: true, build: newVictimTree}},
	}
}

type lastIn struct{ noNeeds }

func newLastIn(*builder, *Spec) Preemptor { return lastIn{} }

func (lastIn) PreemptionScore(*Local) float64 { return 0 }
func (l lastIn) Clone() Preemptor             { return l }

// IsLastIn reports whether p scores all sequences the same, so that calling it can be skipped.
func IsLastIn(p Preemptor) bool {
	_, ok := p.(lastIn)
	return ok
}

type lowestPriority struct{ needs }

func newLowestPriority(*builder, *Spec) Preemptor { return lowestPriority{needs(NeedPriority)} }

func (lowestPriority) PreemptionScore(l *Local) float64 { return -l.Request.Priority }
func (p lowestPriority) Clone() Preemptor               { return p }

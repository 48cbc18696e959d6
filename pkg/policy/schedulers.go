package policy

// schedulers order the wait queue of a replica. A request gets its position when it is queued and
// keeps it when it is preempted.
func schedulers() table[Scheduler] {
	type kind = policyKind[Scheduler]
	return table[Scheduler]{
		{Name: "fcfs", Doc: "first come, first served", Value: kind{build: newFCFS}},
		{Name: "priority-fcfs", Doc: "highest priority first, then first come", Value: kind{build: newPriorityFCFS}},
		{Name: "sjf", Doc: "shortest predicted output first, then first come", Value: kind{build: newSJF}},
		{Name: "expression", Doc: "CEL: order is a number, lowest first; evaluated once, when a request is queued",
			Value: kind{composed: true, build: newOrderExpression}},
		{Name: "starlark", Doc: "program in Starlark: order(…) returns a number, lowest first",
			Value: kind{composed: true, build: newOrderProgram}},
		{Name: "tree", Doc: "decision tree (root) whose leaves are numbers or policies",
			Value: kind{composed: true, build: newOrderTree}},
		{Name: "reverse-priority", Doc: "lowest priority first",
			Value: kind{pathological: true, build: newReversePriority}},
	}
}

type fcfs struct{ noNeeds }

func newFCFS(*builder, *Spec) Scheduler { return fcfs{} }

func (fcfs) Order(*Local) float64 { return 0 }
func (f fcfs) Clone() Scheduler   { return f }

// IsFCFS reports whether s gives all requests the same order.
func IsFCFS(s Scheduler) bool {
	_, ok := s.(fcfs)
	return ok
}

type priorityFCFS struct{ needs }

func newPriorityFCFS(*builder, *Spec) Scheduler { return priorityFCFS{needs(NeedPriority)} }

func (priorityFCFS) Order(l *Local) float64 { return -l.Request.Priority }
func (p priorityFCFS) Clone() Scheduler     { return p }

type sjf struct{ needs }

func newSJF(*builder, *Spec) Scheduler { return sjf{needs(NeedPredicted)} }

func (sjf) Order(l *Local) float64 { return l.Request.Predicted }
func (s sjf) Clone() Scheduler     { return s }

type reversePriority struct{ needs }

func newReversePriority(*builder, *Spec) Scheduler { return reversePriority{needs(NeedPriority)} }

func (reversePriority) Order(l *Local) float64 { return l.Request.Priority }
func (r reversePriority) Clone() Scheduler     { return r }

package policy

// Schedulers order the wait queue of a replica. A request gets its place when it
// enters, and keeps it when it is preempted.
func Schedulers() table[Scheduler] {
	return table[Scheduler]{
		{Name: "fcfs", Doc: "in the order in which they came", Value: policyKind[Scheduler]{build: newFCFS}},
		{Name: "priority-fcfs", Doc: "the highest priority first, equals as they came", Value: policyKind[Scheduler]{build: newPriorityFCFS}},
		{Name: "sjf", Doc: "the shortest predicted answer first, equals as they came", Value: policyKind[Scheduler]{build: newSJF}},
		{Name: "expression", Doc: "CEL: order is a number, the lowest is first; taken once, when a request enters the queue", Value: policyKind[Scheduler]{composed: true, build: newOrderExpression}},
		{Name: "tree", Doc: "a decision tree (root) with numbers and policies at its leaves", Value: policyKind[Scheduler]{composed: true, build: newOrderTree}},
		{Name: "reverse-priority", Doc: "the lowest priority first", Value: policyKind[Scheduler]{pathological: true, build: newReversePriority}},
	}
}

// Preemptors choose the running sequence that gives way when blocks run out.
func Preemptors() table[Preemptor] {
	return table[Preemptor]{
		{Name: "last-in", Doc: "the sequence admitted last", Value: policyKind[Preemptor]{build: newLastIn}},
		{Name: "lowest-priority", Doc: "the lowest priority, of equals the one admitted last", Value: policyKind[Preemptor]{build: newLowestPriority}},
		{Name: "expression", Doc: "CEL: victim is a number, the highest gives way", Value: policyKind[Preemptor]{composed: true, build: newVictimExpression}},
		{Name: "tree", Doc: "a decision tree (root) with numbers and policies at its leaves", Value: policyKind[Preemptor]{composed: true, build: newVictimTree}},
	}
}

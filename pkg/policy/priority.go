package policy

// Priorities are the priority policies. Higher is sooner.
func Priorities() table[Prioritizer] {
	return table[Prioritizer]{
		{Name: "constant", Doc: "all requests have priority 0", Value: policyKind[Prioritizer]{build: newConstant}},
		{Name: "slo-based", Doc: "the priority of the request's SLO class", Value: policyKind[Prioritizer]{build: newSLOBased}},
		{Name: "tenant-priority", Doc: "a priority for each tenant", Value: policyKind[Prioritizer]{params: tenantPriorityParams, build: newTenantPriority}},
		{Name: "deadline-aware", Doc: "1e6/ms to the deadline, or to the TTFT target; hint slack_ms", Value: policyKind[Prioritizer]{build: newDeadlineAware}},
		{Name: "expression", Doc: "CEL: priority is a number; hints are numbers by name", Value: policyKind[Prioritizer]{composed: true, build: newPriorityExpression}},
		{Name: "tree", Doc: "a decision tree (root) with numbers and policies at its leaves, but those that give hints (deadline-aware)", Value: policyKind[Prioritizer]{composed: true, build: newPriorityTree}},
		{Name: "inverted-slo", Doc: "the class's priority with its sign turned", Value: policyKind[Prioritizer]{pathological: true, build: newInvertedSLO}},
	}
}

// hintless is a priority policy that gives no hints, to be embedded.
type hintless struct{ plain }

func (hintless) Hints() []string { return nil }

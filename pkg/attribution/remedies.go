package attribution

// Remedies of several conditions.

// shorterQueues help where requests wait, whatever they wait behind.
var shorterQueues = []remedy{
	{"serve requests with the least work first; long ones then wait longer", (*proposal).leastWorkFirst},
	{"reject what would miss its TTFT target anyway (predictive-slo)", (*proposal).rejectLate},
	{"raise max_num_batched_tokens: prompts are computed faster in longer steps", (*proposal).longerSteps},
}

// leastLoaded sends little to what is slow.
var leastLoaded = remedy{"route to the replica with the fewest requests in flight", policy("routing", "least-loaded")}

// otherRouters help where requests go to the wrong replica.
var otherRouters = []remedy{
	{"route by prefixes, queues and KV usage (weighted)", policy("routing", "weighted")},
	leastLoaded,
	{"route by the blocks to compute and in use (dynamo-kv)", (*proposal).dynamoRouter},
}

// dynamoRouter proposes Dynamo's router, which does not go with pools.
func (x *proposal) dynamoRouter() []Change {
	if x.Disaggregates() {
		return nil
	}
	return policy("routing", "dynamo-kv")(x)
}

// weighQueues helps where queues were seen and weigh too little.
var weighQueues = append([]remedy{{"weigh queues like the heaviest scorer", (*proposal).readQueues}}, otherRouters...)

// ownReplicas helps where long prompts slow others down.
var ownReplicas = remedy{"send long prompts to replicas of their own (pools)", (*proposal).longPromptsApart}

// inOrder proposes to serve classes by their priority, if there are several; where that is so, by the priorities of the
// classes themselves.
func (x *proposal) inOrder() []Change {
	if !x.hasClasses() {
		return nil
	}
	if changes := classesFirst(x); len(changes) > 0 {
		return changes
	}
	const scores = "policies.priority.params.scores"
	if set, _ := x.config(scores).(map[string]any); len(set) == 0 {
		return nil
	}
	return []Change{x.set(scores, map[string]any{})}
}

// hasClasses reports whether requests have different SLO classes.
func (a *Analyzer) hasClasses() bool {
	classes := map[int32]bool{}
	for l := range a.labels {
		classes[l.class] = true
	}
	delete(classes, noLabels.class) // that of requests without one, and of those without an outcome
	return len(classes) > 1
}

// classesFirst serves classes by their priority.
var classesFirst = policy("priority", "slo-based", "scheduler", "priority-fcfs")

// leastWorkFirst proposes to order queues by the tokens of requests, within their priorities if the scheduler reads
// them.
func (x *proposal) leastWorkFirst() []Change {
	order := "req.input_tokens + req.predicted_output_tokens"
	switch x.topology.policy("scheduler") {
	case "fcfs", "sjf":
	case "priority-fcfs":
		order += " - 1000000 * req.priority" // more than the tokens of any request
	default:
		return nil
	}
	return []Change{x.set("policies.scheduler", map[string]any{"type": "expression", "order": order})}
}

// rejectLate proposes to reject requests whose estimated TTFT exceeds three quarters of the target of their class. The
// estimate is of a replica that decodes: it does not know the queues of prefill replicas.
func (x *proposal) rejectLate() []Change {
	budgets := map[string]any{}
	for name, class := range x.classes {
		if class.Targets.TTFTMS > 0 {
			budgets[name] = 0.75 * class.Targets.TTFTMS
		}
	}
	if len(budgets) == 0 || x.topology.policy("admission") != alwaysAdmit || x.deployment().Prefill != nil {
		return nil
	}
	return []Change{x.set("policies.admission", map[string]any{"type": "predictive-slo",
		"params": map[string]any{"budget_ms": budgets, "standard_tolerance": 1}})}
}

// longerSteps proposes a larger token budget where none missed the TPOT target.
func (x *proposal) longerSteps() []Change {
	for _, r := range x.p.losing {
		if r.verdict.missed&missedTPOT != 0 {
			return nil
		}
	}
	return x.moreBudget()
}

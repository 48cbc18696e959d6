package attribution

// longPromptFactor times the median prompt is a long one.
const longPromptFactor = 4

// unexplained begins the cause of conditions that only say what kind of request was lost.
const unexplained = "no other condition explains these; "

var burst = Condition{Name: "burst", Component: workloadComponent, rank: rankTrait, parts: anyPart,
	Doc: "in a burst of its tenant: at least 10 requests in a second, at over three times the rate of the" +
		" last minute",
	Cause: always(unexplained + "in a burst of their tenant"),
	Hint:  "smooth bursts in admission: token-bucket, or delay",
	holds: when(func(r *request) bool { return r.contention.inBurst })}

var longPrompt = Condition{Name: "long_prompt", Component: workloadComponent, rank: rankTrait, parts: anyPart,
	Doc:   "a prompt at least four times the median",
	Cause: always(unexplained + "prompts of at least four times the median"),
	Hint:  "send long prompts to dedicated replicas, or lower long_prefill_token_threshold",
	holds: func(a *Analyzer, r *request) (int32, bool) {
		return 0, int64(r.tokens.input) >= longPromptFactor*a.stats.medianInput
	}}

var tenantTrait = Condition{Name: "tenant", Component: workloadComponent, rank: rankTrait, parts: anyPart,
	Doc:   "of this tenant",
	Cause: always(unexplained + "all of this tenant"),
	Hint:  "see what this tenant sends: --where 'tenant == ...'",
	holds: func(a *Analyzer, r *request) (int32, bool) {
		return r.labels.tenant, a.names.list[r.labels.tenant] != ""
	},
	valueName: nameOf}

var classTrait = Condition{Name: "class", Component: workloadComponent, rank: rankTrait, parts: anyPart,
	Doc:   "of this SLO class",
	Cause: always(unexplained + "all of this SLO class"),
	Hint:  "check the targets of this class: they may be out of reach",
	holds: func(a *Analyzer, r *request) (int32, bool) {
		return r.labels.class, a.names.list[r.labels.class] != ""
	},
	valueName: nameOf}

package attribution

// longPromptFactor times the median prompt is a long one.
const longPromptFactor = 4

// unexplained begins the cause of conditions that only say what kind of request was lost.
const unexplained = "no other condition explains these; "

var burst = Condition{Name: "burst", Component: workloadComponent, rank: rankTrait, parts: anyPart,
	Doc: "in a burst of its tenant: at least 10 requests in a second, at over three times the rate of the" +
		" last minute",
	cause:  always(unexplained + "in a burst of their tenant"),
	Hint:   "smooth bursts in admission: token-bucket, or delay",
	others: shorterQueues,
	holds:  when(func(r *request) bool { return r.contention.inBurst })}

var longPrompt = Condition{Name: "long_prompt", Component: workloadComponent, rank: rankTrait, parts: anyPart,
	Doc:    "a prompt at least four times the median",
	cause:  always(unexplained + "prompts of at least four times the median"),
	Hint:   "send long prompts to dedicated replicas (pools), or lower long_prefill_token_threshold",
	change: (*proposal).longPromptsApart,
	holds: func(a *Analyzer, r *request) bool {
		return int64(r.tokens.input) >= longPromptFactor*a.stats.medianInput
	}}

var tenantTrait = Condition{Name: "tenant", Component: workloadComponent, rank: rankTrait, parts: anyPart,
	Doc:   "of this tenant",
	cause: always(unexplained + "all of this tenant"),
	Hint:  "see what this tenant sends: --where 'tenant == ...'",
	holds: func(a *Analyzer, r *request) bool { return a.names.list[r.labels.tenant] != "" },
	value: func(_ *Analyzer, r *request) int32 { return r.labels.tenant }, valueName: nameOf}

var classTrait = Condition{Name: "class", Component: workloadComponent, rank: rankTrait, parts: anyPart,
	Doc:   "of this SLO class",
	cause: always(unexplained + "all of this SLO class"),
	Hint:  "check the targets of this class: they may be out of reach",
	holds: func(a *Analyzer, r *request) bool { return a.names.list[r.labels.class] != "" },
	value: func(_ *Analyzer, r *request) int32 { return r.labels.class }, valueName: nameOf}

// isTrait reports whether the condition only says what kind of request was lost.
func (c *Condition) isTrait() bool { return c.rank == rankTrait && c.Component == workloadComponent }

package stream

// Session is a DAG of calls that belong together: a conversation, an agent at
// work, a user who waits for answers. It stands in a workload among requests,
// sorted by arrival, with everything drawn that does not depend on how fast the
// cluster is; only when its steps happen is decided in the simulation. Rates
// and limits count it as one arrival.
type Session struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	// ArrivalUS is when the steps that come after no other begin.
	ArrivalUS Micros `json:"arrival_us"`
	Tenant    string `json:"tenant,omitempty"`
	SLOClass  string `json:"slo_class,omitempty"`
	// Model is what its steps ask for that name none.
	Model string `json:"model,omitempty"`
	// Workflow says for people what the session is.
	Workflow string `json:"workflow,omitempty"`
	// UntilUS ends the session: steps that would begin later do not happen.
	UntilUS Micros `json:"until_us,omitzero"`
	// Persistent ones go on after a step that did not complete as after one that
	// did: a user who asks again. Others are broken by it.
	Persistent bool          `json:"persistent,omitempty"`
	Steps      []SessionStep `json:"steps"`
}

// SessionStep is one call of a model, or of a tool if Tool names one. A call of
// a model is the request SESSION/ID.
type SessionStep struct {
	// ID is unique in the session.
	ID string `json:"id"`
	// Step is what the workflow calls it, of which there may be several, in
	// parallel and in iterations (from 1) of a loop; absent, ID.
	Step      string `json:"step,omitempty"`
	Iteration int64  `json:"iteration,omitempty"`
	// After are the places, among Steps and before this one, of those that must
	// have completed. The step begins DelayUS after the last of them, for its
	// client (think time).
	After   []Index `json:"after,omitempty"`
	DelayUS int64   `json:"delay_us,omitempty"`
	// Tool is the tool called, LatencyUS how long it takes.
	Tool      string `json:"tool,omitempty"`
	LatencyUS int64  `json:"latency_us,omitempty"`
	// Model is the model called, if it is not the session's.
	Model string `json:"model,omitempty"`
	// InputTokens and OutputTokens are those of a call of a model; of a tool's
	// there is only output, which counts in the prompts that hold it.
	InputTokens  int64 `json:"input_tokens,omitempty"`
	OutputTokens int64 `json:"output_tokens,omitempty"`
	// Extends is the place of an earlier call of a model whose prompt this one's
	// begins with: its first KeepTokens tokens, 0 for all that have a name. Prompt
	// goes on from there, and what all of it leaves of InputTokens is unique.
	Extends    Index     `json:"extends,omitzero"`
	KeepTokens int64     `json:"keep_tokens,omitempty"`
	Prompt     []Segment `json:"prompt,omitempty"`
	// TimeoutUS after its arrival the request is aborted; 0 is never.
	TimeoutUS             int64 `json:"timeout_us,omitempty"`
	PredictedOutputTokens int64 `json:"predicted_output_tokens,omitempty"`
}

// Name is what the workflow calls the step.
func (s *SessionStep) Name() string {
	if s.Step != "" {
		return s.Step
	}
	return s.ID
}

// RequestID is the id of the request that step s of the session called session
// makes.
func (s *SessionStep) RequestID(session string) string { return session + "/" + s.ID }

// AppendPrompt appends to list the whole prompt of step i, what it extends
// included, as far as it has names.
func (s *Session) AppendPrompt(list []Segment, i int) []Segment {
	step := &s.Steps[i]
	if !step.Extends.IsZero() {
		from := len(list)
		list = s.AppendPrompt(list, int(step.Extends))
		if step.KeepTokens > 0 {
			list = cut(list, from, step.KeepTokens)
		}
	}
	return append(list, step.Prompt...)
}

// cut leaves of list, from a place on, the first tokens.
func cut(list []Segment, from int, tokens int64) []Segment {
	for i := from; i < len(list); i++ {
		if tokens <= list[i].Tokens {
			list[i].Tokens = tokens
			return list[:i+1]
		}
		tokens -= list[i].Tokens
	}
	return list
}

// SessionOutcome is what became of one session.
type SessionOutcome struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	// State is StateCompleted, StateBroken or StateUnfinished; Step is the id of the
	// step that broke it and Reason why that one ended.
	State     string `json:"state"`
	Step      string `json:"step,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Tenant    string `json:"tenant,omitempty"`
	SLOClass  string `json:"slo_class,omitempty"`
	Workflow  string `json:"workflow,omitempty"`
	ArrivalUS Micros `json:"arrival_us"`
	// CompletedUS is when the client had the last answer and the last tool ended;
	// only where completed.
	CompletedUS Micros `json:"completed_us,omitzero"`
	// Calls are the calls of models that the session has, Offered those that were
	// made, Completed those that were answered; Tools are the tools' that ended.
	Calls     int64 `json:"calls"`
	Offered   int64 `json:"offered"`
	Completed int64 `json:"completed"`
	Tools     int64 `json:"tools"`
	// ToolUS is the time in all calls of tools, those at one time added up.
	ToolUS int64 `json:"tool_us"`
	// CriticalUS is the longest way through the DAG in time spent in calls, those
	// of tools included: E2E less the client's thinking.
	CriticalUS int64 `json:"critical_us"`
	// Parallel are the calls of the session that fan out, ParallelCompleted those
	// of them that were answered.
	Parallel          int64 `json:"parallel,omitempty"`
	ParallelCompleted int64 `json:"parallel_completed,omitempty"`
	// Iterations is the last iteration of a loop that was completed in part.
	Iterations int64 `json:"iterations,omitempty"`
	// SLOMet says whether all calls were made and met the targets of the session's
	// class; nil and absent where the class has none.
	SLOMet *bool `json:"slo_met,omitempty"`
}

// Lost is how many calls of a broken session were never made.
func (o *SessionOutcome) Lost() int64 {
	if o.State != StateBroken {
		return 0
	}
	return o.Calls - o.Offered
}

// Breaker is the id of the request that broke the session; of no request where none did.
func (o *SessionOutcome) Breaker() string {
	return (&SessionStep{ID: o.Step}).RequestID(o.ID)
}

// StateBroken is the state of a session one of whose steps did not complete.
const StateBroken = "broken"

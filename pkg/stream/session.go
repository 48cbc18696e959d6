package stream

import "cmp"

// Session is a DAG of model and tool calls that belong together: a conversation, an agent at work.
//
// A workload mixes sessions with requests, sorted by arrival. All their random
// values are drawn in the workload; only the simulation decides when steps happen.
// Rates and limits count a session as one arrival.
//
//wire:record session encode decode check
type Session struct {
	Kind string `json:"kind"`
	// Name of the session, unique in its stream, also among requests.
	ID string `json:"id" wire:"unique"`
	// When the steps without predecessors begin, in µs since the workload's origin.
	ArrivalUS Micros `json:"arrival_us"`
	// Tenant that sent the session.
	Tenant string `json:"tenant,omitempty"`
	// SLO class of its requests.
	SLOClass string `json:"slo_class,omitempty"`
	// What its requests ask for, as in vLLM's header X-Vllm-Priority: lower is more urgent. It counts with the priority
	// policy request-priority, and is 0 if absent.
	Priority int64 `json:"priority,omitempty" wire:"min=-maxIndex,max=maxIndex"`
	// Model of steps that name none; if absent, the cluster's first.
	Model string `json:"model,omitempty"`
	// LoRA adapter of its model calls; if absent, none.
	Adapter string `json:"adapter,omitempty"`
	// Description of the session for people.
	Workflow string `json:"workflow,omitempty"`
	// Steps that would begin later do not happen, in µs since the workload's origin.
	UntilUS Micros `json:"until_us,omitzero"`
	// Whether the session continues after a step that did not complete; otherwise it is broken.
	Persistent bool `json:"persistent,omitempty"`
	// The calls, each after the calls it waits for.
	Steps []SessionStep `json:"steps"`
}

// SessionStep is a model call or, if it names a tool, a tool call. A model call is the request SESSION/ID.
//
//wire:object session_step encode decode
type SessionStep struct {
	// Name of the step, unique in its session.
	ID string `json:"id" wire:"unique"`
	// Name of the step in the workflow, shared by parallel calls and loop iterations; if absent, the id.
	Step string `json:"step,omitempty"`
	// Iteration of the step's loop, from 1.
	Iteration int64 `json:"iteration,omitempty" wire:"min=1"`
	// Indexes, from 0, of the earlier steps that must have completed.
	After []Index `json:"after,omitempty"`
	// Think time: how long after the last of them the step begins, in µs.
	DelayUS int64 `json:"delay_us,omitempty" wire:"min=1"`
	// Called tool; absent for a model call.
	Tool string `json:"tool,omitempty"`
	// Duration of the tool call, in µs.
	LatencyUS int64 `json:"latency_us,omitempty" wire:"min=1"`
	// Called model, if it is not the session's.
	Model string `json:"model,omitempty"`
	// Grammar, JSON schema or set of tools that the output of a model call must follow, by any name; if absent, the
	// output is free.
	Grammar string `json:"grammar,omitempty"`
	// Length of the prompt.
	InputTokens int64 `json:"input_tokens,omitempty" wire:"min=1,max=maxTokens"`
	// Tokens to generate, or that the tool returns.
	OutputTokens int64 `json:"output_tokens,omitempty" wire:"min=1,max=maxTokens"`
	// What ends the output of a model call: eos is an end-of-sequence token. If absent, it ends at its maximum length.
	Stop string `json:"stop,omitempty" wire:"oneof=stops"`
	// Probability that a draft of speculative decoding is accepted if those before it are; if absent, that of the
	// engine.
	DraftAcceptance *float64 `json:"draft_acceptance,omitempty"`
	// Index of an earlier model call whose prompt this one begins with.
	Extends Index `json:"extends,omitzero"`
	// Number of leading tokens of that prompt to keep; if absent, all in its segments.
	KeepTokens int64 `json:"keep_tokens,omitempty" wire:"min=1,max=maxTokens"`
	// The tokens that follow, as segments; the rest of input_tokens is unique to the request.
	Prompt []Segment `json:"prompt,omitempty"`
	// Time after arrival at which the request is aborted, in µs.
	TimeoutUS int64 `json:"timeout_us,omitempty" wire:"min=1"`
	// Prediction of output_tokens that policies may use.
	PredictedOutputTokens int64 `json:"predicted_output_tokens,omitempty" wire:"min=1,max=maxTokens"`
	// When the client sends the request again; absent if it does not.
	Retry *Retry `json:"retry,omitempty"`
}

// Name is the name of the step in the workflow.
func (s *SessionStep) Name() string { return cmp.Or(s.Step, s.ID) }

// RequestID is the id of the request that the step makes in the session with that id.
func (s *SessionStep) RequestID(session string) string { return session + "/" + s.ID }

// AppendPrompt appends to list the complete prompt of step i, as far as it is in
// segments, including the prompt that it extends.
func (s *Session) AppendPrompt(list []Segment, i int) []Segment {
	step := &s.Steps[i]
	if !step.Extends.IsZero() {
		from := len(list)
		list = s.AppendPrompt(list, int(step.Extends))
		if step.KeepTokens > 0 {
			list = truncatePrompt(list, from, step.KeepTokens)
		}
	}
	return append(list, step.Prompt...)
}

// truncatePrompt shortens list[from:] to its first tokens.
func truncatePrompt(list []Segment, from int, tokens int64) []Segment {
	for i := from; i < len(list); i++ {
		if tokens <= list[i].Tokens {
			list[i].Tokens = tokens
			return list[:i+1]
		}
		tokens -= list[i].Tokens
	}
	return list
}

// StateBroken is the state of a session with a step that did not complete.
const StateBroken = "broken"

var sessionStates = []string{StateCompleted, StateBroken, StateUnfinished}

// SessionOutcome is the result of one session.
//
//wire:record session_outcome
type SessionOutcome struct {
	Kind string `json:"kind"`
	// Id of the session.
	ID string `json:"id"`
	// How the session ended.
	State string `json:"state" wire:"oneof=sessionStates"`
	// Id of the step that broke it.
	Step string `json:"step,omitempty"`
	// Why that step did not complete.
	Reason string `json:"reason,omitempty"`
	// Tenant that sent the session.
	Tenant string `json:"tenant,omitempty"`
	// SLO class of its requests.
	SLOClass string `json:"slo_class,omitempty"`
	// Description of the session for people.
	Workflow string `json:"workflow,omitempty"`
	// When the session arrived, in µs since the workload's origin.
	ArrivalUS Micros `json:"arrival_us"`
	// When the client had the last output and the last tool had ended; only if completed.
	CompletedUS Micros `json:"completed_us,omitzero"`
	// Model calls of the session.
	Calls int64 `json:"calls"`
	// Model calls that were issued.
	Offered int64 `json:"offered"`
	// Model calls that completed.
	Completed int64 `json:"completed"`
	// Tool calls that ended.
	Tools int64 `json:"tools"`
	// Total time in tool calls, including overlaps, in µs.
	ToolUS int64 `json:"tool_us"`
	// Longest path through the steps in call time, in µs: E2E without think time.
	CriticalUS int64 `json:"critical_us"`
	// Model calls that run in parallel with others of the same step.
	Parallel int64 `json:"parallel,omitempty" wire:"min=1"`
	// Parallel calls that completed.
	ParallelCompleted int64 `json:"parallel_completed,omitempty" wire:"min=1"`
	// Last iteration with a completed step.
	Iterations int64 `json:"iterations,omitempty" wire:"min=1"`
	// Whether all calls were issued and met the targets of the class; absent if the class has none.
	SLOMet *bool `json:"slo_met,omitempty"`
}

// NotIssued is the number of calls that a broken session never issued.
func (o *SessionOutcome) NotIssued() int64 {
	if o.State != StateBroken {
		return 0
	}
	return o.Calls - o.Offered
}

// FailedRequest is the id of the request that broke the session; it is meaningless if none did.
func (o *SessionOutcome) FailedRequest() string {
	return (&SessionStep{ID: o.Step}).RequestID(o.ID)
}

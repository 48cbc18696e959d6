package stream

import "reflect"

// Bounds of the integers on the wire. Tokens stay below 2^31, so that sums and
// products of a few of them never overflow; all else below 2^53, where every
// JSON reader is still exact.
const (
	maxTokens = 1<<31 - 1
	maxIndex  = 1<<31 - 1
	maxExact  = 1 << 53
)

// Field is what the wire knows of one field of an object. The decoders, the
// schemas and whoever lists fields for people read the same table.
type Field struct {
	Name, Doc string
	// Required fields are always written and never left out.
	Required bool
	// Min and Max bound an integer, both inclusive; Max 0 is no bound.
	Min, Max int64
	// OneOf holds the only values of a string; nil is no bound.
	OneOf []string
}

// Object describes one object of the wire: a record, whose Name is its kind,
// or a part of one. Fields stand in the order of the Go type, which is the
// order in which they are written.
type Object struct {
	Name, Doc string
	Type      reflect.Type
	Fields    []Field
	// required has bit i set where Fields[i] is required; keys[i] is its name
	// as it is written.
	required uint64
	keys     []string
}

func describe[T any](name, doc string, fields ...Field) *Object {
	o := &Object{Name: name, Doc: doc, Type: reflect.TypeFor[T](), Fields: fields}
	for i, f := range fields {
		o.keys = append(o.keys, `"`+f.Name+`":`)
		if f.Required {
			o.required |= 1 << i
		}
	}
	return o
}

// Objects is everything that this package puts on the wire, records first.
var Objects = []*Object{
	headerObject, requestObject, sessionObject, decisionObject, regretObject, anomalyObject, preemptionObject, snapshotObject, stepObject, outcomeObject, sessionOutcomeObject, errorObject, endObject,
	segmentObject, sessionStepObject, alternativeObject, differenceObject, candidateObject, classObject, targetsObject, runObject, recordingObject, keyObject, parentObject, sourceObject, countsObject,
}

// States of a request at its end, in the order in which Counts counts them.
var states = []string{StateCompleted, StateRejected, StateTimedOut, StateFailed, StateUnfinished}

// Stages in which policies decide.
var stages = []string{StageAdmission, StagePriority, StageFlowControl, StageRouting}

var requestObject = describe[Request](KindRequest, "One call of a model, as a workload offers it.",
	Field{Name: "kind", Doc: "Always request.", Required: true, OneOf: []string{KindRequest}},
	Field{Name: "id", Doc: "Names the request; unique in its stream.", Required: true},
	Field{Name: "arrival_us", Doc: "When the request arrives, in µs since the workload's origin.", Required: true, Max: maxExact},
	Field{Name: "input_tokens", Doc: "Length of the prompt.", Required: true, Min: 1, Max: maxTokens},
	Field{Name: "output_tokens", Doc: "Tokens to be generated.", Required: true, Min: 1, Max: maxTokens},
	Field{Name: "prompt", Doc: "The leading tokens of the prompt as segments; what they leave of input_tokens is unique to the request."},
	Field{Name: "tenant", Doc: "Who sent the request."},
	Field{Name: "slo_class", Doc: "The class of service that the request was promised."},
	Field{Name: "model", Doc: "The model asked for; absent, the cluster's first."},
	Field{Name: "session", Doc: "The conversation that it belongs to."},
	Field{Name: "turn", Doc: "Its place in the conversation, from 0.", Max: maxExact},
	Field{Name: "deadline_us", Doc: "The instant, in µs since the workload's origin, at which the request is aborted wherever it is.", Max: maxExact},
	Field{Name: "predicted_output_tokens", Doc: "What a policy may know of output_tokens.", Min: 1, Max: maxTokens},
)

var segmentObject = describe[Segment]("segment", "A run of prompt tokens with an identity: prompts that begin with the same segments begin with the same tokens.",
	Field{Name: "id", Doc: "Names the tokens; a shorter use of an id is a prefix of a longer one. What request R generated is R.out.", Required: true},
	Field{Name: "tokens", Doc: "How many tokens of it are used.", Required: true, Min: 1, Max: maxTokens},
)

var outcomeObject = describe[Outcome](KindOutcome, "What became of one request. Times are µs since the workload's origin and absent where they never came.",
	Field{Name: "kind", Doc: "Always outcome.", Required: true, OneOf: []string{KindOutcome}},
	Field{Name: "id", Doc: "The request's id.", Required: true},
	Field{Name: "state", Doc: "How the request ended.", Required: true, OneOf: states},
	Field{Name: "reason", Doc: "Why a request that did not complete ended so."},
	Field{Name: "arrival_us", Doc: "When the request arrived.", Required: true, Max: maxExact},
	Field{Name: "admitted_us", Doc: "When it was admitted.", Max: maxExact},
	Field{Name: "routed_us", Doc: "When it was sent to a replica.", Max: maxExact},
	Field{Name: "enqueued_us", Doc: "When it entered the replica's queue.", Max: maxExact},
	Field{Name: "scheduled_us", Doc: "When it first entered a batch.", Max: maxExact},
	Field{Name: "first_token_us", Doc: "When the client saw the first token.", Max: maxExact},
	Field{Name: "completed_us", Doc: "When the client saw the last token; only where completed.", Max: maxExact},
	Field{Name: "ended_us", Doc: "When a request that did not complete was final.", Max: maxExact},
	Field{Name: "deployment", Doc: "The deployment that served it."},
	Field{Name: "replica", Doc: "The index of the replica in its deployment, from 0.", Max: maxIndex},
	Field{Name: "tenant", Doc: "Who sent the request."},
	Field{Name: "slo_class", Doc: "The class of service that the request was promised."},
	Field{Name: "model", Doc: "The model asked for."},
	Field{Name: "priority", Doc: "The priority it was given; higher is sooner.", Required: true},
	Field{Name: "session", Doc: "The session that it belongs to."},
	Field{Name: "step", Doc: "The step of the session."},
	Field{Name: "iteration", Doc: "The pass of the step's loop, from 1.", Min: 1, Max: maxExact},
	Field{Name: "decision", Doc: "The id of the routing decision."},
	Field{Name: "input_tokens", Doc: "Length of the prompt; 0 where a recording does not know.", Required: true, Max: maxTokens},
	Field{Name: "output_tokens", Doc: "Tokens asked for; 0 where a recording does not know.", Required: true, Max: maxTokens},
	Field{Name: "generated_tokens", Doc: "Tokens produced.", Required: true, Max: maxTokens},
	Field{Name: "cached_tokens", Doc: "Prompt tokens found in the prefix cache when the request was first scheduled.", Required: true, Max: maxTokens},
	Field{Name: "expected_cached_tokens", Doc: "Prompt tokens that the router expected to be found there.", Required: true, Max: maxTokens},
	Field{Name: "preemptions", Doc: "How often it lost its place in the batch.", Required: true, Max: maxExact},
	Field{Name: "preempted_us", Doc: "How long it waited for a place again after that, in µs.", Min: 1, Max: maxExact},
	Field{Name: "delays", Doc: "How often admission put it off.", Required: true, Max: maxExact},
	Field{Name: "itl_us", Doc: "Gaps between its tokens, run-length: [gap in µs, how often in a row]."},
	Field{Name: "itl_max_us", Doc: "The largest gap between two of its tokens.", Max: maxExact},
	Field{Name: "slo_met", Doc: "Whether all targets of its class were met; absent where the class has none."},
)

var decisionObject = describe[Decision](KindDecision, "One choice of a policy.",
	Field{Name: "kind", Doc: "Always decision.", Required: true, OneOf: []string{KindDecision}},
	Field{Name: "id", Doc: "Names the decision; unique in its stream.", Required: true},
	Field{Name: "stage", Doc: "Who chose.", Required: true, OneOf: stages},
	Field{Name: "at_us", Doc: "When, in µs since the workload's origin.", Required: true, Max: maxExact},
	Field{Name: "request", Doc: "The id of the request that it is about.", Required: true},
	Field{Name: "verdict", Doc: "What admission (admit, reject, delay, expire: delayed as often as may be) or flow control (queue, reject, expire) did."},
	Field{Name: "delay_us", Doc: "How long the request was delayed, in µs.", Min: 1, Max: maxExact},
	Field{Name: "deployment", Doc: "The deployment that routing chose."},
	Field{Name: "replica", Doc: "The index of the replica that routing chose in its deployment, from 0.", Max: maxIndex},
	Field{Name: "score", Doc: "The winner's score, in the policy's own unit; of stage priority, the priority that was given.", Required: true},
	Field{Name: "candidates", Doc: "Among how many it was chosen.", Required: true, Max: maxExact},
	Field{Name: "reason", Doc: "What decided, in a word or two."},
	Field{Name: "rule", Doc: "The path in the policies of the leaf or expression that decided."},
	Field{Name: "expected_cached_tokens", Doc: "What the router counted on where it sent the request.", Min: 1, Max: maxTokens},
	Field{Name: "scorers", Doc: "What the terms of the candidates' scores are, in their order."},
	Field{Name: "considered", Doc: "The best candidates, the best first, the choice among them; at trace level full all."},
)

var candidateObject = describe[Candidate]("candidate", "A replica as a routing policy saw it; what it does not look at is absent.",
	Field{Name: "deployment", Doc: "Its deployment.", Required: true},
	Field{Name: "replica", Doc: "Its index in the deployment, from 0.", Required: true, Max: maxIndex},
	Field{Name: "filtered", Doc: "Whether a filter left it out."},
	Field{Name: "score", Doc: "Its score, in the policy's own unit."},
	Field{Name: "terms", Doc: "What each scorer gave it, from 0 to 1."},
	Field{Name: "inflight", Doc: "Requests sent there that have not left, by the router's own count.", Required: true, Max: maxIndex},
	Field{Name: "queue_depth", Doc: "Requests in its wait queue.", Max: maxIndex},
	Field{Name: "running", Doc: "Sequences in its batch.", Max: maxIndex},
	Field{Name: "kv_util", Doc: "The share of its blocks in use."},
	Field{Name: "hit_rate", Doc: "The share of prompt tokens found cached in the last 10 s."},
	Field{Name: "recent_ttft_ms", Doc: "Its mean TTFT of the last 10 s, in ms."},
	Field{Name: "recent_tpot_ms", Doc: "Its mean TPOT of the last 10 s, in ms."},
	Field{Name: "est_wait_ms", Doc: "The length of its queue times its mean step, in ms."},
	Field{Name: "matched_blocks", Doc: "Blocks of the prompt that the router believed to be there.", Max: maxIndex},
	Field{Name: "cached_blocks", Doc: "Blocks of the prompt that it saw there.", Max: maxIndex},
	Field{Name: "age_us", Doc: "How old the oldest of these values was that the replica gave, in µs.", Min: 1, Max: maxExact},
)

var preemptionObject = describe[Preemption](KindPreemption, "A request that lost its place in a replica's batch.",
	Field{Name: "kind", Doc: "Always preemption.", Required: true, OneOf: []string{KindPreemption}},
	Field{Name: "at_us", Doc: "When the batch without it was formed, in µs since the workload's origin.", Required: true, Max: maxExact},
	Field{Name: "deployment", Doc: "The deployment of the replica.", Required: true},
	Field{Name: "replica", Doc: "The index of the replica in its deployment, from 0.", Required: true, Max: maxIndex},
	Field{Name: "request", Doc: "The id of the request.", Required: true},
)

var snapshotObject = describe[Snapshot](KindSnapshot, "What the router read of a replica at an instant; what it did not read is absent. It may stand after records of later times.",
	Field{Name: "kind", Doc: "Always snapshot.", Required: true, OneOf: []string{KindSnapshot}},
	Field{Name: "at_us", Doc: "When it was read, in µs since the workload's origin.", Required: true, Max: maxExact},
	Field{Name: "deployment", Doc: "The deployment of the replica.", Required: true},
	Field{Name: "replica", Doc: "The index of the replica in its deployment, from 0.", Required: true, Max: maxIndex},
	Field{Name: "queue_depth", Doc: "Requests in its wait queue.", Max: maxIndex},
	Field{Name: "running", Doc: "Sequences in its batch.", Max: maxIndex},
	Field{Name: "kv_util", Doc: "The share of its blocks in use."},
	Field{Name: "hit_rate", Doc: "The share of prompt tokens found cached in the last 10 s."},
	Field{Name: "recent_ttft_ms", Doc: "The mean TTFT of the last 10 s, in ms."},
	Field{Name: "recent_tpot_ms", Doc: "The mean TPOT of the last 10 s, in ms."},
	Field{Name: "est_wait_ms", Doc: "The length of its queue times its mean step, in ms."},
	Field{Name: "cache", Doc: "Whether the content of its block cache was read."},
)

var stepObject = describe[Step](KindStep, "One batch of one replica, written when it ends.",
	Field{Name: "kind", Doc: "Always step.", Required: true, OneOf: []string{KindStep}},
	Field{Name: "deployment", Doc: "The deployment of the replica.", Required: true},
	Field{Name: "replica", Doc: "The index of the replica in its deployment, from 0.", Required: true, Max: maxIndex},
	Field{Name: "start_us", Doc: "When the step began, in µs since the workload's origin.", Required: true, Max: maxExact},
	Field{Name: "end_us", Doc: "When it ended.", Required: true, Max: maxExact},
	Field{Name: "prefill_tokens", Doc: "Prompt and recomputed tokens in the batch.", Required: true, Max: maxExact},
	Field{Name: "decode_tokens", Doc: "Tokens in the batch that continue a sequence, one a sequence.", Required: true, Max: maxExact},
	Field{Name: "running", Doc: "Requests in the replica's running list.", Required: true, Max: maxExact},
	Field{Name: "waiting", Doc: "Requests in its wait queue.", Required: true, Max: maxExact},
	Field{Name: "used_blocks", Doc: "Blocks of its cache that requests hold.", Required: true, Max: maxExact},
	Field{Name: "preempted", Doc: "Requests that lost their place when the batch was formed.", Required: true, Max: maxExact},
)

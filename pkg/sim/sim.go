// Package sim runs the control plane and the replicas on one clock and converts between stream
// records and their types.
package sim

import (
	"fmt"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/hardware"
	"blis/pkg/kv"
	"blis/pkg/latency"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// Kinds of event. Their order is the order of events at one instant. Steps start after all other
// events of an instant.
const (
	sessionStart uint8 = iota
	arrival
	admission
	routing
	enqueue
	stepEnd
	transferEnd
	linkChange // of a link between pools: a transfer begins to move bytes, or ends
	leaseEnd   // of the blocks of a computed prompt
	deadline
	flowTimeout // of a request in flow control
	compiled    // the grammar of a request
	failure     // of a replica; the kinds from here on belong to no request
	scaleCheck  // of a deployment
	scaleAction
	drainTimeout // of a replica
	replicaReady // it goes on to its next phase
	probe        // of all replicas
	encodeEnd    // of a batch of an encode replica
	// embeddingChange is that of the links from encode replicas: a transfer begins to move bytes, or ends.
	embeddingChange
	encodeStart // of an encode replica, when nothing else happens at an instant but what flow control does
	flowDrain   // of the flow-control queues
)

// replica is one engine and its place in the cluster.
type replica struct {
	engine      *engine.Engine
	deployment  int
	index       stream.Index // within the deployment; data-parallel ranks of a server follow each other
	readyToStep bool         // in simulation.readyToStep
	maxSeqs     int          // batch slots
	// requests were sent to it; completed of them have completed.
	requests, completed int64
	awaited             awaited
	server              int32 // in simulation.servers, missing unless it is a data-parallel rank
	ranks               rankTotals
	result              *engine.StepResult // of its last step
	jitter              jitter
	admitted            admitted // by its server; only with a frontDoor
	// pipelined: its requests may run while their blocks arrive. awaitsBlocks: its step only waits for them.
	pipelined, awaitsBlocks bool
}

// deployment is the common data of its replicas.
type deployment struct {
	id          string
	first, end  int      // replicas[first:end] are those at the start
	elastic     *elastic // nil if there are no others
	model       latency.Model
	limits      limits
	tokenBudget int64 // tokens per step
	gpus        int   // per replica
	stages      int   // of a pipeline, 0 without
	perGPUHour  float64
	power       power
	blockBytes  int64 // of a KV block; 0 if blocks do not move
	hasTiers    bool
	speculates  bool // it has speculative decoding
	grammars    grammarTimes
	// door is nil if its servers reject nothing.
	door *frontDoor
	// pool is nil unless it is the decode pool of a disaggregated deployment. prefills: it is a prefill pool.
	pool     *pool
	prefills bool
	encoders int // in encoding.pools, or noEncoders
	// measuredRange is the range in which its coefficients were measured, nil if unknown.
	measuredRange *hardware.Range
	// unmeasured says how step times were computed, "" if they were measured.
	unmeasured string
	fromFile   bool // coefficients come from a user's file
}

// simulation is the kernel of a run: the clock, the stages of requests, the replicas and their steps.
// Everything that only watches the run is an observer.
type simulation struct {
	now, horizon des.Time
	events       eventQueue

	deployments []deployment
	replicas    []replica
	servers     []server         // with data-parallel ranks
	choices     []policy.Replica // of frontEnds
	// models lists the deployments of each model in file order.
	models    []servedModel
	tree      *kv.Tree
	draftSeed uint64 // determines which drafts are accepted
	router    *router
	telemetry *telemetry
	fleet     *fleet    // nil if no replicas come, go or fail
	failures  *failures // nil if none fail
	series    *series   // nil if there is none
	// dividesCost: metrics have the cost of each deployment.
	dividesCost bool
	energy      *cluster.Energy // nil if it is not counted

	feed      feed
	requests  requestTable
	sessions  sessionTable
	counts    stream.Counts
	unserved  unserved
	transfers *transfers
	encoding  *encoding // nil without encode replicas
	// backpressure is nil if no deployment has any.
	backpressure *backpressure

	decisions decisions
	observers observers
}

// eventQueue holds the pending events of a run.
type eventQueue struct {
	queue des.Queue // all but the ends of steps
	steps des.Queue // the ends of steps
	// ready are the idle replicas that may have work since this instant.
	ready []int32
	// changed: something came to an idle replica, or left one, since steps were started last.
	changed bool
	// done is 1 µs after the last instant of which all events were done except the start of steps.
	done des.Time
	// count is the number of events so far, limit their maximum.
	count, limit int64
	// stale is the number of pending events of requests that are gone.
	stale        int
	firstArrival des.Time
}

// next is the time of the next event.
func (q *eventQueue) next() des.Time { return min(q.queue.Next(), q.steps.Next()) }

func (q *eventQueue) pop() des.Event {
	if q.steps.Len() > 0 && (q.queue.Len() == 0 || q.steps.First().Less(q.queue.First())) {
		return q.steps.Pop()
	}
	return q.queue.Pop()
}

// decisions counts the decisions of the control plane. override replaces one of them.
type decisions struct {
	count    int64
	override override
	last     decision
}

// decision is a decision of the control plane about a request. Fields that its stage does not have
// are left over from earlier decisions.
type decision struct {
	number int64
	stage  string
	// verdict and candidates, the number of replicas that could serve the request, are those of
	// admission and flow control; given is what the admission policy said.
	verdict    string
	candidates int
	given      policy.Verdict
	rule       string        // that gave the priority
	choice     policy.Choice // of routing
	view       *policy.View  // of admission and routing
}

// next numbers a decision.
func (d *decisions) next(stage string) *decision {
	d.last.number, d.last.stage = d.count, stage
	d.count++
	return &d.last
}

// overridden reports whether the next decision is replaced.
func (d *decisions) overridden() bool { return d.override.decision == d.count }

type servedModel struct {
	name        string
	deployments []int
}

// request is one request in flight.
type request struct {
	out  stream.Outcome
	path kv.Path
	// What the control plane knows of it besides its outcome: its class, the numbers of its tenant
	// and its session (missing without one), its predicted output length, its turn in the session,
	// and the hints of the priority policy to schedulers.
	class           *stream.SLOClass
	tenant, session int32
	predicted       float64
	turn            int64
	hints           [policy.MaxHints]float64
	// inFlowQueue: it waits in flow control, until flowTimeout at most (stream.Never if no such
	// event is pending). admissionDelayed: admission has delayed it.
	inFlowQueue, admissionDelayed bool
	heldBack                      heldBack
	// preempted: it has lost its batch slot and not yet regained it; until then PreemptedUS is
	// negative by the time of preemption.
	preempted   bool
	flowTimeout des.Time
	// requested is the priority that it asks for.
	requested float64
	// queueRead is the number of reads of the replica's queue depth before the request entered the
	// queue, as flow control counts them.
	queueRead int64
	// position in the stream, that of a later attempt plus a multiple of retryStride; -1 in a free slot. Pending
	// events carry it, so that events of departed requests can be recognized.
	position     int64
	retry        *retryPlan    // nil if the client does not retry
	deadline     des.Time      // stream.Never if none
	model        int           // -1 if no deployment serves it
	rejectReason string        // why no deployment can serve it
	replica      int32         // in the cluster; missing before routing
	engineSeq    int32         // the engine's number; missing before enqueue
	moved        *engine.Moved // from a replica that drains, until it enters the queue of another; else nil
	isFinal      bool          // the outcome is written, but the replica still holds the request
	handoff      handoff       // from a prefill replica
	// prefillTokens are the tokens of its prompt that the router counts as still to be computed.
	prefillTokens int64
	// sessionSlot is the session of the request and step its step; missing without one.
	sessionSlot, step int32
	// eos: an end-of-sequence token ends its output.
	eos bool
	// adapter is the number of its LoRA adapter, 0 if it has none.
	adapter int32
	grammar grammarUse
	// items are the images and other media of its prompt.
	items []engine.Item
	// encoded is where encode replicas encode them, nil before routing and without such replicas.
	encoded *encodedItems
	// atServer: a server with a frontDoor counts it, with this many tokens until it has one.
	atServer     bool
	queuedTokens int64
	// draftAcceptance is its own probability of drafts, or negative.
	draftAcceptance float64
}

const missing int32 = -1

// never is the time of what has not happened.
const never = des.Time(stream.Never)

// maxClock leaves a margin below 2^53, up to which all JSON readers represent integers exactly.
const maxClock = 1 << 52

// interruptEvents is the number of events between two checks for an interrupt.
const interruptEvents = 4096

// run simulates from the first request read until all requests are final, the horizon is reached or
// the event limit is.
func (s *simulation) run(stop func() error) error {
	// All events at the instant of the last completion are processed.
	due := s.events.count // when to check for an interrupt
	for (s.requests.open > 0 || s.events.next() == s.now) && s.events.count < s.events.limit {
		if s.events.count >= due {
			due = s.events.count + interruptEvents
			if err := stop(); err != nil {
				return err
			}
		}
		next := s.events.next()
		if next > s.now && len(s.events.ready) > 0 {
			if err := s.startSteps(); err != nil {
				return err
			}
			continue
		}
		if s.series != nil {
			if err := s.series.advance(s, next); err != nil {
				return err
			}
		}
		if next > s.horizon || next == noHorizon { // without events requests wait in flow control for ever
			break
		}
		e := s.events.pop()
		if e.At < s.now {
			return fmt.Errorf("the next event is at %d µs, before the clock at %d µs", e.At, s.now)
		}
		if s.now = e.At; s.now > maxClock {
			return fmt.Errorf("the clock passed %d µs (142 years); arrivals or coefficients are too large",
				int64(maxClock))
		}
		s.events.count++
		if err := s.dispatch(e); err != nil {
			return err
		}
	}
	return nil
}

// instantDone reports whether all events of this instant were done once, except the start of steps. What follows may
// cause others, but the snapshots of this instant have been taken.
func (s *simulation) instantDone() bool { return s.events.done == s.now+1 }

// endInstant notes that all events of this instant are done, except the start of steps.
func (s *simulation) endInstant() { s.events.done = s.now + 1 }

// dispatch processes an event.
func (s *simulation) dispatch(e des.Event) error {
	switch e.Kind() {
	case stepEnd: // or the host has filled masks
		if s.replicas[e.Slot].engine.Filling() {
			s.setReady(e.Slot)
			return nil
		}
		if s.events.next() > s.now && len(s.events.ready) == 0 && s.coasts() {
			if done, err := s.coast(e.Slot); done || err != nil {
				return err
			}
		}
		return s.finishStep(e.Slot)
	case sessionStart:
		return s.sessions.start(s, e.Slot)
	case transferEnd:
		return s.endTransfer(e.Slot)
	case linkChange:
		return s.changeLink(e.Slot)
	case encodeEnd:
		s.endEncoding(e.Slot)
		return nil
	case embeddingChange:
		return s.changeEmbeddings(e.Slot)
	case encodeStart:
		return s.startEncoding(e.Slot)
	case flowDrain:
		return s.router.flow.drainAll(s)
	case failure:
		return s.fail(e.Slot)
	case probe:
		s.probeAll()
		return nil
	case scaleCheck:
		return s.checkScale(e.Slot)
	case scaleAction:
		return s.actScale(e.Slot)
	case drainTimeout:
		return s.loseRequests(e.Slot)
	case replicaReady:
		return s.advanceReplica(e.Slot)
	}
	if s.request(e.Slot).position != e.Seq() { // the request is gone
		s.events.stale--
		return nil
	}
	switch e.Kind() {
	case arrival:
		return s.arrive(e.Slot)
	case admission:
		return s.admit(e.Slot)
	case routing:
		return s.router.flow.enqueue(s, e.Slot)
	case enqueue:
		return s.enqueue(e.Slot)
	case leaseEnd:
		return s.endLease(e.Slot)
	case compiled:
		return s.grammarCompiled(e.Slot)
	case deadline:
		return s.expire(e.Slot)
	case flowTimeout:
		return s.router.flow.expire(s, e.Slot)
	}
	return nil
}

// schedule schedules the next stage of a request after a delay, or runs it at once if nothing else
// happens before it.
func (s *simulation) schedule(delay des.Time, kind uint8, slot int32) error {
	e := des.NewEvent(s.now+delay, kind, s.request(slot).position, slot)
	if delay == 0 && s.events.next() > s.now && !s.router.flow.draining {
		return s.dispatch(e)
	}
	s.events.queue.Push(e)
	return nil
}

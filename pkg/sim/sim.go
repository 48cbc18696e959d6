// Package sim runs the control plane and the replicas on one clock and converts between stream
// records and their types.
package sim

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/dist"
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
	deadline
	flowTimeout // of a request in flow control
	flowDrain   // of the flow-control queues
)

// replica is one engine and its place in the cluster.
type replica struct {
	engine      *engine.Engine
	deployment  int
	index       stream.Index // within the deployment
	readyToStep bool         // in simulation.readyToStep
	maxSeqs     int          // batch slots
	// requests were sent to it; completed of them have completed.
	requests, completed int64
	// inTransit are the requests sent to it that have not reached its queue; maintained only if an
	// oracle is used.
	inTransit []int32
	jitter    jitter
}

// deployment is the common data of its replicas.
type deployment struct {
	id          string
	first, end  int // replicas[first:end]
	model       latency.Model
	limits      limits
	tokenBudget int64 // tokens per step
	gpus        int   // per replica
	// measuredRange is the range in which its coefficients were measured, nil if unknown. coverage
	// is the range in which they were used.
	measuredRange *hardware.Range
	coverage      coverage
	// isRoofline: step times come from a roofline. fromFile: coefficients come from a user's file.
	isRoofline, fromFile bool
}

// simulation is one run.
type simulation struct {
	deployments []deployment
	replicas    []replica
	// models lists the deployments of each model in file order.
	models      []servedModel
	router      *router
	telemetry   *telemetry
	tree        *kv.Tree
	viewScratch policy.View
	// requestScratch is what policies see of the request at position requestScratchOf.
	requestScratch   policy.Request
	requestScratchOf int64
	localScratch     policy.Local
	candidateScratch []policy.Replica

	now          des.Time
	firstArrival des.Time
	horizon      des.Time
	queue        des.Queue
	// eventsDone: all events of this instant are done except the start of steps.
	eventsDone  bool
	readyToStep []int32 // idle replicas that may have work since this instant

	slots     []request
	freeSlots []int32
	openCount int // requests and sessions that were read and are not final
	sessions  sessionTable
	// eventCount is the number of events so far, eventLimit their maximum.
	eventCount, eventLimit int64
	// staleEvents is the number of pending events of requests that are gone.
	staleEvents int
	// decisionCount is the number of decisions so far; override replaces one of them.
	decisionCount int64
	override      override
	// oracle estimates the candidates of routing decisions, for regrets and for clairvoyant routing.
	oracle      *oracle
	regrets     *regretRecorder
	clairvoyant bool
	anomalies   *anomalyMonitor // nil with --trace minimal and in forks

	arrivals       feed
	segmentScratch []kv.Segment
	counts         stream.Counts
	sink           sink
	trace          *traceWriter
	checker        *checker // nil without --check
}

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
	// preempted: it has lost its batch slot and not yet regained it; until then PreemptedUS is
	// negative by the time of preemption.
	preempted   bool
	flowTimeout des.Time
	// position in the stream, -1 in a free slot. Pending events carry it, so that events of departed
	// requests can be recognized.
	position     int64
	deadline     des.Time // stream.Never if none
	model        int      // -1 if no deployment serves it
	rejectReason string   // why no deployment can serve it
	replica      int32    // in the cluster; missing before routing
	engineSeq    int32    // the engine's number; missing before enqueue
	isFinal      bool     // the outcome is written, but the replica still holds the request
	// sessionSlot is the session of the request and step its step; missing without one.
	sessionSlot, step int32
}

const missing int32 = -1

// maxClock leaves a margin below 2^53, up to which all JSON readers represent integers exactly.
const maxClock = 1 << 52

// newSimulation builds the cluster with idle, empty replicas.
func newSimulation(c *cluster.Config, classes []stream.SLOClass, specs []replicaSpec, o *Options) (*simulation, error) {
	s := &simulation{clairvoyant: o.Clairvoyant, tree: kv.NewTree(), horizon: noHorizon, requestScratchOf: -1,
		eventLimit: math.MaxInt64, override: override{decision: -1}}
	plane, err := c.Plane(func(name string) uint64 { return dist.NewStream(o.Seed, name).Uint64() })
	if err != nil {
		return nil, err
	}
	s.router = newRouter(c, classes, plane)
	var sizes []int
	for i := range c.Deployments {
		d := &c.Deployments[i]
		first := len(s.replicas)
		for k := range d.Replicas {
			cache := kv.NewCache(s.tree, d.Blocks()*d.Engine.DataParallelSize, d.Engine.BlockSize,
				d.Engine.EnablePrefixCaching, specs[i].windowBlocks)
			cfg := engineConfig(d, specs[i].window, o.ITL)
			cfg.PreemptionScore = s.preemptionScorer(int32(len(s.replicas)))
			jitter := specs[i].newJitter(k)
			e := engine.New(cfg, jitter.wrap(specs[i].model), cache)
			s.replicas = append(s.replicas, replica{engine: e, deployment: i, index: stream.Index(k), maxSeqs: cfg.MaxNumSeqs,
				jitter: jitter})
			sizes = append(sizes, d.Engine.BlockSize)
		}
		s.deployments = append(s.deployments, deployment{id: d.ID, first: first, end: len(s.replicas), model: specs[i].model,
			limits: limitsOf(d, specs[i].windowBlocks), tokenBudget: int64(d.Engine.MaxNumBatchedTokens), gpus: d.Engine.GPUs(),
			measuredRange: d.Latency.Range, isRoofline: d.Latency.Model == "roofline", fromFile: d.FromFile()})
		s.addModel(d.Model, i)
	}
	if s.clairvoyant {
		s.oracle = &oracle{}
	}
	s.setUpTelemetry(sizes, o.Counterfactual.enabled())
	return s, nil
}

// setUpTelemetry connects the router to the replicas, whose block sizes are given. With an oracle it
// also predicts output lengths.
func (s *simulation) setUpTelemetry(sizes []int, judged bool) {
	r := s.router
	n := r.needs()
	if judged {
		n |= policy.NeedPredicted
	}
	s.telemetry = newTelemetry(n, &r.Snapshots, len(s.replicas))
	if n&policy.NeedShadow != 0 {
		r.shadow = policy.NewShadow(s.tree, r.ShadowBlocks, sizes)
	}
	if r.FlowControl != nil {
		for range s.models {
			r.flows = append(r.flows, policy.NewFlow(r.FlowControl.Order, r.FlowControl.Fairness == "round-robin"))
		}
	}
	for i := range s.replicas {
		e := s.replicas[i].engine
		s.telemetry.stats[i].MaxSeqs = int32(s.replicas[i].maxSeqs)
		s.watchCache(int32(i), e.Cache())
		for f := range policy.Fields {
			s.telemetry.stats[i].TakenUS[f] = policy.Fresh
			if n.Has(f) {
				s.sample(int32(i), f, 0)
			}
		}
		for _, t := range s.telemetry.periodic {
			s.telemetry.stats[i].TakenUS[t.field] = -1 // the first refresh is at 0
		}
		for _, t := range s.telemetry.onDemand {
			s.telemetry.stats[i].TakenUS[t.field] = -t.us
		}
	}
}

func (s *simulation) addModel(model string, deployment int) {
	i := slices.IndexFunc(s.models, func(m servedModel) bool { return m.name == model })
	if i < 0 {
		i = len(s.models)
		s.models = append(s.models, servedModel{name: model})
	}
	s.models[i].deployments = append(s.models[i].deployments, deployment)
}

// run simulates from the first request read until all requests are final, the horizon is reached or
// the event limit is.
func (s *simulation) run(stop func() error) error {
	// All events at the instant of the last completion are processed.
	for n := 0; (s.openCount > 0 || s.queue.Next() == s.now) && s.eventCount < s.eventLimit; n++ {
		if n%4096 == 0 {
			if err := stop(); err != nil {
				return err
			}
		}
		next := s.queue.Next()
		if next > s.now && len(s.readyToStep) > 0 {
			if err := s.startSteps(); err != nil {
				return err
			}
			continue
		}
		if next > s.horizon {
			break
		}
		e := s.queue.Pop()
		if e.At < s.now {
			return fmt.Errorf("the next event is at %d µs, before the clock at %d µs", e.At, s.now)
		}
		if s.now = e.At; s.now > maxClock {
			return fmt.Errorf("the clock passed %d µs (142 years); arrivals or coefficients are too large", int64(maxClock))
		}
		s.eventCount++
		if err := s.dispatch(e); err != nil {
			return err
		}
	}
	return nil
}

// dispatch processes an event.
func (s *simulation) dispatch(e des.Event) error {
	switch e.Kind() {
	case stepEnd:
		return s.finishStep(e.Slot)
	case sessionStart:
		return s.startSession(e.Slot)
	case flowDrain:
		return s.drainAllFlows()
	}
	r := &s.slots[e.Slot]
	if r.position != e.Seq() { // the request is gone
		s.staleEvents--
		return nil
	}
	switch e.Kind() {
	case arrival:
		return s.arrive(e.Slot)
	case admission:
		return s.admit(e.Slot)
	case routing:
		return s.route(e.Slot)
	case enqueue:
		s.enqueue(e.Slot)
	case deadline:
		return s.expire(e.Slot)
	case flowTimeout:
		return s.expireFlow(e.Slot)
	}
	return nil
}

// schedule schedules the next stage of a request after a delay, or runs it at once if no other event
// is pending at this instant.
func (s *simulation) schedule(delay des.Time, kind uint8, slot int32) error {
	e := des.NewEvent(s.now+delay, kind, s.slots[slot].position, slot)
	if delay == 0 && s.queue.Next() > s.now {
		return s.dispatch(e)
	}
	s.queue.Push(e)
	return nil
}

// Package sim wires the control plane and the replicas onto one clock and
// translates between the wire and their terms.
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

// Kinds of event. Their order is the order of what happens at one instant; a
// step starts when nothing else is left to happen.
const (
	begin uint8 = iota // of a session
	arrival
	admission
	routing
	enqueue
	stepEnd
	deadline
	patience // of who waits in flow control
	drain    // flow control's queues
)

// replica is one engine and its place in the cluster.
type replica struct {
	engine     *engine.Engine
	deployment int
	index      stream.Index // within the deployment
	starting   bool         // in simulation.starting
	seats      int          // the most sequences that it runs
	// requests were sent to it, completed of them have completed.
	requests, completed int64
	// coming are the requests that were sent and have not reached its queue; kept up
	// only where choices are judged.
	coming []int32
	jitter jitter
}

// deployment is what is common to its replicas.
type deployment struct {
	id         string
	first, end int // replicas first to end-1
	model      latency.Model
	limits     limits
	budget     int64 // of tokens in a step
	gpus       int   // of a replica
	// measured is what its coefficients were measured for, nil if that is not
	// known, and use what they were used for.
	measured *hardware.Range
	use      use
	// computed: its step times are those of a roofline; fromFile: of a file that the
	// user named.
	computed, fromFile bool
}

// simulation is one run.
type simulation struct {
	deployments []deployment
	replicas    []replica
	// models are the deployments of each model, in file order.
	models []servedModel
	router *router
	seen   *observer
	tree   *kv.Tree
	viewed policy.View
	// shown is what policies know of the request at position shownAt.
	shown      policy.Request
	shownAt    int64
	here       policy.Local
	candidates []policy.Replica // scratch

	now     des.Time
	first   des.Time // arrival
	horizon des.Time
	queue   des.Queue
	// refreshed: all that happens at this instant has, but for the start of steps.
	refreshed bool
	starting  []int32 // idle replicas that may have got work at this instant

	slots    []request
	spare    []int32
	open     int // requests and sessions that have come in and are not final
	sessions sessionTable
	// happened counts events, up to bound of which may.
	happened, bound int64
	// stale counts pending events of requests that are gone.
	stale int
	// decisions counts them; that of number forced.at is taken from there.
	decisions int64
	forced    forced
	// judge estimates what other choices would have made, for regrets and for
	// clairvoyant routing; both only if asked for.
	judge       *judge
	regrets     *regrets
	clairvoyant bool
	lookout     *lookout // nil where the run tells only its metrics, and in forks

	arrivals feed
	segments []kv.Segment // scratch
	counts   stream.Counts
	ledger   ledger
	out      *output
	check    *checker // nil unless asked for
}

type servedModel struct {
	name        string
	deployments []int
}

// request is one request in flight.
type request struct {
	out  stream.Outcome
	path kv.Path
	// What the control plane knows of it beside its outcome: its class, the numbers
	// of its tenant and its session (nowhere without one), how long its answer is
	// believed to be, its place in the session, and what the priority policy says to
	// schedulers.
	class           *stream.SLOClass
	tenant, session int32
	predicted       float64
	turn            int64
	hints           [policy.MaxHints]float64
	// held: it waits in flow control, until patience at most (stream.Never: no
	// such event is pending). delayed: admission has put it off.
	held, delayed bool
	// thrown: it has lost its place in a batch and waits for another one; until then
	// the instant is taken from its time of waiting.
	thrown   bool
	patience des.Time
	// position in the stream, -1 in a free slot; pending events carry it, so
	// that those of a request that is gone are known.
	position int64
	deadline des.Time // stream.Never if none
	model    int      // -1 if nobody serves it
	refusal  string   // why it is impossible
	replica  int32    // in the cluster; nowhere before routing
	seq      int32    // the engine's number; nowhere before enqueue
	final    bool     // the outcome is written; the replica still has it
	// of is the session whose step it is; nowhere without one.
	of, step int32
}

const nowhere int32 = -1

// maxClock leaves room for what is added to the clock below 2^53, up to which
// every reader of JSON has exact numbers.
const maxClock = 1 << 52

// newSimulation builds the cluster, all replicas idle and empty.
func newSimulation(c *cluster.Config, classes []stream.SLOClass, servers []server, o *Options) (*simulation, error) {
	s := &simulation{clairvoyant: o.Clairvoyant, tree: kv.NewTree(), horizon: noHorizon, shownAt: -1, bound: math.MaxInt64, forced: forced{at: -1}}
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
			cache := kv.NewCache(s.tree, d.Blocks()*d.Engine.DataParallelSize, d.Engine.BlockSize, d.Engine.EnablePrefixCaching, servers[i].hold)
			cfg := bounds(d, servers[i].window, o.ITL)
			cfg.Victim = s.victims(int32(len(s.replicas)))
			jitter := servers[i].noise(k)
			e := engine.New(cfg, jitter.of(servers[i].model), cache)
			s.replicas = append(s.replicas, replica{engine: e, deployment: i, index: stream.Index(k), seats: cfg.MaxNumSeqs, jitter: jitter})
			sizes = append(sizes, d.Engine.BlockSize)
		}
		s.deployments = append(s.deployments, deployment{id: d.ID, first: first, end: len(s.replicas), model: servers[i].model,
			limits: limitsOf(d, servers[i].hold), budget: int64(d.Engine.MaxNumBatchedTokens), gpus: d.Engine.GPUs(),
			measured: d.Latency.Range, computed: d.Latency.Model == "roofline", fromFile: d.FromFile()})
		s.serve(d.Model, i)
	}
	if s.clairvoyant {
		s.judge = &judge{}
	}
	s.observe(sizes, o.Counterfactual.given())
	return s, nil
}

// observe lets the router see the replicas, whose blocks have these sizes. Where
// choices are judged, it also believes something of the length of answers.
func (s *simulation) observe(sizes []int, judged bool) {
	r := s.router
	n := r.needs()
	if judged {
		n |= policy.NeedPredicted
	}
	s.seen = newObserver(n, &r.Snapshots, len(s.replicas))
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
		s.seen.stats[i].MaxSeqs = int32(s.replicas[i].seats)
		s.watchCache(int32(i), e.Cache())
		for f := range policy.Fields {
			s.seen.stats[i].TakenUS[f] = policy.Fresh
			if n.Of(f) {
				s.take(int32(i), f, 0)
			}
		}
		for _, t := range s.seen.periodic {
			s.seen.stats[i].TakenUS[t.field] = -1 // the first time is 0
		}
		for _, t := range s.seen.demands {
			s.seen.stats[i].TakenUS[t.field] = -t.us
		}
	}
}

func (s *simulation) serve(model string, deployment int) {
	i := slices.IndexFunc(s.models, func(m servedModel) bool { return m.name == model })
	if i < 0 {
		i = len(s.models)
		s.models = append(s.models, servedModel{name: model})
	}
	s.models[i].deployments = append(s.models[i].deployments, deployment)
}

// run plays, from the request that was pulled first, until every request is
// final, the horizon is reached or so many events have happened as may.
func (s *simulation) run(stop func() error) error {
	// The instant of the last end is played to its own.
	for n := 0; (s.open > 0 || s.queue.Next() == s.now) && s.happened < s.bound; n++ {
		if n%4096 == 0 {
			if err := stop(); err != nil {
				return err
			}
		}
		next := s.queue.Next()
		if next > s.now && len(s.starting) > 0 {
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
			return fmt.Errorf("the clock would go back from %d to %d µs", s.now, e.At)
		}
		if s.now = e.At; s.now > maxClock {
			return fmt.Errorf("the clock passed %d µs (142 years); arrivals or coefficients are too large", int64(maxClock))
		}
		s.happened++
		if err := s.happen(e); err != nil {
			return err
		}
	}
	return nil
}

// happen lets an event take place.
func (s *simulation) happen(e des.Event) error {
	switch e.Kind() {
	case stepEnd:
		return s.finishStep(e.Slot)
	case begin:
		return s.begin(e.Slot)
	case drain:
		return s.drainAll()
	}
	r := &s.slots[e.Slot]
	if r.position != e.Seq() { // an event of a request that is gone
		s.stale--
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
	case patience:
		return s.lose(e.Slot)
	}
	return nil
}

// soon lets the next stage of a request happen after a delay: at once where
// nothing else is pending at this instant.
func (s *simulation) soon(delay des.Time, kind uint8, slot int32) error {
	e := des.NewEvent(s.now+delay, kind, s.slots[slot].position, slot)
	if delay == 0 && s.queue.Next() > s.now {
		return s.happen(e)
	}
	s.queue.Push(e)
	return nil
}

package sim

import (
	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/kv"
	"blis/pkg/latency"
	"blis/pkg/policy"
)

// observer is what the router knows of replicas: their snapshots, each field as
// old as the control plane's configuration says, and its own estimates. Only
// what the policies need is kept up.
//
// Periodic fields are read at the multiples of their interval, after all that
// happens at that instant but the start of steps. That is not an event: when a
// replica is about to change, or somebody looks at it, what was to be read since
// is read then, which is the same, since it has not changed in between.
type observer struct {
	needs  policy.Needs
	states []policy.Replica // of all replicas
	stats  []policy.Stats
	own    []ownStats // of all replicas
	// eager fields are written whenever a replica changes, late ones when somebody
	// looks; the others at their times.
	eager, late       []policy.Field
	periodic, demands []timed
	// looks: there is something to do when somebody looks.
	looks bool
	// reads counts fields that were looked at, and sums how old they were.
	reads         int64
	ageUS, oldest int64
	// read are fields of replica readOf as of readAt that the trace does not have yet.
	read   []policy.Field
	readOf int32
	readAt des.Time
}

type timed struct {
	field policy.Field
	us    int64
}

// ownStats are what a replica counts for the statistics in its snapshot.
type ownStats struct {
	hits, ttft, tpot recent
	stepUS           float64
	image            *kv.Image // of its cache when it was last read; nil unless that is stale
}

// stepWeight is what the newest step counts in the mean step.
const stepWeight = 0.1

func newObserver(n policy.Needs, s *cluster.Snapshots, replicas int) *observer {
	o := &observer{needs: n, stats: make([]policy.Stats, replicas), own: make([]ownStats, replicas)}
	for i := range replicas {
		o.states = append(o.states, policy.Replica{Index: int32(i), Stats: &o.stats[i]})
	}
	for k, refresh := range s.Fields() {
		f := policy.Field(k)
		if !n.Of(f) {
			continue
		}
		switch mode, us, _ := refresh.Parse(); {
		case mode == cluster.Periodic:
			o.periodic = append(o.periodic, timed{f, us})
		case mode == cluster.OnDemand:
			o.demands = append(o.demands, timed{f, us})
		case f == policy.FieldQueueDepth, f == policy.FieldRunning, f == policy.FieldKVUtil, f == policy.FieldEstWait:
			o.eager = append(o.eager, f)
		default:
			o.late = append(o.late, f)
		}
	}
	o.looks = len(o.late)+len(o.periodic)+len(o.demands) > 0
	return o
}

// before must be called before replica i changes, and before somebody looks at
// it: what was to be read since the last call is. refreshed says that what is
// read at this instant has been.
func (s *simulation) before(i int32, refreshed bool) {
	if len(s.seen.periodic) > 0 {
		s.catchUp(i, refreshed)
	}
}

func (s *simulation) catchUp(i int32, refreshed bool) {
	for _, t := range s.seen.periodic {
		at := s.now - s.now%t.us
		if at == s.now && !refreshed {
			at -= t.us
		}
		if taken := &s.seen.stats[i].TakenUS[t.field]; at > *taken {
			*taken = at
			s.take(i, t.field, at)
			s.tell(i, t.field, at)
		}
	}
	s.told()
}

// tell notes that a field was read, for the trace.
func (s *simulation) tell(i int32, f policy.Field, at des.Time) {
	if s.out.level < traceFull {
		return
	}
	o := s.seen
	if len(o.read) > 0 && (o.readAt != at || o.readOf != i) {
		s.told()
	}
	o.read, o.readAt, o.readOf = append(o.read, f), at, i
}

// told writes what was read.
func (s *simulation) told() {
	if o := s.seen; len(o.read) > 0 {
		s.out.snapshot(s, o.readOf, o.readAt, o.read)
		o.read = o.read[:0]
	}
}

// after must be called when replica i has changed.
func (s *simulation) after(i int32) {
	if len(s.seen.eager) > 0 {
		s.write(i)
	}
}

func (s *simulation) write(i int32) {
	for _, f := range s.seen.eager {
		s.take(i, f, s.now)
	}
}

// look brings what needs says of replica i up to date for somebody who looks at it
// now, and notes how old that is.
func (s *simulation) look(i int32, needs policy.Needs) {
	o := s.seen
	s.before(i, s.refreshed)
	for _, f := range o.late {
		if needs.Of(f) {
			s.take(i, f, s.now)
		}
	}
	for _, t := range o.demands {
		if taken := &o.stats[i].TakenUS[t.field]; needs.Of(t.field) && s.now-*taken >= t.us {
			*taken = s.now
			s.take(i, t.field, s.now)
			s.tell(i, t.field, s.now)
		}
	}
	s.told()
	for _, list := range [...][]timed{o.periodic, o.demands} {
		for _, t := range list {
			if needs.Of(t.field) {
				age := s.now - max(0, o.stats[i].TakenUS[t.field])
				o.reads++
				o.ageUS += age
				o.oldest = max(o.oldest, age)
			}
		}
	}
}

// take reads field f of replica i as of time at.
func (s *simulation) take(i int32, f policy.Field, at des.Time) {
	r, stats, own := &s.seen.states[i], &s.seen.stats[i], &s.seen.own[i]
	e := s.replicas[i].engine
	switch f {
	case policy.FieldQueueDepth:
		r.QueueDepth = int32(e.Waiting())
	case policy.FieldRunning:
		r.Running = int32(e.Running())
	case policy.FieldKVUtil:
		free, total := e.Cache().Free(), e.Cache().Total()
		r.FreeBlocks, r.KVUtil = int32(free), 1-float64(free)/float64(total)
	case policy.FieldHitRate:
		stats.HitRate = own.hits.ratio(at)
	case policy.FieldRecentTTFT:
		stats.RecentTTFTMS = own.ttft.ratio(at) / 1000
	case policy.FieldRecentTPOT:
		stats.RecentTPOTMS = own.tpot.ratio(at) / 1000
	case policy.FieldEstWait:
		stats.EstWaitMS = float64(e.Waiting()) * own.stepUS / 1000
	case policy.FieldCache:
		if own.image != nil {
			own.image.Refresh()
		}
	}
}

// stepped notes a step of replica i for the mean step.
func (o *observer) stepped(i int32, us des.Time) {
	own := &o.own[i]
	if own.stepUS == 0 {
		own.stepUS = float64(us)
	} else {
		own.stepUS += float64(stepWeight * (float64(us) - own.stepUS))
	}
	o.stats[i].StepUS = own.stepUS
}

// estimate fills in how long a prompt of so many tokens takes alone on each
// candidate.
func (s *simulation) estimate(v *policy.View, input int64) {
	for i := range v.Replicas {
		r := &v.Replicas[i]
		d := &s.deployments[s.replicas[r.Index].deployment]
		past := min(int64(r.Matched)*d.limits.blockSize, d.limits.hittable(input))
		n := input - past
		b := latency.Batch{Prefill: n, Chunks: 1, Past: past, Pairs: n*past + n*(n+1)/2}
		r.Stats.PrefillUS = float64(d.model.Step(b))
	}
}

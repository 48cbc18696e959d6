package sim

import (
	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/kv"
	"blis/pkg/latency"
	"blis/pkg/policy"
)

// telemetry is what the router knows of replicas: snapshots, whose fields are as stale as the
// configuration says, and its own estimates. Only fields that policies need are maintained.
//
// Periodic fields are read at the multiples of their interval, after all other events of that
// instant except the start of steps. These reads are not events: they happen just before a replica
// changes or is viewed, which gives the same values since nothing changed in between.
type telemetry struct {
	needs    policy.Needs
	states   []policy.Replica // by replica
	stats    []policy.Stats
	counters []replicaCounters // by replica
	// eager fields are sampled whenever a replica changes, late ones when it is viewed, the others
	// at their times.
	eager, late        []policy.Field
	periodic, onDemand []refreshInterval
	// refreshOnView: a view must refresh some fields.
	refreshOnView bool
	// reads counts stale fields viewed, ageUS sums their ages, oldest is the maximum.
	reads         int64
	ageUS, oldest int64
	// read are fields of replica readOf, sampled at readAt, that are not in the trace yet.
	read   []policy.Field
	readOf int32
	readAt des.Time
}

type refreshInterval struct {
	field policy.Field
	us    int64
}

// replicaCounters are the inputs of a replica's statistics.
type replicaCounters struct {
	hits, ttft, tpot slidingRatio
	stepUS           float64
	image            *kv.Image // the cache at its last refresh; nil unless that can be stale
}

// stepWeight is the weight of the newest step in the mean step time.
const stepWeight = 0.1

func newTelemetry(n policy.Needs, s *cluster.Snapshots, replicas int) *telemetry {
	o := &telemetry{needs: n, stats: make([]policy.Stats, replicas), counters: make([]replicaCounters, replicas)}
	for i := range replicas {
		o.states = append(o.states, policy.Replica{Index: int32(i), Stats: &o.stats[i]})
	}
	for k, refresh := range s.Fields() {
		f := policy.Field(k)
		if !n.Has(f) {
			continue
		}
		switch mode, us, _ := refresh.Parse(); {
		case mode == cluster.Periodic:
			o.periodic = append(o.periodic, refreshInterval{f, us})
		case mode == cluster.OnDemand:
			o.onDemand = append(o.onDemand, refreshInterval{f, us})
		case f == policy.FieldQueueDepth, f == policy.FieldRunning, f == policy.FieldKVUtil, f == policy.FieldEstWait:
			o.eager = append(o.eager, f)
		default:
			o.late = append(o.late, f)
		}
	}
	o.refreshOnView = len(o.late)+len(o.periodic)+len(o.onDemand) > 0
	return o
}

// beforeChange must be called before replica i changes or is viewed: it makes the periodic reads
// since the last call. eventsDone includes those of this instant.
func (s *simulation) beforeChange(i int32, eventsDone bool) {
	if len(s.telemetry.periodic) > 0 {
		s.readPeriodic(i, eventsDone)
	}
}

func (s *simulation) readPeriodic(i int32, eventsDone bool) {
	for _, t := range s.telemetry.periodic {
		at := s.now - s.now%t.us
		if at == s.now && !eventsDone {
			at -= t.us
		}
		if taken := &s.telemetry.stats[i].TakenUS[t.field]; at > *taken {
			*taken = at
			s.sample(i, t.field, at)
			s.noteRead(i, t.field, at)
		}
	}
	s.flushReads()
}

// noteRead records the reading of a field for the trace.
func (s *simulation) noteRead(i int32, f policy.Field, at des.Time) {
	if s.trace.level < traceFull {
		return
	}
	o := s.telemetry
	if len(o.read) > 0 && (o.readAt != at || o.readOf != i) {
		s.flushReads()
	}
	o.read, o.readAt, o.readOf = append(o.read, f), at, i
}

// flushReads writes the recorded reads.
func (s *simulation) flushReads() {
	if o := s.telemetry; len(o.read) > 0 {
		s.trace.snapshot(s, o.readOf, o.readAt, o.read)
		o.read = o.read[:0]
	}
}

// afterChange must be called after replica i has changed.
func (s *simulation) afterChange(i int32) {
	if len(s.telemetry.eager) > 0 {
		s.sampleEager(i)
	}
}

func (s *simulation) sampleEager(i int32) {
	for _, f := range s.telemetry.eager {
		s.sample(i, f, s.now)
	}
}

// refresh updates the fields of replica i that are in needs for a view, and counts their ages.
func (s *simulation) refresh(i int32, needs policy.Needs) {
	o := s.telemetry
	s.beforeChange(i, s.eventsDone)
	for _, f := range o.late {
		if needs.Has(f) {
			s.sample(i, f, s.now)
		}
	}
	for _, t := range o.onDemand {
		if taken := &o.stats[i].TakenUS[t.field]; needs.Has(t.field) && s.now-*taken >= t.us {
			*taken = s.now
			s.sample(i, t.field, s.now)
			s.noteRead(i, t.field, s.now)
		}
	}
	s.flushReads()
	for _, list := range [...][]refreshInterval{o.periodic, o.onDemand} {
		for _, t := range list {
			if needs.Has(t.field) {
				age := s.now - max(0, o.stats[i].TakenUS[t.field])
				o.reads++
				o.ageUS += age
				o.oldest = max(o.oldest, age)
			}
		}
	}
}

// sample reads field f of replica i as of time at.
func (s *simulation) sample(i int32, f policy.Field, at des.Time) {
	r, stats, counters := &s.telemetry.states[i], &s.telemetry.stats[i], &s.telemetry.counters[i]
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
		stats.HitRate = counters.hits.ratio(at)
	case policy.FieldRecentTTFT:
		stats.RecentTTFTMS = counters.ttft.ratio(at) / 1000
	case policy.FieldRecentTPOT:
		stats.RecentTPOTMS = counters.tpot.ratio(at) / 1000
	case policy.FieldEstWait:
		stats.EstWaitMS = float64(e.Waiting()) * counters.stepUS / 1000
	case policy.FieldCache:
		if counters.image != nil {
			counters.image.Refresh()
		}
	}
}

// recordStep adds a step of replica i to its mean step time.
func (o *telemetry) recordStep(i int32, us des.Time) {
	c := &o.counters[i]
	if c.stepUS == 0 {
		c.stepUS = float64(us)
	} else {
		c.stepUS += float64(stepWeight * (float64(us) - c.stepUS))
	}
	o.stats[i].StepUS = c.stepUS
}

// estimate fills in the time that each candidate needs to compute a prompt alone.
func (s *simulation) estimate(v *policy.View, input int64) {
	for i := range v.Replicas {
		r := &v.Replicas[i]
		d := &s.deployments[s.replicas[r.Index].deployment]
		cached := min(int64(r.Matched)*d.limits.blockSize, d.limits.maxCachedTokens(input))
		n := input - cached
		b := latency.Batch{Prefill: n, Chunks: 1, PriorContext: cached, Pairs: n*cached + n*(n+1)/2}
		r.Stats.PrefillUS = float64(d.model.Step(b))
	}
}

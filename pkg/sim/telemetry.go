package sim

import (
	"slices"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/kv"
	"blis/pkg/policy"
)

// telemetry is what the router knows of replicas: snapshots, whose fields are as stale as the
// configuration says, and its own estimates. Only fields that policies need are maintained.
//
// Periodic fields are read at the multiples of their interval, after all other events of that
// instant except the start of steps. These reads are not events: they happen just before a replica
// changes or is viewed, which gives the same values since nothing changed in between.
type telemetry struct {
	states   []policy.Replica // by replica
	extremes *policy.Extremes // of the states
	stats    []policy.Stats
	counters []replicaCounters // by replica
	// eager fields are sampled whenever a replica changes, late ones when it is viewed, the others
	// at their times.
	eager, late        []policy.Field
	periodic, onDemand []refreshInterval
	// refreshOnView: a view must refresh some fields.
	refreshOnView bool
	// sharedImages: replicas have images of one storage.
	sharedImages bool
	ages         fieldAges
	cut          []partition // by replica, as far as any was cut off
	// read are fields that have not been reported to observers yet.
	read fieldReads
}

// fieldAges counts the stale fields viewed and sums their ages in µs.
type fieldAges struct{ count, sum, oldest int64 }

// fieldReads are fields of a replica that were read at the same time.
type fieldReads struct {
	fields  []policy.Field
	replica int32
	at      des.Time
}

type refreshInterval struct {
	field policy.Field
	us    int64
}

// replicaCounters are the inputs of a replica's statistics.
type replicaCounters struct {
	hits, ttft, tpot slidingRatio
	stepUS           float64
	adapters         []int32   // of its requests, as of the last reading of its queue
	adapterChanges   int64     // until then
	image            *kv.Image // the cache at its last refresh; nil unless that can be stale
	tiers            tierImages
}

// stepWeight is the weight of the newest step in the moving average of step times.
const stepWeight = 0.1

// newTelemetry makes the first snapshots of the replicas.
func newTelemetry(s *simulation) *telemetry {
	n := len(s.replicas)
	o := &telemetry{stats: make([]policy.Stats, n), counters: make([]replicaCounters, n)}
	for i := range n {
		o.states = append(o.states, policy.Replica{Index: int32(i), Stats: &o.stats[i]})
	}
	o.extremes = policy.NewExtremes(o.states)
	o.setIntervals(s.router.needs.all, &s.router.config.Snapshots)
	return o
}

// start samples all needed fields of a replica that is there from now on.
func (o *telemetry) start(s *simulation, i int32) {
	stats := &o.stats[i]
	stats.MaxSeqs = int32(s.replicas[i].maxSeqs)
	stats.KVTokens = int64(s.replicas[i].engine.Cache().Total()) * int64(s.replicas[i].engine.Cache().BlockSize())
	watchCache(s, i, s.replicas[i].engine.Cache())
	for f := range policy.Fields {
		stats.TakenUS[f] = policy.Fresh
		if s.router.needs.all.Has(f) {
			o.sample(s, i, f, s.now)
		}
	}
	for _, t := range o.periodic {
		stats.TakenUS[t.field] = s.now - 1 // the first refresh may be at this instant
	}
	for _, t := range o.onDemand {
		stats.TakenUS[t.field] = s.now - t.us
	}
}

// addReplica adds replica i, the last one, to the snapshots.
func (o *telemetry) addReplica(s *simulation, i int32) {
	o.stats, o.counters = append(o.stats, policy.Stats{}), append(o.counters, replicaCounters{})
	o.states = append(o.states, policy.Replica{Index: i})
	for k := range o.states { // the statistics may have moved
		o.states[k].Stats = &o.stats[k]
	}
	o.start(s, i)
}

// setIntervals sorts the needed fields by how they are refreshed.
func (o *telemetry) setIntervals(n policy.Needs, s *cluster.Snapshots) {
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
}

// beforeChange must be called before replica i changes or is viewed: it makes the periodic reads
// since the last call. eventsDone includes those of this instant.
func (o *telemetry) beforeChange(s *simulation, i int32, eventsDone bool) {
	if len(o.periodic) > 0 {
		o.readPeriodic(s, i, eventsDone)
		if o.sharedImages {
			o.readSharers(s, i, eventsDone)
		}
	}
}

func (o *telemetry) readPeriodic(s *simulation, i int32, eventsDone bool) {
	for _, t := range o.periodic {
		at := s.now - s.now%t.us
		if at == s.now && !eventsDone {
			at -= t.us
		}
		if taken := &o.stats[i].TakenUS[t.field]; at > *taken {
			if len(o.cut) > 0 && (o.isCut(i) || int(i) < len(o.cut) && at < o.cut[i].healedAt) {
				continue
			}
			*taken = at
			o.sample(s, i, t.field, at)
			o.noteRead(s, i, t.field, at)
		}
	}
	o.flushReads(s)
}

// noteRead notes the reading of a field for observers.
func (o *telemetry) noteRead(s *simulation, i int32, f policy.Field, at des.Time) {
	if len(s.observers[onSnapshot]) == 0 {
		return
	}
	if len(o.read.fields) > 0 && (o.read.at != at || o.read.replica != i) {
		o.flushReads(s)
	}
	o.read.fields, o.read.at, o.read.replica = append(o.read.fields, f), at, i
}

// flushReads notifies observers of the noted reads.
func (o *telemetry) flushReads(s *simulation) {
	if len(o.read.fields) > 0 {
		s.observers.notify(s, onSnapshot, o.read.replica)
		o.read.fields = o.read.fields[:0]
	}
}

// afterChange must be called after replica i has changed.
func (o *telemetry) afterChange(s *simulation, i int32) {
	if len(o.eager) > 0 {
		o.sampleEager(s, i)
	}
}

// sampleEager is apart from afterChange so that a run without eager fields pays no call.
func (o *telemetry) sampleEager(s *simulation, i int32) {
	if len(o.cut) > 0 && o.isCut(i) {
		return
	}
	for _, f := range o.eager {
		o.sample(s, i, f, s.now)
	}
}

// refreshAll refreshes replicas first to end-1 for a view with these needs.
func (o *telemetry) refreshAll(s *simulation, first, end int, needs policy.Needs) {
	if o.refreshOnView && needs&policy.NeedsSnapshot != 0 {
		for i := first; i < end; i++ {
			o.refresh(s, int32(i), needs)
		}
	}
}

// refresh updates the fields of replica i that are in needs for a view, and counts their ages.
func (o *telemetry) refresh(s *simulation, i int32, needs policy.Needs) {
	o.beforeChange(s, i, s.instantDone())
	cut := len(o.cut) > 0 && o.isCut(i)
	for _, f := range o.late {
		if needs.Has(f) && !cut {
			o.sample(s, i, f, s.now)
		}
	}
	for _, t := range o.onDemand {
		if taken := &o.stats[i].TakenUS[t.field]; needs.Has(t.field) && s.now-*taken >= t.us && !cut {
			*taken = s.now
			o.sample(s, i, t.field, s.now)
			o.noteRead(s, i, t.field, s.now)
		}
	}
	o.flushReads(s)
	for _, list := range [...][]refreshInterval{o.periodic, o.onDemand} {
		for _, t := range list {
			if needs.Has(t.field) {
				age := s.now - max(0, o.stats[i].TakenUS[t.field])
				o.ages.count++
				o.ages.sum += age
				o.ages.oldest = max(o.ages.oldest, age)
			}
		}
	}
}

// sample reads field f of replica i as of time at.
func (o *telemetry) sample(s *simulation, i int32, f policy.Field, at des.Time) {
	r, stats, counters := &o.states[i], &o.stats[i], &o.counters[i]
	e := s.replicas[i].engine
	switch f {
	case policy.FieldQueueDepth:
		r.QueueDepth = int32(e.Waiting())
		o.extremes.Changed(i)
		s.router.flow.recordRead(i)
		if s.router.needs.all&policy.NeedAdapter != 0 {
			counters.readAdapters(e)
		}
	case policy.FieldRunning:
		r.Running = int32(e.Running())
		o.extremes.Changed(i)
	case policy.FieldKVUtil:
		free, total := e.Cache().Free(), e.Cache().Total()
		r.FreeBlocks, r.KVUtil = int32(free), 1-float64(free)/float64(total)
		o.extremes.Changed(i)
	case policy.FieldHitRate:
		stats.HitRate = counters.hits.ratio(at)
	case policy.FieldRecentTTFT:
		stats.RecentTTFTMS = counters.ttft.ratio(at) / 1000
	case policy.FieldRecentTPOT:
		stats.RecentTPOTMS = counters.tpot.ratio(at) / 1000
	case policy.FieldEstWait:
		stats.EstWaitMS = float64(e.Waiting()) * counters.stepUS / 1000
	case policy.FieldTier:
		stats.KVUtilCPU, stats.Loading = e.TierUse(), int32(e.Loading())
	case policy.FieldCache:
		if counters.image != nil {
			counters.image.Refresh()
			counters.tiers.refresh()
		}
	}
}

// readAdapters reads the adapters of a replica's requests. Copies of the counters share the list.
func (c *replicaCounters) readAdapters(e *engine.Engine) {
	if active, changes := e.Adapters(); changes != c.adapterChanges {
		c.adapters, c.adapterChanges = slices.Clone(active), changes
	}
}

// matchAdapters fills in what the candidates have of the adapter of a request.
func (o *telemetry) matchAdapters(s *simulation, adapter int32, candidates []policy.Replica) {
	for i := range candidates {
		r := &candidates[i]
		active := o.counters[r.Index].adapters
		r.Stats.Adapter = policy.AdapterMatch{Active: slices.Contains(active, adapter), Count: int32(len(active)),
			Max: s.deployments[s.replicas[r.Index].deployment].limits.adapters}
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
	if len(o.cut) == 0 || !o.isCut(i) {
		o.stats[i].StepUS = c.stepUS
	}
}

// clone returns an independent copy for clones of the replicas.
func (o *telemetry) clone(replicas []replica) *telemetry {
	c := *o
	c.read, c.cut = fieldReads{}, slices.Clone(o.cut)
	c.states, c.stats, c.counters = slices.Clone(o.states), slices.Clone(o.stats), slices.Clone(o.counters)
	c.extremes = policy.NewExtremes(c.states)
	for i := range c.states {
		c.states[i].Stats = &c.stats[i]
		counters := &c.counters[i]
		counters.hits, counters.ttft, counters.tpot = counters.hits.clone(), counters.ttft.clone(),
			counters.tpot.clone()
		if counters.image != nil {
			counters.image = counters.image.Clone(replicas[i].engine.Cache())
			counters.tiers = counters.tiers.clone(replicas[i].engine.Cache().Tree())
		}
	}
	return &c
}

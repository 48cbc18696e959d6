package metrics

import (
	"math"
	"strings"

	"blis/pkg/stat"
	"blis/pkg/stream"
)

// Accumulator gathers what Raw reports. It keeps 32 bytes for each request that entered a
// batch, and a little for each combination of class, tenant and model. With Spill, the memory for requests and sessions
// is bounded.
type Accumulator struct {
	targets map[string]stream.Targets
	groups  map[key]uint32
	totals  []totals
	rows    [][]row // all but the last are full
	spilled spilled
	gaps    stat.Histogram
	reasons map[string]int64
	// replicas are in the order of the calls of AddReplica.
	replicas       []ReplicaTotals
	control        *Control
	scale          *Scale
	capacityWaitUS int64
	failures       *Failures
	// metByDeployment are the tokens of requests that met their targets, nil unless the cost is divided.
	metByDeployment     map[string]int64
	shadow              Shadow
	hasPrefixPrediction bool // Raw reports shadow even if all predictions were 0
	isRecording         bool
	energy              *energy // nil if it is not counted
	sessions            sessions
	regret              regret
	prefillRegret       regret
	pd                  pd
	encoders            encodePool
	// anomalies counts anomalies by type, nil if no detector ran.
	anomalies map[string]int64
	from      stream.Micros
	until     stream.Micros
}

// key is what requests are grouped by.
type key struct{ class, tenant, model string }

// totals are the sums over one group.
type totals struct {
	key
	targets  stream.Targets
	requests Requests
	// withTargets requests belong to a class with targets; met of these met them all.
	met, withTargets int64
	// scheduled requests entered a batch; promptTokens are theirs, of which cachedTokens
	// were found in the prefix cache.
	admitted, scheduled, promptTokens, cachedTokens, preemptions int64
	// Tokens of completed requests, and the requested output tokens of all requests.
	completedInput, completedOutput, requestedOutput int64
	// metTokens are those of requests that met their targets.
	metTokens int64
	// multiToken requests have more than one output token; notIssuedWithTargets of the
	// calls that were not issued have targets.
	multiToken, notIssuedWithTargets int64
}

// row holds the times of one request in µs, each may be missing.
type row struct {
	ttft, e2e, queue int64
	output           int32
	group            uint32
}

// rowsPerChunk makes a chunk of 128 KiB.
const rowsPerChunk = 4096

// ReplicaTotals are the totals of one replica over its lifetime. Times are µs.
type ReplicaTotals struct {
	Deployment string
	// Index numbers the replicas of a deployment, from 0.
	Index stream.Index
	GPUs  int64
	// Requests counts the requests routed to the replica, Completed those it completed.
	Requests, Completed int64
	// PrefillTokens and DecodeTokens count computed tokens.
	PrefillTokens, DecodeTokens int64
	// QueriedTokens are the prompt tokens of requests at their first admission to a
	// batch, CachedTokens the part of them that was in the prefix cache, PulledTokens those of prompts that a prefill
	// replica computed, for which no tier is asked.
	QueriedTokens, CachedTokens, PulledTokens int64
	Preemptions                               int64
	// AdapterLoads into the memory of the host and AdapterCopies to the GPU, for which steps waited AdapterUS.
	AdapterLoads, AdapterCopies, AdapterUS int64
	// GrammarRequests have a grammar; GrammarWaits of them waited, GrammarWaitUS in all, for Compilations. Masks were
	// filled in MaskUS, for which steps waited MaskWaitUS.
	GrammarRequests, GrammarWaits, GrammarWaitUS, Compilations, Masks, MaskUS, MaskWaitUS int64
	// Stages is the number of pipeline stages, 0 without, and StageUS the time in which they computed, all together.
	Stages, StageUS int64
	// EncodedItems with EncodedTokens took EncoderUS of steps. EncoderHits were found in the encoder cache and
	// PrefixItems in the prefix cache. EncoderCuts counts chunks that ended before an item.
	EncodedItems, EncodedTokens, EncoderUS, EncoderHits, PrefixItems, EncoderCuts int64
	// LoadedItems had come from encode replicas.
	LoadedItems int64
	// DraftTokens were verified in this many steps of sequences, and AcceptedTokens of them accepted.
	Verifications, DraftTokens, AcceptedTokens int64
	PeakQueue, PeakBatch                       int64
	// Ranks are zero unless the replica is a data-parallel rank in lockstep with others.
	Ranks RankTotals
	// BlockUS is the integral of used KV blocks over time, PeakBlocks their maximum,
	// Blocks the total number of blocks.
	BlockUS            float64
	PeakBlocks, Blocks int64
	// UpUS is the lifetime, BusyUS the part of it in which a step ran.
	UpUS, BusyUS int64
	// Tier is nil if the replica has none.
	Tier *TierTotals
	// Storage are those of its storage, nil if it has none.
	Storage *TierTotals
	// PerGPUHour is the price of one of its GPUs; 0 is none.
	PerGPUHour float64
	// Pool is the one of a disaggregated deployment that it belongs to.
	Pool Pool
	// Energy is nil if it is unknown or not counted.
	Energy *EnergyTotals
}

// New returns an empty Accumulator. classes define the targets of requests; a class that
// is not listed has none.
func New(classes []stream.SLOClass) *Accumulator {
	a := &Accumulator{targets: map[string]stream.Targets{}, groups: map[key]uint32{}, reasons: map[string]int64{},
		from: stream.Never, until: stream.Never, spilled: spilled{limit: math.MaxInt}}
	for _, c := range classes {
		a.targets[c.Name] = c.Targets
	}
	return a
}

// MarkRecording declares that the outcomes come from a recording. A field that no outcome
// has (admission, cached tokens, preemptions) was then not recorded and is missing, not
// 0.
func (a *Accumulator) MarkRecording() { a.isRecording = true }

// DivideCost divides the cost by deployment. It is called before the first outcome.
func (a *Accumulator) DivideCost() { a.metByDeployment = map[string]int64{} }

// Targets returns the targets of the class.
func (a *Accumulator) Targets(class string) stream.Targets { return a.targets[class] }

// Add counts the outcome of one attempt at a request and keeps no reference to it. Latencies count from the first
// attempt. It panics if the state is unknown.
func (a *Accumulator) Add(o *stream.Outcome) {
	group := a.group(key{o.SLOClass, o.Tenant, o.Model})
	t := &a.totals[group]
	a.from = earlier(a.from, o.Began())
	a.ExtendTo(max(o.ArrivalUS, o.AdmittedUS, o.RoutedUS, o.EnqueuedUS, o.ScheduledUS, o.CompletedUS, o.EndedUS))
	t.countWork(o)
	if o.Retried { // the last attempt counts
		t.requests.Retries++
		return
	}
	t.count(o)
	a.shadow.add(o)
	a.pd.add(o, &a.spilled)
	a.encoders.add(o, &a.spilled)
	if n, seen := a.reasons[o.Reason]; seen {
		a.reasons[o.Reason] = n + 1
	} else if o.Reason != "" {
		a.reasons[strings.Clone(o.Reason)] = 1 // the caller's string may be part of larger memory
	}
	if met := SLOMet(o, t.targets); met != nil {
		t.withTargets++
		if *met {
			t.met++
			t.metTokens += o.InputTokens + o.OutputTokens
			if a.metByDeployment != nil {
				a.metByDeployment[o.Deployment] += o.InputTokens + o.OutputTokens
			}
		}
	}
	if !o.ScheduledUS.IsZero() || !o.FirstTokenUS.IsZero() {
		a.addRow(row{elapsed(o.Began(), o.FirstTokenUS), elapsed(o.Began(), o.CompletedUS),
			elapsed(o.QueueStartUS(), o.ScheduledUS),
			int32(o.OutputTokens), group})
	}
}

// group returns the index in totals of the group of k.
func (a *Accumulator) group(k key) uint32 {
	g, ok := a.groups[k]
	if !ok {
		g = uint32(len(a.totals))
		// The caller's strings may be parts of larger memory.
		k = key{strings.Clone(k.class), strings.Clone(k.tenant), strings.Clone(k.model)}
		a.groups[k] = g
		a.totals = append(a.totals, totals{key: k, targets: a.targets[k.class]})
	}
	return g
}

func (t *totals) count(o *stream.Outcome) {
	r := &t.requests
	r.Offered++
	t.requestedOutput += o.OutputTokens
	if o.OutputTokens > 1 {
		t.multiToken++
	}
	switch o.State {
	case stream.StateCompleted:
		r.Completed++
		t.completedInput += o.InputTokens
		t.completedOutput += o.OutputTokens
	case stream.StateRejected:
		r.Rejected++
		if stream.IsServerReason(o.Reason) {
			r.ServerRejected++
		}
	case stream.StateTimedOut:
		r.TimedOut++
	case stream.StateFailed:
		r.Failed++
	case stream.StateUnfinished:
		r.Unfinished++
	default:
		panic("metrics: request " + o.ID + " in state " + o.State)
	}
	if !o.AdmittedUS.IsZero() {
		t.admitted++
	}
}

// countWork counts what an attempt at a request cost.
func (t *totals) countWork(o *stream.Outcome) {
	t.preemptions += o.Preemptions
	if !o.ScheduledUS.IsZero() {
		t.scheduled++
		t.promptTokens += o.InputTokens
		t.cachedTokens += o.CachedTokens
	}
}

// earlier is the earlier of two times, of which the first may be missing.
func earlier(a, b stream.Micros) stream.Micros {
	if a.IsZero() {
		return b
	}
	return min(a, b)
}

func (a *Accumulator) addRow(r row) {
	last := len(a.rows) - 1
	if last < 0 || len(a.rows[last]) == rowsPerChunk {
		if len(a.rows)*rowsPerChunk >= a.spilled.limit {
			a.spillRows()
		}
		a.addChunk()
		last = len(a.rows) - 1
	}
	a.rows[last] = append(a.rows[last], r)
}

// addChunk adds an empty chunk, in the memory of one that was spilled if there is any.
func (a *Accumulator) addChunk() {
	n := len(a.rows)
	if n == cap(a.rows) || a.rows[:n+1][n] == nil {
		a.rows = append(a.rows, make([]row, 0, rowsPerChunk))
		return
	}
	a.rows = a.rows[:n+1]
	a.rows[n] = a.rows[n][:0]
}

// ExtendTo extends the run to the time at which a request became final. Outcomes report
// this time only for completed requests: for the others Add uses the last time in the
// outcome, which may be earlier.
func (a *Accumulator) ExtendTo(at stream.Micros) { a.until = max(a.until, at) }

// AddGaps counts n inter-token gaps of us µs.
func (a *Accumulator) AddGaps(us, n int64) { a.gaps.Add(us, n) }

// AddReplica adds the totals of one replica.
func (a *Accumulator) AddReplica(r ReplicaTotals) { a.replicas = append(a.replicas, r) }

// AddAnomaly counts an anomaly by its type.
func (a *Accumulator) AddAnomaly(of string) { a.anomalies[of]++ }

// TrackAnomalies declares the types of anomalies that are detected, so that their counts
// are 0 instead of missing. It must be called before AddAnomaly.
func (a *Accumulator) TrackAnomalies(types []string) {
	a.anomalies = map[string]int64{}
	for _, of := range types {
		a.anomalies[of] = 0
	}
}

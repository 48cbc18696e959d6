package metrics

import (
	"strings"

	"blis/pkg/stat"
	"blis/pkg/stream"
)

// Accumulator gathers what Raw reports. It keeps 32 bytes for each request that
// entered a batch, and a little for each combination of class, tenant and model.
type Accumulator struct {
	targets map[string]stream.Targets
	groups  map[key]uint32
	totals  []totals
	rows    [][]row // all but the last are full
	gaps    stat.Histogram
	reasons map[string]int64
	// replicas are in the order in which they were handed over.
	replicas []ReplicaTotals
	control  *Control
	shadow   Shadow
	expects  bool // shadow is to be told
	recorded bool
	sessions sessions
	regret   regret
	// anomalies counts them by type, nil if nobody looks for them.
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
	// met of judged requests met their targets.
	met, judged int64
	// scheduled of the admitted requests entered a batch, with so many prompt tokens.
	admitted, scheduled, prompt, cached, preemptions int64
	// Tokens of completed requests, and those that were asked for by all.
	doneInput, doneOutput, askedOutput int64
	// several requests asked for more than one token; missing of the lost ones had
	// targets.
	several, missing int64
}

// row is what is kept of one request: times in µs, or absent.
type row struct {
	ttft, e2e, queue int64
	output           int32
	group            uint32
}

// rowsPerChunk makes a chunk of 128 KiB.
const rowsPerChunk = 4096

// ReplicaTotals is what one replica did in its life. Times are µs.
type ReplicaTotals struct {
	Deployment string
	// Index is the replica's place in its deployment.
	Index stream.Index
	GPUs  int64
	// Requests were sent to it, Completed of them completed.
	Requests, Completed int64
	// PrefillTokens and DecodeTokens were computed.
	PrefillTokens, DecodeTokens int64
	// QueriedTokens are the prompt tokens of requests at their first admission
	// to a batch, CachedTokens those of them that the prefix cache had.
	QueriedTokens, CachedTokens int64
	Preemptions                 int64
	PeakQueue, PeakBatch        int64
	// BlockUS is the integral of used blocks over time, PeakBlocks the most
	// that were used at once, Blocks how many there are.
	BlockUS            float64
	PeakBlocks, Blocks int64
	// UpUS is how long it existed, BusyUS how long of that a step ran.
	UpUS, BusyUS int64
}

// New returns an empty Accumulator. classes say which targets requests are
// judged by; a class that is not among them has none.
func New(classes []stream.SLOClass) *Accumulator {
	a := &Accumulator{targets: map[string]stream.Targets{}, groups: map[key]uint32{}, reasons: map[string]int64{}, from: stream.Never, until: stream.Never}
	for _, c := range classes {
		a.targets[c.Name] = c.Targets
	}
	return a
}

// Recorded says that the outcomes are of a recording: what none of them has (that it
// was admitted, found tokens cached, lost its place) was not recorded, rather than that
// it never happened.
func (a *Accumulator) Recorded() { a.recorded = true }

// Targets are those that requests of the class are judged by.
func (a *Accumulator) Targets(class string) stream.Targets { return a.targets[class] }

// Add counts one request by its outcome, of which it keeps no memory. A state
// that is none is a bug.
func (a *Accumulator) Add(o *stream.Outcome) {
	group := a.group(key{o.SLOClass, o.Tenant, o.Model})
	t := &a.totals[group]
	t.count(o)
	a.shadow.add(o)
	if n, seen := a.reasons[o.Reason]; seen {
		a.reasons[o.Reason] = n + 1
	} else if o.Reason != "" {
		a.reasons[strings.Clone(o.Reason)] = 1 // the caller's may be part of larger memory
	}
	if met := SLOMet(o, t.targets); met != nil {
		t.judged++
		if *met {
			t.met++
		}
	}
	if a.from.IsZero() || o.ArrivalUS < a.from {
		a.from = o.ArrivalUS
	}
	a.Until(max(o.ArrivalUS, o.AdmittedUS, o.RoutedUS, o.EnqueuedUS, o.ScheduledUS, o.CompletedUS, o.EndedUS))
	if !o.ScheduledUS.IsZero() || !o.FirstTokenUS.IsZero() {
		a.keep(row{span(o.ArrivalUS, o.FirstTokenUS), span(o.ArrivalUS, o.CompletedUS), span(o.EnqueuedUS, o.ScheduledUS),
			int32(o.OutputTokens), group})
	}
}

// group returns the number of the group of k.
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
	t.askedOutput += o.OutputTokens
	if o.OutputTokens > 1 {
		t.several++
	}
	t.preemptions += o.Preemptions
	switch o.State {
	case stream.StateCompleted:
		r.Completed++
		t.doneInput += o.InputTokens
		t.doneOutput += o.OutputTokens
	case stream.StateRejected:
		r.Rejected++
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
	if !o.ScheduledUS.IsZero() {
		t.scheduled++
		t.prompt += o.InputTokens
		t.cached += o.CachedTokens
	}
}

func (a *Accumulator) keep(r row) {
	last := len(a.rows) - 1
	if last < 0 || len(a.rows[last]) == rowsPerChunk {
		a.rows = append(a.rows, make([]row, 0, rowsPerChunk))
		last++
	}
	a.rows[last] = append(a.rows[last], r)
}

// Until says that a request became final at that instant. Outcomes tell it of
// completed requests only: of the others Add knows the last instant that the
// outcome holds, which may be earlier.
func (a *Accumulator) Until(at stream.Micros) { a.until = max(a.until, at) }

// Gap counts n gaps of us µs between two tokens of a request.
func (a *Accumulator) Gap(us, n int64) { a.gaps.Add(us, n) }

// Replica counts what one replica did.
func (a *Accumulator) Replica(r ReplicaTotals) { a.replicas = append(a.replicas, r) }

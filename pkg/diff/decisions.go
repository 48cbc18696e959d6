package diff

import (
	"cmp"
	"context"
	"slices"

	"blis/pkg/stream"
)

// noIndex is the index of a missing decision.
const noIndex = -1

// decision is one decision as it is kept: its time, its line in the stream, its result,
// and the index of the previous decision about the same request.
type decision struct {
	at                     int64
	line, result, previous int32
	stage                  uint8
}

// decisionResult is the result of a decision.
type decisionResult struct {
	verdict, deployment string
	replica             stream.Index
	delayUS             int64
	// priority is 0 except for priority decisions.
	priority float64
}

const verdictAdmit = "admit"

// storeDecision keeps the decision on that line.
func (s *side) storeDecision(d *stream.Decision, line int32) {
	what := decisionResult{verdict: d.Verdict, deployment: d.Deployment, replica: d.Replica, delayUS: d.DelayUS}
	if d.Stage == stream.StagePriority {
		what.priority = d.Score
	}
	n := s.request(d.Request, s.nextDecision)
	s.nextDecision = n + 1
	for s.lastDecisions.len <= int(n) {
		s.lastDecisions.add(noIndex)
	}
	last := s.lastDecisions.at(n)
	s.decisions.add(decision{int64(d.AtUS), line, s.decisionResults.number(what), *last,
		uint8(slices.Index(stream.Stages, d.Stage))})
	*last = int32(s.decisions.len - 1)
}

// decisionsAbout returns the decisions about a request by stage, those of one stage in
// order, in the memory of the list.
func (s *side) decisionsAbout(n int32, list []*decision) (all []*decision) {
	all = list[:0]
	if int(n) >= s.lastDecisions.len {
		return all
	}
	for i := *s.lastDecisions.at(n); i != noIndex; i = s.decisions.at(i).previous {
		all = append(all, s.decisions.at(i))
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(x, y *decision) int { return cmp.Compare(x.stage, y.stage) })
	return all
}

// Decisions compares the decisions of two runs.
type Decisions struct {
	// Compared decisions were made on both sides. OnlyA and OnlyB were made on one side
	// only; admissions that admit are not counted.
	Compared int64 `json:"compared"`
	OnlyA    int64 `json:"only_a"`
	OnlyB    int64 `json:"only_b"`
	// Differ is the number of decisions that differ, including those of one side. First
	// is the first of them in simulated time; absent if there is none.
	Differ int64       `json:"differ"`
	First  *Divergence `json:"first,omitempty"`
}

// Divergence is a decision that differs between two runs. A side that did not make it is
// absent.
type Divergence struct {
	Stage   string           `json:"stage"`
	Request string           `json:"request"`
	A       *stream.Decision `json:"a,omitempty"`
	B       *stream.Decision `json:"b,omitempty"`
	// DifferingSignals names the signals of common candidates that had different values
	// on the two sides, such as "main/0 queue_depth". If there are none, the policies
	// decided differently on the same values.
	DifferingSignals []string `json:"differing_signals"`
	// LaterDiffering is the number of later decisions that differ.
	LaterDiffering int64 `json:"later_differing"`
}

// compareDecisions compares the decisions of both sides; nil if there are none.
func (c *comparison) compareDecisions(ctx context.Context) (*Decisions, error) {
	if c.sides[0].decisions.len+c.sides[1].decisions.len == 0 {
		return nil, nil
	}
	d := &divergences{results: c.decisionResults.all}
	var a, b []*decision
	for n := range c.ids.len() {
		if c.isSelected(n) {
			a, b = c.sides[0].decisionsAbout(n, a), c.sides[1].decisionsAbout(n, b)
			d.compare(n, a, b)
		}
	}
	if d.Differ == 0 {
		return &d.Decisions, nil
	}
	return &d.Decisions, c.readFirstDivergence(ctx, d)
}

// divergences counts the decisions that differ and keeps the first.
type divergences struct {
	Decisions
	results []decisionResult
	first   [2]*decision // one may be nil
	request int32        // the subject of first
}

// compare compares the decisions about one request.
func (d *divergences) compare(n int32, a, b []*decision) {
	for len(a) > 0 || len(b) > 0 {
		var x, y *decision
		if len(b) == 0 || len(a) > 0 && a[0].stage <= b[0].stage {
			x, a = a[0], a[1:]
		}
		if x == nil || len(b) > 0 && b[0].stage == x.stage {
			y, b = b[0], b[1:]
		}
		d.count(n, x, y)
	}
}

// count counts a pair of decisions, one of which may be nil. A decision of one side alone
// differs, unless it is an admission that admits.
func (d *divergences) count(n int32, x, y *decision) {
	switch {
	case x != nil && y != nil:
		d.Compared++
		if x.result == y.result {
			return
		}
	case d.results[earlier(x, y).result].verdict == verdictAdmit:
		return
	case y == nil:
		d.OnlyA++
	default:
		d.OnlyB++
	}
	if d.Differ++; d.Differ > 1 {
		at, first := earlier(x, y), earlier(d.first[0], d.first[1])
		if cmp.Or(cmp.Compare(at.at, first.at), cmp.Compare(at.line, first.line)) >= 0 {
			return
		}
	}
	d.first, d.request = [2]*decision{x, y}, n
}

// earlier returns the earlier of two decisions, one of which may be nil.
func earlier(x, y *decision) *decision {
	if x == nil || y != nil && y.at < x.at {
		return y
	}
	return x
}

// readFirstDivergence reads the complete decisions of the first divergence.
func (c *comparison) readFirstDivergence(ctx context.Context, d *divergences) error {
	stage := stream.Stages[earlier(d.first[0], d.first[1]).stage]
	d.First = &Divergence{Stage: stage, Request: c.ids.name(d.request), LaterDiffering: d.Differ - 1,
		DifferingSignals: []string{}}
	for i, to := range []**stream.Decision{&d.First.A, &d.First.B} {
		if d.first[i] == nil {
			continue
		}
		*to = new(stream.Decision)
		err := c.sides[i].walk(ctx, func(r *stream.Reader) error {
			if r.Line() < int(d.first[i].line) {
				return nil
			}
			return cmp.Or(r.Decision(*to), errStop)
		})
		if err != nil {
			return err
		}
	}
	if d.First.A != nil && d.First.B != nil {
		d.First.DifferingSignals = differingSignals(d.First.A, d.First.B)
	}
	return nil
}

// candidateSignals are the signals of a candidate that a routing decision can record.
var candidateSignals = []struct {
	name string
	of   func(*stream.Candidate) float64
}{
	{"inflight", func(c *stream.Candidate) float64 { return float64(c.Inflight) }},
	{"queue_depth", func(c *stream.Candidate) float64 { return float64(c.QueueDepth) }},
	{"running", func(c *stream.Candidate) float64 { return float64(c.Running) }},
	{"kv_util", func(c *stream.Candidate) float64 { return float64(c.KVUtil) }},
	{"hit_rate", func(c *stream.Candidate) float64 { return float64(c.HitRate) }},
	{"recent_ttft_ms", func(c *stream.Candidate) float64 { return float64(c.RecentTTFTMS) }},
	{"recent_tpot_ms", func(c *stream.Candidate) float64 { return float64(c.RecentTPOTMS) }},
	{"est_wait_ms", func(c *stream.Candidate) float64 { return float64(c.EstWaitMS) }},
	{"kv_util_cpu", func(c *stream.Candidate) float64 { return float64(c.KVUtilCPU) }},
	{"loading", func(c *stream.Candidate) float64 { return float64(c.Loading) }},
	{"matched_blocks", func(c *stream.Candidate) float64 { return float64(c.Matched) }},
	{"cached_blocks", func(c *stream.Candidate) float64 { return float64(c.Cached) }},
	{"age_us", func(c *stream.Candidate) float64 { return float64(signalAge(c)) }},
}

// signalAge returns the age in µs of the signals of the replica, -1 if none was read. The
// number in flight and the prefix match are the router's own.
func signalAge(c *stream.Candidate) int64 {
	read := []bool{!c.QueueDepth.IsZero(), !c.Running.IsZero(), !c.KVUtil.IsZero(), !c.HitRate.IsZero(),
		!c.RecentTTFTMS.IsZero(), !c.RecentTPOTMS.IsZero(), !c.EstWaitMS.IsZero(), !c.KVUtilCPU.IsZero(),
		!c.Cached.IsZero()}
	if !slices.Contains(read, true) {
		return -1
	}
	return c.AgeUS
}

// differingSignals names the signals of common candidates that differ. A signal that one
// of the policies did not read is not compared.
func differingSignals(a, b *stream.Decision) []string {
	names := []string{}
	for i := range a.Considered {
		x := &a.Considered[i]
		k := slices.IndexFunc(b.Considered, func(y stream.Candidate) bool {
			return y.Deployment == x.Deployment && y.Replica == x.Replica
		})
		if k < 0 {
			continue
		}
		y := &b.Considered[k]
		for _, s := range candidateSignals {
			u, v := s.of(x), s.of(y)
			if u >= 0 && v >= 0 && u != v {
				names = append(names, replicaName(x.Deployment, x.Replica)+" "+s.name)
			}
		}
	}
	slices.Sort(names)
	return names
}

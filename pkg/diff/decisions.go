package diff

import (
	"cmp"
	"context"
	"slices"

	"blis/pkg/stream"
)

// decision is what is kept of one: when, on which line of its stream, what, and
// where in the list the one before it about the same request is.
type decision struct {
	at                     int64
	line, choice, previous int32
	stage                  uint8
}

// choice is what a decision came to.
type choice struct {
	verdict, deployment string
	replica             stream.Index
	delayUS             int64
	// priority is that of a decision of priority, else 0.
	priority float64
}

// stages in the order in which a request meets them.
var stages = []string{stream.StageAdmission, stream.StagePriority, stream.StageFlowControl, stream.StageRouting}

const admit = "admit"

// decide keeps the decision that stands on that line.
func (s *side) decide(d *stream.Decision, line int32) {
	what := choice{verdict: d.Verdict, deployment: d.Deployment, replica: d.Replica, delayUS: d.DelayUS}
	if d.Stage == stream.StagePriority {
		what.priority = d.Score
	}
	last := s.last.at(s.number(d.Request))
	s.decisions.append(decision{int64(d.AtUS), line, s.choices.number(what), *last, uint8(slices.Index(stages, d.Stage))})
	*last = s.decisions.n - 1
}

// about returns the decisions about a request by stage, those of one in order.
func (s *side) about(n int32) (all []*decision) {
	if n >= s.last.n {
		return nil
	}
	for i := *s.last.at(n); i != none; i = s.decisions.at(i).previous {
		all = append(all, s.decisions.at(i))
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(x, y *decision) int { return cmp.Compare(x.stage, y.stage) })
	return all
}

// Decisions says how far the decisions of two runs differ.
type Decisions struct {
	// Both sides made Compared of the decisions; OnlyA and OnlyB were made by one,
	// and are no admissions that admit.
	Compared int64 `json:"compared"`
	OnlyA    int64 `json:"only_a"`
	OnlyB    int64 `json:"only_b"`
	// Differ is how many are not the same, those of one side included. First is the
	// first of them in simulated time; absent where there is none.
	Differ int64       `json:"differ"`
	First  *Divergence `json:"first,omitempty"`
}

// Divergence is one decision of two runs. The side that did not make it is absent.
type Divergence struct {
	Stage   string           `json:"stage"`
	Request string           `json:"request"`
	A       *stream.Decision `json:"a,omitempty"`
	B       *stream.Decision `json:"b,omitempty"`
	// Unlike names what the two saw otherwise of the candidates that both show, as
	// main/0 queue_depth; none is "the same was seen, and something else made of it".
	Unlike []string `json:"unlike"`
	// Follow is how many of the later decisions differ, too.
	Follow int64 `json:"follow"`
}

// compareDecisions pairs the decisions of both sides; nil if there are none.
func (c *comparison) compareDecisions(ctx context.Context) (*Decisions, error) {
	if c.sides[0].decisions.n+c.sides[1].decisions.n == 0 {
		return nil, nil
	}
	d := &divergences{choices: c.choices.all}
	for n := range int32(len(c.names)) {
		if c.wanted(n) {
			d.compare(n, c.sides[0].about(n), c.sides[1].about(n))
		}
	}
	if d.Differ == 0 {
		return &d.Decisions, nil
	}
	return &d.Decisions, c.explain(ctx, d)
}

// divergences counts how decisions differ and keeps the first that do.
type divergences struct {
	Decisions
	choices []choice
	first   [2]*decision // one may be missing
	request int32        // that they are about
}

// compare compares the decisions about one request.
func (d *divergences) compare(n int32, a, b []*decision) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].stage < b[0].stage:
			d.alone(n, a[0], nil, &d.OnlyA)
			a = a[1:]
		case len(a) == 0 || b[0].stage < a[0].stage:
			d.alone(n, nil, b[0], &d.OnlyB)
			b = b[1:]
		default:
			d.Compared++
			if a[0].choice != b[0].choice {
				d.differ(n, a[0], b[0])
			}
			a, b = a[1:], b[1:]
		}
	}
}

// alone counts a decision that one side made, and that is no admission that admits.
func (d *divergences) alone(n int32, a, b *decision, count *int64) {
	if d.choices[earlier(a, b).choice].verdict != admit {
		*count++
		d.differ(n, a, b)
	}
}

func (d *divergences) differ(n int32, a, b *decision) {
	if d.Differ++; d.Differ > 1 {
		at, first := earlier(a, b), earlier(d.first[0], d.first[1])
		if cmp.Or(cmp.Compare(at.at, first.at), cmp.Compare(at.line, first.line)) >= 0 {
			return
		}
	}
	d.first, d.request = [2]*decision{a, b}, n
}

// earlier is the earlier of two decisions, one of which may be missing.
func earlier(x, y *decision) *decision {
	if x == nil || y != nil && y.at < x.at {
		return y
	}
	return x
}

// explain reads the first divergence again, whole.
func (c *comparison) explain(ctx context.Context, d *divergences) error {
	stage := stages[earlier(d.first[0], d.first[1]).stage]
	d.First = &Divergence{Stage: stage, Request: c.names[d.request], Follow: d.Differ - 1, Unlike: []string{}}
	for i, to := range []**stream.Decision{&d.First.A, &d.First.B} {
		if d.first[i] == nil {
			continue
		}
		line := int(d.first[i].line)
		err := c.sides[i].walk(ctx, func(r *stream.Reader, _ *stream.Outcome, found *stream.Decision) error {
			if r.Line() < line {
				return nil
			}
			if err := r.Decision(found); err != nil {
				return err
			}
			*to = found
			return errEnough
		})
		if err != nil {
			return err
		}
	}
	if d.First.A != nil && d.First.B != nil {
		d.First.Unlike = unlike(d.First.A, d.First.B)
	}
	return nil
}

// seen are what a routing decision may see of a candidate.
var seen = []struct {
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
	{"matched_blocks", func(c *stream.Candidate) float64 { return float64(c.Matched) }},
	{"cached_blocks", func(c *stream.Candidate) float64 { return float64(c.Cached) }},
	{"age_us", func(c *stream.Candidate) float64 { return float64(ageOf(c)) }},
}

// ageOf is how old what a replica gave was, in µs; -1 where nothing was asked of it: what
// is in flight and where prompts may be cached are the router's own notes.
func ageOf(c *stream.Candidate) int64 {
	gave := []bool{!c.QueueDepth.IsZero(), !c.Running.IsZero(), !c.KVUtil.IsZero(), !c.HitRate.IsZero(), !c.RecentTTFTMS.IsZero(), !c.RecentTPOTMS.IsZero(),
		!c.EstWaitMS.IsZero(), !c.Cached.IsZero()}
	if !slices.Contains(gave, true) {
		return -1
	}
	return c.AgeUS
}

// unlike names what two decisions saw otherwise of the candidates that both show.
// What one policy does not look at is not seen otherwise.
func unlike(a, b *stream.Decision) []string {
	names := []string{}
	for i := range a.Considered {
		x := &a.Considered[i]
		k := slices.IndexFunc(b.Considered, func(y stream.Candidate) bool { return y.Deployment == x.Deployment && y.Replica == x.Replica })
		if k < 0 {
			continue
		}
		y := &b.Considered[k]
		for _, s := range seen {
			u, v := s.of(x), s.of(y)
			if u >= 0 && v >= 0 && u != v {
				names = append(names, placeOf(x.Deployment, x.Replica)+" "+s.name)
			}
		}
	}
	slices.Sort(names)
	return names
}

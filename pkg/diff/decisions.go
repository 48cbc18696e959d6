package diff

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"blis/pkg/record"
)

// decision is what is kept of one: about whom, when, what, and on which line of
// its stream.
type decision struct {
	at      int64
	line    int
	request int32
	choice  int32
	stage   uint8
}

// choice is what a decision came to.
type choice struct {
	verdict, deployment string
	replica             record.Index
	delayUS             int64
	// priority is that of a decision of priority, else 0.
	priority float64
}

func (c choice) clone() choice {
	c.verdict, c.deployment = strings.Clone(c.verdict), strings.Clone(c.deployment)
	return c
}

// stages in the order in which a request meets them.
var stages = []string{record.StageAdmission, record.StagePriority, record.StageFlowControl, record.StageRouting}

const admit = "admit"

// decide keeps the decision that stands on that line.
func (s *side) decide(d *record.Decision, line int) {
	what := choice{verdict: d.Verdict, deployment: d.Deployment, replica: d.Replica, delayUS: d.DelayUS}
	if d.Stage == record.StagePriority {
		what.priority = d.Score
	}
	s.decisions = append(s.decisions, decision{at: int64(d.AtUS), line: line, request: s.number(d.Request),
		choice: s.choices.number(what), stage: uint8(slices.Index(stages, d.Stage))})
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
	A       *record.Decision `json:"a,omitempty"`
	B       *record.Decision `json:"b,omitempty"`
	// Unlike names what the two saw otherwise of the candidates that both show, as
	// main/0 queue_depth; none is "the same was seen, and something else made of it".
	Unlike []string `json:"unlike"`
	// Follow is how many of the later decisions differ, too.
	Follow int64 `json:"follow"`
}

// compareDecisions pairs the decisions of both sides.
func (c *comparison) compareDecisions(ctx context.Context) (*Decisions, error) {
	a, b := c.sides[0].decided(), c.sides[1].decided()
	if len(a) == 0 && len(b) == 0 {
		return nil, nil
	}
	d := &Decisions{}
	first := [2]*decision{}
	differ := func(x, y *decision) {
		d.Differ++
		if at, best := earlier(x, y), earlier(first[0], first[1]); d.Differ == 1 || cmp.Or(cmp.Compare(at.at, best.at), cmp.Compare(at.line, best.line)) < 0 {
			first = [2]*decision{x, y}
		}
	}
	alone := func(x, y *decision, count *int64) {
		if one := earlier(x, y); c.choices.all[one.choice].verdict != admit {
			*count++
			differ(x, y)
		}
	}
	for i, k := 0, 0; i < len(a) || k < len(b); {
		order := 0
		switch {
		case i == len(a):
			order = 1
		case k == len(b):
			order = -1
		default:
			order = a[i].beside(&b[k])
		}
		switch {
		case order < 0:
			alone(&a[i], nil, &d.OnlyA)
			i++
		case order > 0:
			alone(nil, &b[k], &d.OnlyB)
			k++
		default:
			d.Compared++
			if a[i].choice != b[k].choice {
				differ(&a[i], &b[k])
			}
			i, k = i+1, k+1
		}
	}
	if d.Differ == 0 {
		return d, nil
	}
	return d, c.explain(ctx, d, first)
}

// decided is the decisions about requests that are asked for, by request, stage and
// line.
func (s *side) decided() []decision {
	kept := slices.DeleteFunc(s.decisions, func(d decision) bool { return !s.wanted(d.request) })
	slices.SortFunc(kept, func(x, y decision) int { return cmp.Or(x.beside(&y), cmp.Compare(x.line, y.line)) })
	return kept
}

// beside compares what two decisions are about.
func (d *decision) beside(o *decision) int {
	return cmp.Or(cmp.Compare(d.request, o.request), cmp.Compare(d.stage, o.stage))
}

// earlier is the earlier of two decisions, one of which may be missing.
func earlier(x, y *decision) *decision {
	if x == nil || y != nil && y.at < x.at {
		return y
	}
	return x
}

// explain reads the first divergence again, whole.
func (c *comparison) explain(ctx context.Context, d *Decisions, first [2]*decision) error {
	one := earlier(first[0], first[1])
	d.First = &Divergence{Stage: stages[one.stage], Request: c.names[one.request], Follow: d.Differ - 1, Unlike: []string{}}
	for i, to := range []**record.Decision{&d.First.A, &d.First.B} {
		if first[i] == nil {
			continue
		}
		err := c.sides[i].walk(ctx, func(r *record.Reader, _ *record.Outcome, found *record.Decision) error {
			if r.Line() < first[i].line {
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
	of   func(*record.Candidate) float64
}{
	{"inflight", func(c *record.Candidate) float64 { return float64(c.Inflight) }},
	{"queue_depth", func(c *record.Candidate) float64 { return float64(c.QueueDepth) }},
	{"running", func(c *record.Candidate) float64 { return float64(c.Running) }},
	{"kv_util", func(c *record.Candidate) float64 { return float64(c.KVUtil) }},
	{"matched_blocks", func(c *record.Candidate) float64 { return float64(c.Matched) }},
	{"cached_blocks", func(c *record.Candidate) float64 { return float64(c.Cached) }},
	{"age_us", func(c *record.Candidate) float64 { return float64(c.AgeUS) }},
}

// unlike names what two decisions saw otherwise of the candidates that both show.
// What one policy does not look at is not seen otherwise.
func unlike(a, b *record.Decision) []string {
	names := []string{}
	for i := range a.Considered {
		x := &a.Considered[i]
		k := slices.IndexFunc(b.Considered, func(y record.Candidate) bool { return y.Deployment == x.Deployment && y.Replica == x.Replica })
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

package workloadstats

import (
	"maps"
	"slices"
	"strings"

	"blis/pkg/stat"
	"blis/pkg/stream"
)

// dags are the session records. Own is the history of the one at hand.
type dags struct {
	workflows                   map[string]int64
	calls, tools, depth, fanOut []int64 // of each session
	thinkUS, toolUS             []int64 // of each step
	own                         history
	shares                      []float64 // of each session that calls a model
	before                      history   // the sums of own when the session began
	// made are the calls of models, lasted the sum over them of how long their
	// session lasts, in µs, were all of them answered at once.
	made, lasted float64

	ends, depths, followers []int64 // scratch: of each step
}

// add counts s, but for its calls.
func (d *dags) add(s *stream.Session) {
	if d.workflows == nil {
		d.workflows = map[string]int64{}
	}
	if s.Workflow != "" {
		d.workflows[strings.Clone(s.Workflow)]++
	}
	d.ends, d.depths, d.followers = d.ends[:0], d.depths[:0], d.followers[:0]
	var tools, depth, fanOut, first, end int64
	for i := range s.Steps {
		step := &s.Steps[i]
		var begin, level int64
		for _, before := range step.After {
			begin, level = max(begin, d.ends[before]), max(level, d.depths[before])
			d.followers[before]++
			fanOut = max(fanOut, d.followers[before])
		}
		if len(step.After) == 0 {
			first++
		} else if step.DelayUS > 0 {
			d.thinkUS = append(d.thinkUS, step.DelayUS)
		}
		if begin += step.DelayUS; !s.UntilUS.IsZero() && s.ArrivalUS+stream.Micros(begin) > s.UntilUS {
			begin = max(0, int64(s.UntilUS-s.ArrivalUS)) // what would begin later does not happen
		}
		if step.Tool != "" {
			tools++
			d.toolUS = append(d.toolUS, step.LatencyUS)
			begin += step.LatencyUS
		}
		d.ends, d.depths, d.followers = append(d.ends, begin), append(d.depths, level+1), append(d.followers, 0)
		end, depth = max(end, begin), max(depth, level+1)
	}
	calls := int64(len(s.Steps)) - tools
	d.made += float64(calls)
	d.lasted += float64(float64(calls) * float64(end))
	d.calls = append(d.calls, calls)
	d.tools = append(d.tools, tools)
	d.depth = append(d.depth, depth)
	d.fanOut = append(d.fanOut, max(fanOut, first))
	clear(d.own.most)
	d.before = d.own
}

// call counts a call of the session at hand, with its whole prompt.
func (d *dags) call(prompt []stream.Segment, id string, step *stream.SessionStep) {
	d.own.count(d.own.add(root, prompt, id, step.InputTokens, step.OutputTokens), step.InputTokens)
}

// end closes the session at hand.
func (d *dags) end() {
	if tokens := d.own.tokens - d.before.tokens; tokens > 0 {
		d.shares = append(d.shares, float64(d.own.blocks-d.before.blocks)/float64(tokens))
	}
}

// threads are the conversations that requests name.
type threads struct {
	turns map[string]int64
	own   history
}

func (t *threads) add(r *stream.Request) {
	if t.turns == nil {
		t.turns = map[string]int64{}
	}
	if n, seen := t.turns[r.Session]; seen {
		t.turns[r.Session] = n + 1
	} else {
		t.turns[strings.Clone(r.Session)] = 1 // the caller's may be part of larger memory
	}
	t.own.count(t.own.add(follow(root, r.Session), r.Prompt, r.ID, r.InputTokens, r.OutputTokens), r.InputTokens)
}

// aboutSessions is what there is to say of sessions, nil without any.
func (d *Describer) aboutSessions() *Sessions {
	g, t := &d.dags, &d.threads
	if len(g.calls) == 0 && len(t.turns) == 0 {
		return nil
	}
	of := func(values []int64, unit int64) *Distribution { return distribution(slices.Clone(values), unit) }
	s := &Sessions{Workflows: g.workflows, Calls: of(g.calls, 1), Tools: of(g.tools, 1), Depth: of(g.depth, 1), FanOut: of(g.fanOut, 1),
		ThinkS: of(g.thinkUS, 1e6), ToolS: of(g.toolUS, 1e6), Own: g.own.ratio(),
		Turns: distribution(slices.Collect(maps.Values(t.turns)), 1), TurnsOwn: t.own.ratio()}
	if len(g.shares) > 0 {
		median := stat.QuantileFloat(slices.Sorted(slices.Values(g.shares)), 50)
		s.OwnMedian = &median
	}
	return s
}

package workloadstats

import (
	"maps"
	"slices"
	"strings"

	"blis/pkg/stat"
	"blis/pkg/stream"
)

// sessionGraphs accumulates statistics of session records. session is the history of the current
// one.
type sessionGraphs struct {
	workflows                   map[string]int64
	calls, tools, depth, fanOut []int64 // per session
	thinkUS, toolUS             []int64 // per step
	session                     history
	hitRatios                   []float64 // per session with model calls
	previous                    history   // the sums of session before the current one
	// callCount is the number of model calls. callTime is the sum of the durations of their
	// sessions, in µs, with instantaneous model calls.
	callCount, callTime float64

	ends, depths, followers []int64 // scratch, per step
}

// add adds s except for its calls.
func (d *sessionGraphs) add(s *stream.Session) {
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
			begin = max(0, int64(s.UntilUS-s.ArrivalUS)) // steps that would begin later are dropped
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
	d.callCount += float64(calls)
	d.callTime += float64(float64(calls) * float64(end))
	d.calls = append(d.calls, calls)
	d.tools = append(d.tools, tools)
	d.depth = append(d.depth, depth)
	d.fanOut = append(d.fanOut, max(fanOut, first))
	clear(d.session.longest)
	d.previous = d.session
}

// end closes the current session.
func (d *sessionGraphs) end() {
	if tokens := d.session.tokens - d.previous.tokens; tokens > 0 {
		d.hitRatios = append(d.hitRatios, float64(d.session.cachedInBlocks-d.previous.cachedInBlocks)/float64(tokens))
	}
}

// conversations accumulates statistics of the sessions that requests name.
type conversations struct {
	turns   map[string]int64
	history history
}

func (t *conversations) add(r *stream.Request) {
	if n, seen := t.turns[r.Session]; seen {
		t.turns[r.Session] = n + 1
	} else {
		t.turns[strings.Clone(r.Session)] = 1 // the caller's string may be part of a larger buffer
	}
	t.history.add(child(root, r.Session), r.Prompt, r.ID, r.InputTokens, r.OutputTokens)
}

// sessionStats summarizes sessions; nil without any.
func (d *Describer) sessionStats() *Sessions {
	g, t := &d.graphs, &d.conversations
	if len(g.calls) == 0 && len(t.turns) == 0 {
		return nil
	}
	of := func(values []int64, unit int64) *Distribution { return distribution(slices.Clone(values), unit) }
	s := &Sessions{Workflows: g.workflows, Calls: of(g.calls, 1), Tools: of(g.tools, 1), Depth: of(g.depth, 1),
		FanOut: of(g.fanOut, 1), ThinkS: of(g.thinkUS, 1e6), ToolS: of(g.toolUS, 1e6), SessionHit: g.session.hitRatio(),
		Turns: distribution(slices.Collect(maps.Values(t.turns)), 1), TurnsSessionHit: t.history.hitRatio()}
	if len(g.hitRatios) > 0 {
		s.SessionHitMedian = new(stat.QuantileFloat(slices.Sorted(slices.Values(g.hitRatios)), 50))
	}
	return s
}

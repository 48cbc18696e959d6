package fitness

import (
	"slices"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// Watch follows the outcomes of a run and finds the first gate that cannot hold any more, whatever becomes of the
// other requests. It looks at comparisons of a number with one of these metrics, which may be joined by &&:
//
//   - m.ttft, m.tpot and m.e2e: p50, p90, p95, p99 and max, at most or below a number: too many requests are above it
//   - m.goodput.ratio, at least or above a number: too many requests have missed their targets
//   - m.requests.rejected, timed_out and failed, at most, below or equal to a number: there are too many
//
// Other gates never end a run.
type Watch struct {
	rules   []*watchRule
	targets map[string]stream.Targets
}

// watchRule counts the requests that speak against a gate. One more than most breaks it.
type watchRule struct {
	gate      *Gate
	against   func(o *stream.Outcome) bool
	seen, max int64
}

// Watch returns a watch of a run of a workload, with n requests or fewer, with these classes; nil if no gate can be
// watched.
func (f *Fitness) Watch(n int64, classes []stream.SLOClass) *Watch {
	w := &Watch{targets: map[string]stream.Targets{}}
	for i := range classes {
		w.targets[classes[i].Name] = classes[i].Targets
	}
	for _, g := range f.gates {
		gate := &Gate{Name: g.name, Expr: g.String(), Distance: 1}
		for _, c := range conjuncts(g.Node) {
			if r := w.rule(c, n, f.Weights != nil); r != nil {
				r.gate = gate
				w.rules = append(w.rules, r)
			}
		}
	}
	if w.rules == nil {
		return nil
	}
	return w
}

// conjuncts are the conditions that && joins.
func conjuncts(n *expr.Node) []*expr.Node {
	if n.Op == "&&" {
		return append(conjuncts(n.Args[0]), conjuncts(n.Args[1])...)
	}
	return []*expr.Node{n}
}

// mirrored are the operators with their sides swapped.
var mirrored = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}

// rule returns how a comparison breaks, nil if that is not known.
func (w *Watch) rule(c *expr.Node, n int64, weighted bool) *watchRule {
	if mirrored[c.Op] == "" {
		return nil
	}
	name, limit, op := c.Args[0], c.Args[1], c.Op
	if name.Op == "" && name.Name == "" {
		name, limit, op = limit, name, mirrored[op]
	}
	x, ok := limit.Value.(float64)
	if name.Op != "" || limit.Op != "" || !ok {
		return nil
	}
	above := func(y float64) bool { return y > x }
	if op == "<" {
		above = func(y float64) bool { return y >= x }
	}
	if state := countedState[name.Name]; state != "" && (op == "<" || op == "<=" || op == "==") {
		return &watchRule{against: func(o *stream.Outcome) bool { return o.State == state },
			max: largest(n, func(k int64) bool { return !above(float64(k)) })}
	}
	if name.Name == "m.goodput.ratio" && !weighted && (op == ">" || op == ">=") {
		return &watchRule{against: w.missed, max: largest(n, func(k int64) bool {
			ratio := float64(n-k) / float64(n)
			return ratio > x || op == ">=" && ratio == x
		})}
	}
	latency, percent, ok := strings.Cut(strings.TrimPrefix(name.Name, "m."), ".")
	p, known := watchedPercents[percent]
	if !ok || !known || !slices.Contains(metrics.TargetedLatencies, latency) || op != "<" && op != "<=" {
		return nil
	}
	included := w.included(latency)
	// The percentile lies between two values. This many are as large as the lower one, or larger.
	upper := n - p*(n-1)/100
	return &watchRule{max: upper - 1, against: func(o *stream.Outcome) bool {
		y, ok := metrics.Latency(o, latency)
		return ok && above(y) && included(o.SLOClass)
	}}
}

var (
	countedState = map[string]string{"m.requests.rejected": stream.StateRejected,
		"m.requests.timed_out": stream.StateTimedOut, "m.requests.failed": stream.StateFailed}
	watchedPercents = map[string]int64{"p50": 50, "p90": 90, "p95": 95, "p99": 99, "max": 100}
)

// largest returns the largest k up to n for which the condition holds; it holds below k, too. It is -1 if it never
// does.
func largest(n int64, holds func(k int64) bool) int64 {
	lo, hi := int64(-1), n
	for lo < hi {
		if mid := lo + (hi-lo+1)/2; holds(mid) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// missed reports whether the request has targets and missed one.
func (w *Watch) missed(o *stream.Outcome) bool {
	met := metrics.SLOMet(o, w.targets[o.SLOClass])
	return met != nil && !*met
}

// included returns which classes count for a latency: those with a target for it or, if there is none, all.
func (w *Watch) included(latency string) func(class string) bool {
	var with []string
	for class, t := range w.targets {
		if t.Of(latency) > 0 {
			with = append(with, class)
		}
	}
	return func(class string) bool { return with == nil || slices.Contains(with, class) }
}

// Add counts a request that is final, and returns the gate that it breaks, nil if there is none.
func (w *Watch) Add(o *stream.Outcome) *Gate {
	if o.Retried { // the last attempt counts
		return nil
	}
	for _, r := range w.rules {
		if !r.against(o) {
			continue
		}
		if r.seen++; r.seen > r.max {
			g := *r.gate
			g.Detail = "cannot hold any more"
			return &g
		}
	}
	return nil
}

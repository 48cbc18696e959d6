package attribution

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// LossSource is the fitness that a run loses by one of its numbers.
type LossSource struct {
	// Term is the name of the term or gate of the fitness, Path that of the number in the tree of metrics.
	Term, Path string
	// Lost is in units of fitness. A time up to Limit loses nothing.
	Lost, Limit float64
	// Served: only requests that have the time count.
	Served bool
	// Weights are those of classes in the number, 1 by default; nil without any.
	Weights map[string]float64
}

// SourceLoss is a LossSource with the number of requests that it is divided between, 0 where the number does not
// come from single requests.
type SourceLoss struct {
	LossSource
	Requests int64
}

// attainmentPath is the number by which every miss counts the same.
const attainmentPath = "goodput.ratio"

// minTail is the smallest number of requests that make a percentile.
const minTail = 20

// numberLoss is what requests lose by a number of the tree of metrics: see shares.
type numberLoss struct {
	*Analyzer
	LossSource
	group func(*request) bool
	// number is the name of the number without its group, such as ttft.p99.
	number string
	runMS  float64 // the duration of the run
	found  []share
}

// markFitness divides the losses of the sources between requests and sets their verdicts. It reports false, and changes
// nothing, where misses say the same: all that single requests lose is by the share that met their targets.
func (a *Analyzer) markFitness(l *Loss, sources []LossSource) bool {
	if len(sources) == 0 {
		return false
	}
	var parts []*numberLoss
	isPlain := true
	for _, source := range sources {
		x := a.numberLoss(source)
		n := SourceLoss{LossSource: source}
		if x.found = x.shares(); len(x.found) > 0 {
			isPlain = isPlain && source.Path == attainmentPath && source.Weights == nil
			n.Requests = int64(len(x.found))
		}
		parts, l.Sources = append(parts, x), append(l.Sources, n)
	}
	if isPlain {
		l.Sources = nil
		return false
	}
	for _, r := range a.requests.all() {
		r.verdict.judged, r.verdict.met = false, true
	}
	for n, x := range parts {
		if l.Sources[n].Requests > 0 {
			x.mark(n)
		}
	}
	return true
}

// numberLoss interprets the path of a source.
func (a *Analyzer) numberLoss(source LossSource) *numberLoss {
	x := &numberLoss{Analyzer: a, LossSource: source, runMS: a.runMS(),
		group: func(*request) bool { return true }}
	branch, rest, isGroup := strings.Cut(source.Path, "[")
	if !isGroup {
		x.number = strings.TrimPrefix(source.Path, "targeted.")
		return x
	}
	key, err := strconv.Unquote(strings.Trim(metrics.PathKeys("[" + rest)[0], "[]"))
	labels := map[string]func(*request) int32{"cls": func(r *request) int32 { return r.labels.class },
		"tenants": func(r *request) int32 { return r.labels.tenant },
		"models":  func(r *request) int32 { return r.labels.model }}
	label := labels[branch]
	if err != nil || label == nil {
		return x
	}
	x.group = func(r *request) bool { return a.names.list[label(r)] == key }
	x.number = strings.TrimPrefix(strings.TrimPrefix(source.Path, metrics.SubPath(branch, key)+"."), "targeted.")
	return x
}

// runMS is the time from the first arrival to the last final state in ms.
func (a *Analyzer) runMS() float64 {
	first, last := never, stream.Micros(0)
	for _, r := range a.requests.all() {
		if first == never || r.arrival() < first {
			first = r.arrival()
		}
		last = max(last, r.ended())
	}
	return latencyMS(first, last)
}

// share is the part of a source's loss that a request has, in any unit, and how many ms it was above the time from
// which on requests lose.
type share struct {
	request          int
	weight, excessMS float64
	missed           targetSet
}

// counts reports whether a request is offered in the group.
func (x *numberLoss) counts(i int) bool {
	return !x.requests.at(i).excluded && x.group(x.requests.at(i))
}

// shares are the parts of the requests that lose by the number, nil where it does not come from single requests.
func (x *numberLoss) shares() []share {
	name, statistic, _ := strings.Cut(x.number, ".")
	switch name {
	case "ttft", "tpot", "itl", "e2e", "queue":
		return x.slow(name, statistic)
	case "tail_blowup":
		return x.slow("e2e", "p99")
	case "goodput":
		return x.all(missedCompletion, func(i int) float64 {
			if r := x.requests.at(i); !r.judged || r.met {
				return 0
			} else if w, ok := x.Weights[x.names.list[x.requests.at(i).labels.class]]; ok {
				return w
			}
			return 1
		})
	case "requests", "throughput", "fairness", "admission_rate":
		return x.all(missedCompletion, func(i int) float64 { return x.unserved(i, statistic) })
	case "preemption_rate", "kv":
		if name == "kv" && statistic != "preemptions" {
			return nil
		}
		return x.all(missedTPOT, func(i int) float64 { return float64(x.requests.at(i).preemptions) })
	}
	return nil
}

// all are the requests with a weight.
func (x *numberLoss) all(missed targetSet, weight func(i int) float64) (shares []share) {
	for i := range x.requests.all() {
		if !x.counts(i) {
			continue
		}
		if w := weight(i); w > 0 {
			shares = append(shares, share{i, w, 0, missed})
		}
	}
	return shares
}

// unserved is 1 for a request that did not complete, with that state where the number counts one.
func (x *numberLoss) unserved(i int, state string) float64 {
	at := x.names.list[x.requests.at(i).labels.state]
	isOne := slices.Contains([]string{stream.StateRejected, stream.StateTimedOut, stream.StateFailed,
		stream.StateUnfinished}, state)
	if at == stream.StateCompleted || isOne && at != state || state == "offered" || state == "not_issued" {
		return 0
	}
	return 1
}

// slow are the requests that make a statistic of a latency: of a percentile p those above the percentile 2p - 100, but
// at least minTail and at most three quarters; of a mean those above the fastest tenth, by the ms that they are above
// it. Requests without the latency count as infinite, in a mean as long as the run; where only served ones count, not.
func (x *numberLoss) slow(name, statistic string) (shares []share) {
	of := latencies[name]
	var values []share // excessMS is the latency
	targets := make([]float64, len(x.names.list))
	for n, class := range x.names.list {
		targets[n] = x.classes[class].Targets.Of(name)
	}
	targeted := !x.Served && x.requests.contains(func(r *request) bool {
		return targets[r.labels.class] > 0 && x.group(r)
	})
	for i, r := range x.requests.all() {
		ms, ok := of.ms(x.Analyzer, r)
		switch {
		case !x.counts(i) || targeted && targets[r.labels.class] == 0 || !ok && (x.Served || x.completed(r)):
		case ok:
			values = append(values, share{i, 1, ms, of.missed})
		default:
			values = append(values, share{i, 1, math.Inf(1), missedCompletion})
		}
	}
	slices.SortFunc(values, func(v, w share) int {
		return cmp.Or(cmp.Compare(w.excessMS, v.excessMS), cmp.Compare(v.request, w.request))
	})
	from := x.edge(values, statistic)
	for _, v := range values {
		if v.excessMS <= from {
			break
		}
		if v.excessMS = min(v.excessMS, max(from, x.runMS)) - from; statistic == "mean" {
			v.weight = v.excessMS
		}
		if v.weight > 0 {
			shares = append(shares, v)
		}
	}
	return shares
}

// edge is the latency in ms above which requests make the statistic of values, which are in falling order.
func (x *numberLoss) edge(values []share, statistic string) float64 {
	n := len(values)
	digits, isPercentile := strings.CutPrefix(statistic, "p")
	percent, err := strconv.Atoi(digits)
	tail := float64(n) * 0.9
	switch {
	case statistic == "max":
		tail = 0
	case isPercentile && err == nil:
		tail = min(float64(n)*float64(2*(100-percent))/100, 0.75*float64(n))
	}
	k := max(minTail, int(math.Ceil(tail)))
	if k >= n {
		return x.Limit
	}
	return max(x.Limit, values[k].excessMS)
}

// latencies are the times that numbers are statistics of, in ms. Gaps between tokens are not kept: the mean of a
// request replaces them.
var latencies = map[string]struct {
	ms     func(*Analyzer, *request) (float64, bool)
	missed targetSet
}{
	"ttft": {func(_ *Analyzer, r *request) (float64, bool) {
		return latencyMS(r.arrival(), r.firstToken()), r.firstToken() != never
	}, missedTTFT},
	"queue": {func(_ *Analyzer, r *request) (float64, bool) {
		return latencyMS(r.enqueued(), r.scheduled()), r.scheduled() != never && r.enqueued() != never
	}, missedTTFT},
	"e2e": {func(a *Analyzer, r *request) (float64, bool) {
		return latencyMS(r.arrival(), r.ended()), a.completed(r)
	}, missedE2E},
	"tpot": {tpotOf, missedTPOT}, "itl": {tpotOf, missedTPOT},
}

func tpotOf(a *Analyzer, r *request) (float64, bool) {
	if r.tokens.output <= 1 || !a.completed(r) {
		return 0, false
	}
	return stream.TPOT(int64(r.ended()-r.firstToken()), int64(r.tokens.output)), true
}

// mark adds the loss of source n to the requests that lose by it.
func (x *numberLoss) mark(n int) {
	for i, r := range x.requests.all() {
		r.verdict.judged = r.verdict.judged || x.counts(i)
	}
	sum := 0.0
	for _, s := range x.found {
		sum += s.weight
	}
	for _, s := range x.found {
		r := x.requests.at(s.request)
		v := &r.verdict
		v.met = false
		v.loss += x.Lost * s.weight / sum
		x.lossBySource[r] = append(x.lossBySource[r], sourceShare{n, x.Lost * s.weight / sum})
		v.excessMS = max(v.excessMS, s.excessMS)
		if name, _, _ := strings.Cut(x.number, "."); name == "goodput" {
			x.findMissed(r)
			continue
		}
		v.missed |= s.missed
	}
}

// sourceShare is the loss of a request by a source.
type sourceShare struct {
	source int
	lost   float64
}

// sumSources adds up the loss of requests by source, the largest first.
func (a *Analyzer) sumSources(l *Loss, requests []*request) (all []SourceLoss) {
	lost := make([]SourceLoss, len(l.Sources))
	for _, r := range requests {
		for _, s := range a.lossBySource[r] {
			lost[s.source].Lost += s.lost
			lost[s.source].Requests++
		}
	}
	for i, s := range l.Sources {
		if lost[i].Requests > 0 {
			s.Lost, s.Requests = lost[i].Lost, lost[i].Requests
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(x, y SourceLoss) int { return cmp.Compare(y.Lost, x.Lost) })
	return all
}

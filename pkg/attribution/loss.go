package attribution

import (
	"cmp"
	"slices"

	"blis/pkg/stream"
)

// LossKind is what counts as lost.
type LossKind int

// Kinds of loss.
const (
	LossMisses  LossKind = iota // requests that missed a target
	LossRegret                  // ms of estimated regret of routing decisions
	LossLate                    // requests whose first token came late, or that did not complete
	LossFitness                 // fitness, by the numbers that it reads
)

// lateFactor times the median TTFT is late where no request has targets.
const lateFactor = 5

// Loss is what a run lost.
type Loss struct {
	Kind LossKind
	// Lost of the Judged requests lost something. Total is their loss: missed requests, ms of
	// regret, or fitness.
	Lost, Judged int64
	Total        float64
	// MedianTTFTMS is that of all requests; LossLate only.
	MedianTTFTMS float64
	// Sources are the numbers by which fitness is lost; LossFitness only.
	Sources []SourceLoss
	// LostParts and MetParts are those of the completed requests that lost something, and of those that
	// did not.
	LostParts, MetParts PartMeans
	Missed              MissCounts
	// Dominant is how many lost most in each part.
	Dominant [PartCount]int64
	// Main are the groups that hold 90 % of the loss, the largest first.
	Main []Group
	// ExcessMS is the sum of ms by which requests exceeded the target that they missed most, or
	// the threshold of late, or the sum of their regret.
	ExcessMS float64
}

// PartMeans are the mean ms in each part over some requests, undefined if there are none.
type PartMeans struct {
	Requests int64
	MS       [PartCount]float64
}

// MissCounts are how many requests missed each target and how many did not complete; a request
// may count several times.
type MissCounts struct {
	TTFT, TPOT, E2E, Incomplete int64
	// States are the states in which incomplete requests ended.
	States []Count
}

// Count is a number of something.
type Count struct {
	Name string
	N    int64
}

// Group is the N requests of one class with one dominant part, and their part of Loss.Total.
type Group struct {
	Class string
	Part  Part
	N     int64
	Loss  float64
}

// TooSmall reports whether the loss is too small to look for patterns.
func (l *Loss) TooSmall() bool {
	return l.Lost < MinLost || float64(l.Lost) <= MinLossShare*float64(l.Judged) ||
		l.Kind == LossFitness && l.Total <= MinLossShare
}

// targetSet is a set of missed targets.
type targetSet uint8

const (
	missedTTFT targetSet = 1 << iota
	missedTPOT
	missedE2E
	missedCompletion
)

// findLoss decides what is lost and sets the verdict of each request. sources are what the fitness loses.
func (a *Analyzer) findLoss(sources []LossSource) *Loss {
	l := &Loss{}
	hasTargets := func(r *request) bool { return r.verdict.judged }
	hasRegret := func(r *request) bool { return r.estimate != nil && !r.verdict.excluded }
	switch {
	case a.markFitness(l, sources):
		l.Kind = LossFitness
	case a.requests.contains(hasTargets):
		l.Kind = LossMisses
		a.markMisses()
	case a.requests.contains(hasRegret):
		l.Kind = LossRegret
		for _, r := range a.requests.all() {
			v, ms := &r.verdict, max(0, r.hindsightMS())
			if v.judged = hasRegret(r); v.judged {
				v.met, v.loss, v.excessMS = ms == 0, ms, ms
			}
		}
	default:
		l.Kind = LossLate
		l.MedianTTFTMS = a.markLate()
	}
	a.divide(l)
	return l
}

// completed reports whether r completed.
func (a *Analyzer) completed(r *request) bool {
	return a.names.list[r.labels.state] == stream.StateCompleted
}

// latencyMS is the time between two instants in ms.
func latencyMS(from, to stream.Micros) float64 { return float64(to-from) / 1000 }

// markMisses finds the missed targets of each request.
func (a *Analyzer) markMisses() {
	for _, r := range a.requests.all() {
		if v := &r.verdict; v.judged && !v.met {
			v.loss = 1
			a.findMissed(r)
		}
	}
}

// findMissed finds the targets that a request missed.
func (a *Analyzer) findMissed(r *request) {
	v := &r.verdict
	if !a.completed(r) {
		v.missed |= missedCompletion
		return
	}
	t := a.classes[a.names.list[r.labels.class]].Targets
	ttft, e2e := latencyMS(r.arrival(), r.firstToken()), latencyMS(r.arrival(), r.ended())
	tpot, tokens := 0.0, int64(r.tokens.output)
	if tokens > 1 {
		tpot = stream.TPOT(int64(r.ended()-r.firstToken()), tokens)
	}
	v.exceeds(missedTTFT, ttft, t.TTFTMS, 1)
	v.exceeds(missedTPOT, tpot, t.TPOTMS, float64(tokens-1))
	v.exceeds(missedE2E, e2e, t.E2EMS, 1)
}

// exceeds notes that a target was missed if ms is above the limit; 0 is no limit.
func (v *verdict) exceeds(target targetSet, ms, limit, factor float64) {
	if limit > 0 && ms > limit {
		v.missed |= target
		v.excessMS = max(v.excessMS, (ms-limit)*factor)
	}
}

// markLate finds the late requests and returns the median TTFT in ms.
func (a *Analyzer) markLate() float64 {
	median := a.medianTTFT()
	for _, r := range a.requests.all() {
		v := &r.verdict
		if v.excluded {
			continue
		}
		v.judged = true
		switch ttft := int64(r.firstToken() - r.arrival()); {
		case !a.completed(r):
			v.loss, v.missed = 1, missedCompletion
		case !r.isLate(median.us):
			v.met = true
		default:
			v.loss, v.missed = 1, missedTTFT
			v.excessMS = float64(ttft)/1000 - float64(lateFactor*median.us)/1000
		}
	}
	if !median.known {
		return 0
	}
	return float64(median.us) / 1000
}

// divide finds the dominant part of each loss and adds up l.
func (a *Analyzer) divide(l *Loss) {
	var baselines []baseline // nil until a request lost something
	groups, states := map[Group]*Group{}, make([]int64, len(a.names.list))
	for _, r := range a.requests.all() {
		if !r.verdict.judged {
			continue
		}
		l.Judged++
		if !r.lost() {
			continue
		}
		if baselines == nil {
			baselines = a.baselines()
			for i := range baselines {
				if l.Kind == LossFitness {
					baselines[i].ignoreWaits()
				}
			}
		}
		r.verdict.dominant = a.dominantPart(r, &baselines[r.labels.class])
		if r.verdict.missed&missedCompletion != 0 {
			states[r.labels.state]++
		}
		l.add(r)
		key := Group{Class: a.names.list[r.labels.class], Part: r.verdict.dominant}
		if groups[key] == nil {
			groups[key] = &Group{Class: key.Class, Part: key.Part}
		}
		groups[key].N++
		groups[key].Loss += r.verdict.loss
	}
	l.LostParts, l.MetParts = a.partMeans()
	l.keepMain(groups)
	for n, name := range a.names.list {
		if states[n] > 0 {
			l.Missed.States = append(l.Missed.States, Count{name, states[n]})
		}
	}
}

// dominantPart is where r lost most. b is the baseline of its class.
func (a *Analyzer) dominantPart(r *request, b *baseline) Part {
	switch {
	case r.verdict.missed&missedCompletion == 0:
		return r.largestExcess(b)
	case a.unservable(r):
		return PartLimits
	case a.rejectedByFlow(r):
		return PartFlow
	}
	if state := a.names.list[r.labels.state]; state == stream.StateTimedOut || state == stream.StateUnfinished {
		return r.largestExcess(b)
	}
	return r.endedIn()
}

// add counts one loss.
func (l *Loss) add(r *request) {
	v := &r.verdict
	l.Lost++
	l.Total += v.loss
	l.ExcessMS += v.excessMS
	l.Dominant[v.dominant]++
	for _, c := range []struct {
		target targetSet
		n      *int64
	}{{missedTTFT, &l.Missed.TTFT}, {missedTPOT, &l.Missed.TPOT}, {missedE2E, &l.Missed.E2E},
		{missedCompletion, &l.Missed.Incomplete}} {
		if v.missed&c.target != 0 {
			*c.n++
		}
	}
}

// keepMain keeps the groups that hold 90 % of the loss.
func (l *Loss) keepMain(groups map[Group]*Group) {
	var all []Group
	for _, g := range groups {
		all = append(all, *g)
	}
	slices.SortFunc(all, func(x, y Group) int {
		return cmp.Or(cmp.Compare(y.Loss, x.Loss), cmp.Compare(x.Class, y.Class),
			cmp.Compare(x.Part.String(), y.Part.String()))
	})
	covered := 0.0
	for _, g := range all {
		if covered >= 0.9*l.Total {
			break
		}
		covered += g.Loss
		l.Main = append(l.Main, g)
	}
}

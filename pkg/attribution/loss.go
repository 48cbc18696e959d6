package attribution

import (
	"cmp"
	"math"
	"slices"

	"blis/pkg/stream"
)

// Kinds of loss.
const (
	LossMisses = "misses" // requests that missed a target
	LossRegret = "regret" // ms of estimated regret of routing decisions
	LossLate   = "late"   // requests whose first token came late, or that did not complete
)

// lateFactor times the median TTFT is late where nothing was promised.
const lateFactor = 5

// Loss is what a run lost.
type Loss struct {
	// Kind is one of those above.
	Kind string
	// Lost of Judged requests lost something, Total in all: misses, or ms of regret.
	Lost, Judged int64
	Total        float64
	// MedianTTFTMS is what late is measured by, of LossLate only.
	MedianTTFTMS float64
	// LostMS and MetMS are the means of each of the Parts in ms over completed requests,
	// of those that lost and of those that did not; nil where there are none.
	LostMS, MetMS *[PartCount]float64
	// LostDone and MetDone are over how many.
	LostDone, MetDone int64
	// TTFT, TPOT and E2E are how many missed that target, NotDone how many did not
	// complete; a request may be in several.
	TTFT, TPOT, E2E, NotDone int64
	// States are how requests that did not complete ended, by name.
	States []Count
	// Blame is how many lost most in each of the Parts.
	Blame [PartCount]int64
	// Main are the groups of class and part that hold 90 % of the loss, the largest
	// first.
	Main []Group
	// OverMS is the sum by which requests were above the target that they missed most, or
	// above what is late, or of their regret.
	OverMS float64
}

// Count is how many there are of something.
type Count struct {
	Name string
	N    int64
}

// Group is a part of the loss: the N requests of one class that lost most in one part,
// and what they lost, as Loss.Total counts.
type Group struct {
	Class, Part string
	N           int64
	Loss        float64
}

// Little reports whether there is too little loss to look for patterns in.
func (l *Loss) Little() bool {
	return l.Lost < MinLost || float64(l.Lost) <= MinLossShare*float64(l.Judged)
}

const (
	missedTTFT = 1 << iota
	missedTPOT
	missedE2E
	missedDone
)

// findLoss decides what is lost and marks each row with its part of it.
func (in *Analyzer) findLoss() *Loss {
	l := &Loss{Kind: in.lossKind()}
	switch l.Kind {
	case LossMisses:
		in.markMisses()
	case LossRegret:
		for i := range in.rows {
			r := in.rows[i]
			if r.judged = r.estimated && !r.apart; r.judged {
				r.met, r.loss, r.overMS = r.hindsight <= 0, max(0, r.hindsight), max(0, r.hindsight)
			}
		}
	default:
		l.MedianTTFTMS = in.markLate()
	}
	in.blame(l)
	return l
}

func (in *Analyzer) lossKind() string {
	regret := false
	for i := range in.rows {
		if in.rows[i].judged {
			return LossMisses
		}
		regret = regret || in.rows[i].estimated && !in.rows[i].apart
	}
	if regret {
		return LossRegret
	}
	return LossLate
}

// markMisses marks who missed what.
func (in *Analyzer) markMisses() {
	for i := range in.rows {
		r := in.rows[i]
		if !r.judged || r.met {
			continue
		}
		r.loss = 1
		if in.names.list[r.state] != stream.StateCompleted {
			r.missed = missedDone
			continue
		}
		t := in.classes[in.names.list[r.class]].Targets
		ttft, e2e := ms(r.first-r.arrival), ms(r.ended-r.arrival)
		tpot, tokens := 0.0, int64(r.output)
		if tokens > 1 {
			tpot = stream.TPOT(int64(r.ended-r.first), tokens)
		}
		for _, c := range []struct {
			mark            uint8
			is, target, per float64
		}{{missedTTFT, ttft, t.TTFTMS, 1}, {missedTPOT, tpot, t.TPOTMS, float64(tokens - 1)}, {missedE2E, e2e, t.E2EMS, 1}} {
			if c.target > 0 && c.is > c.target {
				r.missed |= c.mark
				r.overMS = max(r.overMS, (c.is-c.target)*c.per)
			}
		}
	}
}

// markLate marks who was late, and returns the median TTFT in ms.
func (in *Analyzer) markLate() float64 {
	var all []int64
	for i := range in.rows {
		if r := in.rows[i]; r.first != never {
			all = append(all, int64(r.first-r.arrival))
		}
	}
	median := int64(math.MaxInt64 / lateFactor)
	if len(all) > 0 {
		slices.Sort(all)
		median = all[(len(all)-1)/2]
	}
	for i := range in.rows {
		r := in.rows[i]
		if r.apart {
			continue
		}
		done := in.names.list[r.state] == stream.StateCompleted
		r.judged, r.met = true, done && int64(r.first-r.arrival) <= lateFactor*median
		switch {
		case r.met:
		case !done:
			r.loss, r.missed = 1, missedDone
		default:
			r.loss, r.missed = 1, missedTTFT
			r.overMS = ms(r.first-r.arrival) - float64(lateFactor*median)/1000
		}
	}
	if len(all) == 0 {
		return 0
	}
	return float64(median) / 1000
}

func ms(us stream.Micros) float64 { return float64(us) / 1000 }

// spans are the parts in which the time lies that a target is about.
func spans(missed uint8) (in [PartCount]bool) {
	if missed&(missedTTFT|missedE2E) != 0 {
		in[partAdmission], in[partDispatch], in[partQueue], in[partPrefill] = true, true, true, true
	}
	if missed&(missedTPOT|missedE2E) != 0 {
		in[partDecode] = true
	}
	in[partPreempted] = true
	return in
}

// blame finds for each loss the part that it is most in: the one that exceeds most what
// it is in the mean for those of the class that lost nothing, among those that the
// missed target is about. It fills in l.
func (in *Analyzer) blame(l *Loss) {
	usual := in.usual()
	var sums [2][PartCount]int64
	var done [2]int64
	groups := map[[2]int32]*Group{}
	states := map[int32]int64{}
	for i := range in.rows {
		r := in.rows[i]
		if !r.judged {
			continue
		}
		l.Judged++
		s := r.split()
		k := 0
		if r.loss > 0 {
			k = 1
		}
		if in.names.list[r.state] == stream.StateCompleted {
			done[k]++
			for p := range s {
				sums[k][p] += s[p]
			}
		}
		if k == 0 {
			continue
		}
		switch {
		case r.missed&missedDone == 0:
			r.blame = r.worst(usual[r.class])
		case in.impossible(r):
			r.blame = partLimits
			states[r.state]++
		default:
			r.blame = r.reached()
			states[r.state]++
		}
		l.count(r)
		key := [2]int32{r.class, int32(r.blame)}
		if groups[key] == nil {
			groups[key] = &Group{Class: in.names.list[r.class], Part: Parts[r.blame].Name}
		}
		groups[key].N++
		groups[key].Loss += r.loss
	}
	l.LostDone, l.MetDone = done[1], done[0]
	l.LostMS, l.MetMS = means(&sums[1], done[1]), means(&sums[0], done[0])
	l.main(groups)
	for n, name := range in.names.list {
		if c := states[int32(n)]; c > 0 {
			l.States = append(l.States, Count{name, c})
		}
	}
}

// impossible reports whether r was refused on arrival, since it was too long, or since
// nobody serves its model.
func (in *Analyzer) impossible(r *row) bool {
	switch in.names.list[r.reason] {
	case stream.ReasonNoDeployment, stream.ReasonTooLongForModel, stream.ReasonTooLongForCache, stream.ReasonTooLongForBudget:
		return true
	}
	return false
}

// count adds up one loss.
func (l *Loss) count(r *row) {
	l.Lost++
	l.Total += r.loss
	l.OverMS += r.overMS
	l.Blame[r.blame]++
	for _, c := range []struct {
		mark uint8
		n    *int64
	}{{missedTTFT, &l.TTFT}, {missedTPOT, &l.TPOT}, {missedE2E, &l.E2E}, {missedDone, &l.NotDone}} {
		if r.missed&c.mark != 0 {
			*c.n++
		}
	}
}

// main keeps the groups that hold 90 % of the loss.
func (l *Loss) main(groups map[[2]int32]*Group) {
	var all []Group
	for _, g := range groups {
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Loss, a.Loss), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Part, b.Part))
	})
	held := 0.0
	for _, g := range all {
		if held >= 0.9*l.Total {
			break
		}
		held += g.Loss
		l.Main = append(l.Main, g)
	}
}

// usual is the mean of each part, in µs, of those of a class that completed and lost
// nothing; of decode for each token after the first.
type usual struct {
	n, tokens float64
	mean      [PartCount]float64
}

// usual finds it for each class, by the number of its name.
func (in *Analyzer) usual() map[int32]*usual {
	of := map[int32]*usual{}
	for i := range in.rows {
		r := in.rows[i]
		if !r.judged || r.loss > 0 || in.names.list[r.state] != stream.StateCompleted {
			continue
		}
		u := of[r.class]
		if u == nil {
			u = &usual{}
			of[r.class] = u
		}
		u.n++
		u.tokens += float64(r.output - 1)
		for p, x := range r.split() {
			u.mean[p] += float64(x)
		}
	}
	for _, u := range of {
		for p := range u.mean {
			if p != partDecode {
				u.mean[p] /= u.n
			} else if u.tokens > 0 {
				u.mean[p] /= u.tokens
			}
		}
	}
	return of
}

// worst is the part of those that the missed targets are about which exceeds most what
// is usual for a request with such an answer; u may be nil.
func (r *row) worst(u *usual) int8 {
	about, at, most := spans(r.missed), partQueue, math.Inf(-1)
	for p, x := range r.split() {
		over := float64(x)
		switch {
		case u == nil:
		case p == partDecode:
			over -= float64(u.mean[p] * float64(r.output-1))
		default:
			over -= u.mean[p]
		}
		if x > 0 && (about[p] || r.missed == 0) && over > most {
			at, most = p, over
		}
	}
	return int8(at)
}

// means are sums of µs over n as ms, nil if n is 0.
func means(sums *[PartCount]int64, n int64) *[PartCount]float64 {
	if n == 0 {
		return nil
	}
	var m [PartCount]float64
	for p := range sums {
		m[p] = float64(sums[p]) / float64(n) / 1000
	}
	return &m
}

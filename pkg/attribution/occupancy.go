package attribution

import (
	"cmp"
	"slices"

	"blis/pkg/stream"
)

// room is how full a replica was while a request waited there for its first batch, or to
// its end in the queue: means over that time.
type room struct {
	// besides were in its batches, 0 where the request did not wait.
	besides float64
	// held is the part of the replica's blocks that these took; 0 where that is not known.
	// It is an estimate: answers are taken to grow evenly, a prefix that several share
	// counts with the first of them that ran, half a block of each is empty, and who lost
	// its place is taken to have kept its blocks. So it may be above 1.
	held float64
}

// moment is when a request enters a replica's queue, leaves it, enters a batch, has its
// first token, or ends.
type moment struct {
	at   stream.Micros
	what int8
	row  int32
}

const (
	momentWait = iota
	momentLeave
	momentEnter
	momentFirst
	momentEnd
)

// rooms finds it for each request.
func (in *Analyzer) rooms() {
	at := make([][]moment, len(in.plan.replicas))
	for i, r := range in.rows {
		r.room = room{}
		if r.replica == nowhere || r.enqueued == never || r.left() == never {
			continue
		}
		here := &at[r.replica]
		if r.left() > r.enqueued {
			*here = append(*here, moment{r.enqueued, momentWait, int32(i)}, moment{r.left(), momentLeave, int32(i)})
		}
		if r.scheduled == never {
			continue
		}
		*here = append(*here, moment{r.scheduled, momentEnter, int32(i)})
		if r.first != never && r.ended > r.first {
			*here = append(*here, moment{r.first, momentFirst, int32(i)})
		}
		if r.ended != never {
			*here = append(*here, moment{r.ended, momentEnd, int32(i)})
		}
	}
	for n := range at {
		in.roomsAt(int32(n), at[n])
	}
}

// roomsAt is rooms of one replica.
func (in *Analyzer) roomsAt(n int32, all []moment) {
	slices.SortFunc(all, func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.what, b.what), cmp.Compare(a.row, b.row))
	})
	_, blocks := in.plan.room(n)
	size := in.plan.block(n)
	// There are so many requests in batches, so many tokens, and more of them each µs;
	// since the first moment the sums of both over time.
	var running, tokens, growth, batches, held float64
	for k, m := range all {
		if k > 0 {
			passed := float64(m.at - all[k-1].at)
			batches += float64(running * passed)
			held += float64((tokens + float64(growth*passed/2)) * passed)
			tokens += float64(growth * passed)
		}
		r := in.rows[m.row]
		prompt, answer, rate := float64(r.input-r.cached)+float64(size)/2, 0.0, 0.0
		if r.first != never && r.ended > r.first && r.made > 1 {
			answer = float64(r.made - 1)
			rate = answer / float64(r.ended-r.first)
		}
		switch m.what {
		case momentWait:
			r.besides, r.held = batches, held
		case momentLeave:
			waited := float64(r.left() - r.enqueued)
			r.besides = (batches - r.besides) / waited
			r.held = (held - r.held) / waited / float64(max(1, blocks*size))
			if blocks == 0 || size == 0 {
				r.held = 0
			}
		case momentEnter:
			running++
			tokens += prompt
		case momentFirst:
			growth += rate
		case momentEnd:
			running--
			tokens -= prompt + answer
			growth -= rate
		}
	}
}

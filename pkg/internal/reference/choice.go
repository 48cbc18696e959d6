package reference

import (
	"cmp"
	"slices"
)

// numberStream is a stream of random numbers: SplitMix64, as published.
type numberStream uint64

func (s *numberStream) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	x := uint64(*s)
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// forRequest is the stream that starts with the first number of the stream that starts with number
// position of this one, counting from 0. Each number moves the state by the same constant.
func (s numberStream) forRequest(position int) numberStream {
	s += numberStream(uint64(position) * 0x9e3779b97f4a7c15)
	inner := numberStream(s.next())
	return numberStream(inner.next())
}

// below draws an integer from 0 to n-1 by Lemire's method: the high word of the product of a number
// and n. Numbers whose low word is below 2^64 mod n are skipped.
func (s *numberStream) below(n int) int {
	for {
		high, low := product(s.next(), uint64(n))
		if low >= -uint64(n)%uint64(n) {
			return int(high)
		}
	}
}

// product is a·b in two words, for b below 2^32.
func product(a, b uint64) (high, low uint64) {
	upper, lower := (a>>32)*b, (a&0xffffffff)*b
	upper += lower >> 32
	return upper >> 32, upper<<32 | lower&0xffffffff
}

// unit draws a number from 0 to below 1 with 53 bits.
func (s *numberStream) unit() float64 { return float64(s.next()/2048) / 9007199254740992 }

// best chooses one of the replicas with the highest value, by the tie rule. Without a choice, no
// number is drawn.
func (r *router) best(values []float64) int {
	var all []int
	for i, v := range values {
		if v == slices.Max(values) {
			all = append(all, i)
		}
	}
	if r.config.Tie == "least-inflight" {
		fewest := r.inflight[all[0]]
		for _, i := range all {
			fewest = min(fewest, r.inflight[i])
		}
		all = slices.DeleteFunc(all, func(i int) bool { return r.inflight[i] > fewest })
	}
	if len(all) == 1 || r.config.Tie == "first" || r.config.Tie == "" {
		return all[0]
	}
	r.tieDraws++
	// Each replica has a number, whether it is one of the best or not.
	var numbers []uint64
	stream := r.ties.forRequest(r.position)
	last := 0
	for i := range values {
		last = max(last, r.number(i))
	}
	for range last + 1 {
		numbers = append(numbers, stream.next())
	}
	return slices.MinFunc(all, func(a, b int) int { return cmp.Compare(numbers[r.number(a)], numbers[r.number(b)]) })
}

// number is the number of candidate i in the cluster.
func (r *router) number(i int) int {
	if r.among != nil {
		return r.among[i]
	}
	return i
}

// loads are the negative numbers of requests in flight, or of those seen last.
func (r *router) loads(snapshot bool) []float64 {
	var all []float64
	for i, n := range r.inflight {
		if snapshot {
			n = r.queued[i] + r.running[i]
		}
		all = append(all, -float64(n))
	}
	return all
}

// twoChoices takes the less loaded of two different random replicas.
func (r *router) twoChoices(n int) int {
	loads := r.loads(false)
	if n == 1 {
		return r.best(loads)
	}
	stream := r.draws.forRequest(r.position)
	a, b := stream.below(n), stream.below(n-1)
	if b >= a {
		b++
	}
	for i := range loads {
		if i != a && i != b {
			loads[i] -= 1e9
		}
	}
	return r.best(loads)
}

// longestPrefix takes the replica with the longest prefix of a tenth of the prompt or more, unless
// it has too many requests in flight.
func (r *router) longestPrefix(q *request) int {
	hashes := r.hashes(q)
	var shares []float64
	total := 0
	for i := range r.indexes {
		share := 0.0
		if len(hashes) > 0 {
			share = float64(r.known(i, hashes)) / float64(len(hashes))
		}
		shares = append(shares, share)
		total += r.inflight[i]
	}
	if slices.Max(shares) >= 0.1 {
		chosen := r.best(shares)
		if float64(r.inflight[chosen]) <= 2*(float64(total)/float64(len(r.indexes)))+4 {
			return chosen
		}
	}
	return r.best(r.loads(false))
}

// pick chooses by weighted scores.
func (r *router) pick(scores []float64) int {
	sums := []float64{0}
	for i, s := range scores {
		sums = append(sums, sums[i]+s)
	}
	total := sums[len(scores)]
	stream := r.draws.forRequest(r.position)
	switch {
	case r.config.Picker == "random", r.config.Picker == "weighted-random" && total == 0:
		return stream.below(len(scores))
	case r.config.Picker == "weighted-random":
		x := stream.unit() * total
		chosen := 0
		for i, s := range scores {
			if s > 0 && sums[i] <= x {
				chosen = i
			}
		}
		return chosen
	}
	return r.best(scores)
}

package policy

import "math/bits"

// DrawKey identifies a decision to random numbers. A policy's numbers for a decision follow from its
// seed and the key alone. What other requests do, and in which order, does not change them: two runs
// of one workload differ only where their decisions have different candidates or scores.
type DrawKey struct {
	// Request is the request's position in the workload. Repeat distinguishes decisions of one stage about
	// one request.
	Request, Repeat int64
}

// draws are the random numbers of a policy, by decision.
type draws uint64

// of returns the numbers for a decision.
func (d draws) of(k DrawKey) rng { return rng(rng(rng(d).at(k.Request)).at(k.Repeat)) }

// rng is a random number generator: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", 2014).
type rng uint64

// gamma is the difference of successive states.
const gamma = 0x9e3779b97f4a7c15

func (r *rng) next() uint64 {
	x := r.at(0)
	*r += gamma
	return x
}

// at returns the number that is n after the next one.
func (r rng) at(n int64) uint64 {
	z := uint64(r) + gamma*(uint64(n)+1)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// float returns a uniform number from 0 to below 1.
func (r *rng) float() float64 { return float64(r.next()>>11) / (1 << 53) }

// intN returns a uniform integer from 0 to n-1 (Lemire, "Fast random integer generation in an
// interval", 2019).
func (r *rng) intN(n int) int {
	limit := uint64(n)
	hi, lo := bits.Mul64(r.next(), limit)
	if lo < limit {
		for threshold := -limit % limit; lo < threshold; {
			hi, lo = bits.Mul64(r.next(), limit)
		}
	}
	return int(hi)
}

package policy

import "math/bits"

// rng is a policy's own random number generator: SplitMix64 (Steele, Lea and Flood, "Fast
// splittable pseudorandom number generators", 2014). Its whole state is one number, so a clone
// continues with the same numbers.
type rng uint64

func (d *rng) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// float returns a uniform number from 0 to below 1.
func (d *rng) float() float64 { return float64(d.next()>>11) / (1 << 53) }

// intN returns a uniform integer from 0 to n-1 (Lemire, "Fast random integer generation in an
// interval", 2019).
func (d *rng) intN(n int) int {
	limit := uint64(n)
	hi, lo := bits.Mul64(d.next(), limit)
	if lo < limit {
		for threshold := -limit % limit; lo < threshold; {
			hi, lo = bits.Mul64(d.next(), limit)
		}
	}
	return int(hi)
}

package policy

import "math/bits"

// dice are a policy's own random numbers: SplitMix64 (Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators", 2014), whose whole state is
// one number, so that a clone goes on alike.
type dice uint64

func (d *dice) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// intN draws from 0 to n-1, n of which are equally likely (Lemire, "Fast random
// integer generation in an interval", 2019).
func (d *dice) intN(n int) int {
	limit := uint64(n)
	hi, lo := bits.Mul64(d.next(), limit)
	if lo < limit {
		for least := -limit % limit; lo < least; {
			hi, lo = bits.Mul64(d.next(), limit)
		}
	}
	return int(hi)
}

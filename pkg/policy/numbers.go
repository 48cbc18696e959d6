package policy

import (
	"math/bits"
	"slices"
)

// numbers is a set of small numbers that finds the next one in logarithmic time.
// Bit i of the lowest level is number i; bit i of each level above says whether
// word i of the one below has any. There is one word at the top.
type numbers [][]uint64

// set puts number i in or takes it out.
func (s *numbers) set(i int, in bool) {
	for level := 0; ; level++ {
		if level == len(*s) {
			*s = append(*s, nil)
			if level > 0 && (*s)[level-1][0] != 0 { // was the top until now
				(*s)[level] = []uint64{1}
			}
		}
		words := &(*s)[level]
		for i/64 >= len(*words) {
			*words = append(*words, 0)
		}
		if in {
			(*words)[i/64] |= 1 << (i % 64)
		} else {
			(*words)[i/64] &^= 1 << (i % 64)
		}
		if len(*words) == 1 && level == len(*s)-1 {
			return
		}
		in, i = (*words)[i/64] != 0, i/64
	}
}

// from returns the least number in the set that is at least i, -1 if there is
// none.
func (s numbers) from(i int) int {
	for level := 0; level < len(s); level++ {
		if i/64 >= len(s[level]) {
			return -1
		}
		if word := s[level][i/64] >> (i % 64); word != 0 {
			i += bits.TrailingZeros64(word)
			for ; level > 0; level-- { // down to the first below
				i = 64*i + bits.TrailingZeros64(s[level-1][i])
			}
			return i
		}
		i = i/64 + 1
	}
	return -1
}

func (s numbers) clone() numbers {
	c := make(numbers, len(s))
	for i := range s {
		c[i] = slices.Clone(s[i])
	}
	return c
}

package policy

import (
	"math/bits"
	"slices"
)

// intSet is a set of small non-negative integers with next-member lookup in logarithmic time. Bit i
// of the lowest level is member i; bit i of each higher level says whether word i of the level
// below is non-zero. The top level has one word.
type intSet [][]uint64

// set adds or removes member i.
func (s *intSet) set(i int, present bool) {
	for level := 0; ; level++ {
		if level == len(*s) {
			*s = append(*s, nil)
			if level > 0 && (*s)[level-1][0] != 0 { // the former top level
				(*s)[level] = []uint64{1}
			}
		}
		words := &(*s)[level]
		for i/64 >= len(*words) {
			*words = append(*words, 0)
		}
		if present {
			(*words)[i/64] |= 1 << (i % 64)
		} else {
			(*words)[i/64] &^= 1 << (i % 64)
		}
		if len(*words) == 1 && level == len(*s)-1 {
			return
		}
		present, i = (*words)[i/64] != 0, i/64
	}
}

// next returns the smallest member that is at least i, -1 if there is none.
func (s intSet) next(i int) int {
	for level := 0; level < len(s); level++ {
		if i/64 >= len(s[level]) {
			return -1
		}
		if word := s[level][i/64] >> (i % 64); word != 0 {
			i += bits.TrailingZeros64(word)
			for ; level > 0; level-- { // descend to the lowest level
				i = 64*i + bits.TrailingZeros64(s[level-1][i])
			}
			return i
		}
		i = i/64 + 1
	}
	return -1
}

func (s intSet) clone() intSet {
	c := make(intSet, len(s))
	for i := range s {
		c[i] = slices.Clone(s[i])
	}
	return c
}

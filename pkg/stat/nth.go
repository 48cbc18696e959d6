package stat

import "cmp"

// Nth returns the element that sorting the list would put at index n, and reorders the list. It takes linear time on
// average. No element is NaN.
func Nth[T cmp.Ordered](list []T, n int) T {
	for len(list) > 1 {
		// Elements before i are at most the pivot, those after j at least; those in between equal it.
		pivot := list[len(list)/2]
		i, j := 0, len(list)-1
		for i <= j {
			for list[i] < pivot {
				i++
			}
			for pivot < list[j] {
				j--
			}
			if i <= j {
				list[i], list[j] = list[j], list[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case n <= j:
			list = list[:j+1]
		case n >= i:
			list, n = list[i:], n-i
		default:
			return pivot
		}
	}
	return list[n]
}

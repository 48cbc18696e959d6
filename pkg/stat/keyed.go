package stat

// Keyed is a sort key with a tag that identifies its group. One sort of all samples
// then sorts the samples of every group.
type Keyed struct {
	Key uint64
	Tag uint32
}

// SortKeyed sorts samples by key; equal keys keep their order. The result is in samples
// or in scratch, which must have the same length. It is a radix sort by bytes, which
// takes linear time and skips the bytes that all keys share.
func SortKeyed(samples, scratch []Keyed) []Keyed {
	var counts [8][256]int
	for i := range samples {
		for b, key := 0, samples[i].Key; b < 8; b, key = b+1, key>>8 {
			counts[b][key&0xFF]++
		}
	}
	for b := range counts {
		count, shift := &counts[b], 8*b
		if len(samples) == 0 || count[samples[0].Key>>shift&0xFF] == len(samples) {
			continue
		}
		at := 0
		for digit, n := range count {
			count[digit] = at
			at += n
		}
		for i := range samples {
			digit := samples[i].Key >> shift & 0xFF
			scratch[count[digit]] = samples[i]
			count[digit]++
		}
		samples, scratch = scratch, samples
	}
	return samples
}

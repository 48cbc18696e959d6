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
	differ := uint64(0) // the bits in which keys differ
	for i := range samples {
		differ |= samples[i].Key ^ samples[0].Key
	}
	for shift := 0; differ>>shift != 0; shift += 8 {
		if differ>>shift&0xFF == 0 {
			continue
		}
		var count [256]int
		for i := range samples {
			count[samples[i].Key>>shift&0xFF]++
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

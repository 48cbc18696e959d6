package stat

// Tagged is a sort key with a tag that says whose it is, so that the samples
// of many groups are sorted at once and found sorted in each.
type Tagged struct {
	Key uint64
	Tag uint32
}

// SortTagged sorts samples by key; equal keys keep their order. The result is
// in samples or in scratch, which is as long. It takes linear time: a radix
// sort by bytes, which skips those that all keys share.
func SortTagged(samples, scratch []Tagged) []Tagged {
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

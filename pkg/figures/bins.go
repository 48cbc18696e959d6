package figures

import "blis/pkg/stream"

// Times are divided into bins of firstBin·2^k µs from the workload's origin, with the smallest k that gives at most
// maxBins bins: 31.25, 62.5, 125, 250, 500 ms, 1 s, 2 s, …
const (
	firstBin = 15625
	maxBins  = 160
)

// binWidth returns the width of the bins of a run that ends at until, in µs.
func binWidth(until stream.Micros) stream.Micros {
	width := stream.Micros(firstBin)
	for (until+width-1)/width > maxBins {
		width *= 2
	}
	return width
}

// integral is the integral of a value over time, by bins. The bins become wider as time goes on, so that its size is
// bounded. The zero value is empty.
type integral struct {
	width stream.Micros
	// sum is the integral in each bin, time the µs that it covers.
	sum, time []float64
}

// add adds a value between two times.
func (x *integral) add(from, to stream.Micros, value float64) {
	if to <= from {
		return
	}
	if x.width == 0 {
		x.width = firstBin
	}
	for (to+x.width-1)/x.width > maxBins {
		x.widen()
	}
	for bin := from / x.width; bin*x.width < to; bin++ {
		for len(x.sum) <= int(bin) {
			x.sum, x.time = append(x.sum, 0), append(x.time, 0)
		}
		part := float64(min(to, (bin+1)*x.width) - max(from, bin*x.width))
		x.sum[bin] += value * part
		x.time[bin] += part
	}
}

// widen doubles the width of the bins.
func (x *integral) widen() {
	n := (len(x.sum) + 1) / 2
	for i := range n {
		sum, time := x.sum[2*i], x.time[2*i]
		if 2*i+1 < len(x.sum) {
			sum, time = sum+x.sum[2*i+1], time+x.time[2*i+1]
		}
		x.sum[i], x.time[i] = sum, time
	}
	x.sum, x.time, x.width = x.sum[:n], x.time[:n], 2*x.width
}

// to widens the bins to a width, which is not below that of x.
func (x *integral) to(width stream.Micros) {
	for x.width > 0 && x.width < width {
		x.widen()
	}
}

// perBin returns the mean of the value over each whole bin of that width, where times that were not added count as 0.
// The last bin ends at until.
func (x *integral) perBin(width, until stream.Micros) []float64 {
	x.to(width)
	means := make([]float64, (until+width-1)/width)
	for i := range means {
		if i < len(x.sum) {
			means[i] = x.sum[i] / float64(min(until, stream.Micros(i+1)*width)-stream.Micros(i)*width)
		}
	}
	return means
}

// means returns the mean of the value over the times that were added, nil for a bin without any.
func (x *integral) means(width, until stream.Micros) []*float64 {
	x.to(width)
	means := make([]*float64, (until+width-1)/width)
	for i := range means {
		if i < len(x.sum) && x.time[i] > 0 {
			mean := x.sum[i] / x.time[i]
			means[i] = &mean
		}
	}
	return means
}

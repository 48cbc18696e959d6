package workloadstats

import (
	"math"
	"slices"

	"blis/pkg/stat"
)

// lengthsOf describes the lengths of calls.
func lengthsOf(calls []call) Lengths {
	values := make([]int64, len(calls))
	of := func(length func(call) int32) *Distribution {
		for i, c := range calls {
			values[i] = int64(length(c))
		}
		return distribution(values, 1)
	}
	return Lengths{
		Input:       of(func(c call) int32 { return c.input }),
		Output:      of(func(c call) int32 { return c.output }),
		Correlation: correlation(calls),
	}
}

// distribution describes values, which it sorts, in multiples of unit; nil for none.
func distribution(values []int64, unit int64) *Distribution {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	n := float64(len(values))
	mean, squares := sum/n, 0.0
	for _, v := range values {
		from := float64(v) - mean
		squares += float64(from * from)
	}
	d := &Distribution{Count: int64(len(values)), Mean: mean / float64(unit)}
	if mean > 0 {
		d.CV = math.Sqrt(squares/n) / mean
	}
	q := func(percent int64) float64 { return stat.Quantile(values, percent, unit) }
	d.P50, d.P90, d.P95, d.P99, d.Max = q(50), q(90), q(95), q(99), q(100)
	return d
}

// correlation is Pearson's coefficient of input and output; nil if one of them is constant.
func correlation(calls []call) *float64 {
	var input, output float64
	for _, c := range calls {
		input += float64(c.input)
		output += float64(c.output)
	}
	n := float64(len(calls))
	input, output = input/n, output/n
	var both, inputs, outputs float64
	for _, c := range calls {
		x, y := float64(c.input)-input, float64(c.output)-output
		both += float64(x * y)
		inputs += float64(x * x)
		outputs += float64(y * y)
	}
	if !(inputs > 0 && outputs > 0) {
		return nil
	}
	return new(both / math.Sqrt(float64(inputs*outputs)))
}

package sim

import (
	"slices"

	"blis/pkg/capacity"
	"blis/pkg/cluster"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// demand is the load offered to a run: the token counts of its calls and the interval of their
// arrivals. Of a long run it keeps every second, fourth, eighth … call, to bound its memory.
type demand struct {
	models []string
	calls  []call
	// n is the number of calls; every stride-th of them is kept.
	n, stride   int64
	first, last stream.Micros
}

// call has token counts, and the index of its model in models.
type call struct{ input, output, cached, model int32 }

// maxCalls suffice for three significant digits of the load.
const maxCalls = 1 << 14

func (d *demand) add(o *stream.Outcome) {
	if d.n == 0 {
		d.first, d.stride = o.ArrivalUS, 1
	}
	d.first, d.last = min(d.first, o.ArrivalUS), max(d.last, o.ArrivalUS)
	d.n++
	if d.n%d.stride != 0 {
		return
	}
	m := slices.Index(d.models, o.Model)
	if m < 0 {
		m = len(d.models)
		d.models = append(d.models, o.Model)
	}
	d.calls = append(d.calls, call{int32(o.InputTokens), int32(o.OutputTokens), int32(o.CachedTokens), int32(m)})
	if len(d.calls) == maxCalls {
		for i := range maxCalls / 2 {
			d.calls[i] = d.calls[2*i+1]
		}
		d.calls, d.stride = d.calls[:maxCalls/2], 2*d.stride
	}
}

// load is the demand relative to the capacity of the cluster; nil if it is undefined.
func (d *demand) load(c *cluster.Config) (*metrics.Load, error) {
	if d.n == 0 {
		return nil, nil
	}
	// The kept calls at the rate of all.
	us := int64(float64(d.last-d.first) * float64(len(d.calls)) / float64(d.n))
	load, err := capacity.Of(c, func(yield func(capacity.Call) bool) {
		for _, x := range d.calls {
			if !yield(capacity.Call{Model: d.models[x.model], Input: int64(x.input), Output: int64(x.output),
				Cached: int64(x.cached)}) {
				return
			}
		}
	}, us)
	if err != nil || load.Offered == nil {
		return nil, err
	}
	return &metrics.Load{Offered: *load.Offered, Uncached: *load.Uncached}, nil
}

package sim

import (
	"slices"

	"blis/pkg/capacity"
	"blis/pkg/cluster"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// demand is what a run was asked for: the lengths of calls, with what each found
// cached, and between which instants all arrived. Of many calls it keeps every
// second, fourth, eighth, so that a long run does not pay for it.
type demand struct {
	models []string
	calls  []call
	// n calls were there; every stride-th of them is kept.
	n, stride   int64
	first, last stream.Micros
}

// call has lengths in tokens, and the number of its model among models.
type call struct{ input, output, cached, model int32 }

// mostCalls are enough for the load's third digit.
const mostCalls = 1 << 14

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
	if len(d.calls) == mostCalls {
		for i := range mostCalls / 2 {
			d.calls[i] = d.calls[2*i+1]
		}
		d.calls, d.stride = d.calls[:mostCalls/2], 2*d.stride
	}
}

// load is what that is of the cluster's capacity, nil where it is not defined.
func (d *demand) load(c *cluster.Config) (*metrics.Load, error) {
	if d.n == 0 {
		return nil, nil
	}
	// As many calls as are kept, at the rate of all.
	us := int64(float64(d.last-d.first) * float64(len(d.calls)) / float64(d.n))
	l, err := capacity.Of(c, func(yield func(capacity.Call) bool) {
		for _, x := range d.calls {
			if !yield(capacity.Call{Model: d.models[x.model], Input: int64(x.input), Output: int64(x.output), Cached: int64(x.cached)}) {
				return
			}
		}
	}, us)
	if err != nil || l.Offered == nil {
		return nil, err
	}
	return &metrics.Load{Offered: *l.Offered, Uncached: *l.Uncached}, nil
}

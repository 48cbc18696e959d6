package policy

import "slices"

// blockReplicas is the number of replicas in a block of Extremes. Fewer than minReplicas have none: to look at all of
// them is faster.
const (
	blockReplicas = 32
	minReplicas   = 128
)

// Extremes knows the lowest and highest loads in blocks of replicas, so that a router of many replicas need not look at
// each: it skips the blocks whose best replica would be no choice.
type Extremes struct {
	replicas []Replica
	blocks   []extreme
	changed  []bool // by block
	tied     []int32
	top      []rated
}

// rated is a replica with its value.
type rated struct {
	value float64
	index int32
}

// before reports whether x is better than y: it has the higher value, or the same one and the lower index.
func (x rated) before(y rated) bool {
	return x.value > y.value || x.value == y.value && x.index < y.index
}

// extreme has the lowest and the highest value of each load (Inflight, QueueDepth, Running, KVUtil) in a block, and no
// match with any prompt.
type extreme struct{ low, high Replica }

// NewExtremes returns the extremes of all replicas, nil if there are too few. It keeps the slice.
func NewExtremes(replicas []Replica) *Extremes {
	if len(replicas) < minReplicas {
		return nil
	}
	n := (len(replicas) + blockReplicas - 1) / blockReplicas
	x := &Extremes{replicas: replicas, blocks: make([]extreme, n), changed: make([]bool, n)}
	for b := range x.changed {
		x.changed[b] = true
	}
	return x
}

// Changed must be called when a load of a replica may have changed. x may be nil; replicas that are not in its slice
// do not matter.
func (x *Extremes) Changed(replica int32) {
	if x != nil && int(replica) < len(x.replicas) {
		x.changed[replica/blockReplicas] = true
	}
}

// extremes returns the extremes of the candidates, nil if all candidates must be looked at: they are not all replicas,
// or all are traced.
func (v *View) extremes() *Extremes {
	x := v.Extremes
	if x == nil || len(v.Replicas) != len(x.replicas) || &v.Replicas[0] != &x.replicas[0] ||
		v.Trace != nil && v.Trace.Most == 0 {
		return nil
	}
	for b, changed := range x.changed {
		if changed {
			x.changed[b] = false
			x.blocks[b] = extremeOf(x.block(b))
		}
	}
	return x
}

func (x *Extremes) block(b int) []Replica {
	return x.replicas[b*blockReplicas : min((b+1)*blockReplicas, len(x.replicas))]
}

func extremeOf(replicas []Replica) extreme {
	e := extreme{Replica{Inflight: replicas[0].Inflight, Snapshot: replicas[0].Snapshot},
		Replica{Inflight: replicas[0].Inflight, Snapshot: replicas[0].Snapshot}}
	for i := range replicas {
		e.include(&replicas[i], &replicas[i])
	}
	return e
}

// include widens e to a range of values.
func (e *extreme) include(low, high *Replica) {
	e.low.Inflight, e.high.Inflight = min(e.low.Inflight, low.Inflight), max(e.high.Inflight, high.Inflight)
	e.low.QueueDepth, e.high.QueueDepth = min(e.low.QueueDepth, low.QueueDepth), max(e.high.QueueDepth, high.QueueDepth)
	e.low.Running, e.high.Running = min(e.low.Running, low.Running), max(e.high.Running, high.Running)
	e.low.KVUtil, e.high.KVUtil = min(e.low.KVUtil, low.KVUtil), max(e.high.KVUtil, high.KVUtil)
}

// all returns the extremes of all replicas.
func (x *Extremes) all() extreme {
	e := x.blocks[0]
	for b := range x.blocks {
		e.include(&x.blocks[b].low, &x.blocks[b].high)
	}
	return e
}

// highest returns the highest value of all replicas, and those that have it, in no order. The value may not rise with
// any load; replicas that match the prompt, if it depends on that, are given.
func (x *Extremes) highest(matched []int32, value func(*Replica) float64) (best float64, tied []int32) {
	tied = x.tied[:0]
	consider := func(i int, value float64) {
		if len(tied) > 0 && value > best {
			tied = tied[:0]
		}
		if len(tied) == 0 || value == best {
			best, tied = value, append(tied, int32(i))
		}
	}
	for _, i := range matched {
		consider(int(i), value(&x.replicas[i]))
	}
	for b := range x.blocks {
		bound := value(&x.blocks[b].low)
		if len(tied) > 0 && bound < best {
			continue
		}
		equal := bound == value(&x.blocks[b].high)
		for i := range x.block(b) {
			at := b*blockReplicas + i
			switch r := &x.replicas[at]; {
			case len(matched) > 0 && r.Matched > 0:
			case equal:
				consider(at, bound)
			default:
				consider(at, value(r))
			}
		}
	}
	x.tied = tied
	return best, tied
}

// best returns the n replicas with the highest values, the highest first, and of equal ones those with the lowest
// indexes first. Conditions are those of highest, which found tied.
func (x *Extremes) best(n int, tied, matched []int32, value func(*Replica) float64) []int32 {
	top := x.top[:0]
	consider := func(y rated) {
		if len(top) == n {
			if top[n-1].before(y) {
				return
			}
			top = top[:n-1]
		}
		k := len(top)
		for k > 0 && y.before(top[k-1]) {
			k--
		}
		top = slices.Insert(top, k, y)
	}
	switch {
	case len(tied) >= n:
		for _, i := range tied {
			consider(rated{0, i})
		}
	default:
		for _, i := range matched {
			consider(rated{value(&x.replicas[i]), i})
		}
		for b := range x.blocks {
			// At best, the first replica of the block has all its lowest loads.
			if len(top) == n && top[n-1].before(rated{value(&x.blocks[b].low), int32(b * blockReplicas)}) {
				continue
			}
			for i := range x.block(b) {
				at := int32(b*blockReplicas + i)
				if r := &x.replicas[at]; len(matched) == 0 || r.Matched == 0 {
					consider(rated{value(r), at})
				}
			}
		}
	}
	x.top, x.tied = top, x.tied[:0]
	for _, y := range top {
		x.tied = append(x.tied, y.index)
	}
	return x.tied
}

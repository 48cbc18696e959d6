package policy

import (
	"cmp"
	"math"
	"slices"
)

// FlowConfig says in which order requests leave a Flow.
type FlowConfig struct {
	// Order is fifo, priority (highest first) or deadline (earliest first), or an ordering policy of
	// llm-d.
	Order string
	// Fairness is none, or round-robin: tenants take turns, each in Order; or a fairness policy of
	// llm-d.
	Fairness string
	// Bands: no request leaves before those of a higher priority.
	Bands bool
	// TTLUS is how long a request may wait, 0 without a limit.
	TTLUS int64
}

// Choices of FlowConfig. Those with llm-d's names follow llm-d-router v0.10.0
// (pkg/epp/framework/plugins/flowcontrol): requests of a tenant are a flow. fcfs-ordering-policy and
// global-strict-fairness-policy are fifo and none. edf-ordering-policy takes the request first that would time
// out first, slo-deadline-ordering-policy the one whose TTFT target ends first.
// round-robin-fairness-policy goes through the tenants by name, and starts again at the first once
// nothing waits; round-robin goes through them in order of their first requests.
var (
	FlowOrders = []string{"fifo", "priority", "deadline", orderFCFS, orderEDF, orderSLODeadline}
	Fairnesses = []string{"none", "round-robin", fairnessGlobal, fairnessRoundRobin}
)

const (
	orderFCFS          = "fcfs-ordering-policy"
	orderEDF           = "edf-ordering-policy"
	orderSLODeadline   = "slo-deadline-ordering-policy"
	fairnessGlobal     = "global-strict-fairness-policy"
	fairnessRoundRobin = "round-robin-fairness-policy"
)

// Flow is the queue of requests in front of routing.
type Flow struct {
	config FlowConfig
	// bands are in order of priority, highest first. Without priority bands there is one.
	bands    []band
	length   int
	arrivals int64
}

// band has the requests of one priority.
type band struct {
	priority float64
	// queues holds one queue, or one for each tenant, in order of their first requests or by name;
	// queueOf is a tenant's queue index plus one, 0 for none.
	queues    []tenantQueue
	tenants   []string // by queue, if these are by name
	queueOf   []int32
	nonEmpty  intSet // the queues in which a request waits
	nextQueue int    // where the search for the next request starts
	length    int
}

// tenantQueue is a binary heap of waiting requests.
type tenantQueue []waiter

type waiter struct {
	slot int32
	key  float64 // lower is sooner
	rank int64   // order of arrival
}

// NewFlow returns an empty queue.
func NewFlow(c FlowConfig) *Flow { return &Flow{config: c} }

// Len returns how many requests wait.
func (f *Flow) Len() int { return f.length }

// Push adds the request in slot, at the present time.
func (f *Flow) Push(slot int32, r *Request, nowUS int64) {
	w := waiter{slot: slot, rank: f.arrivals, key: f.key(r, nowUS)}
	f.arrivals++
	f.length++
	b := f.band(r.Priority)
	i := b.queueIndex(r, f.config.Fairness)
	q := &b.queues[i]
	*q = append(*q, w)
	q.siftUp(len(*q) - 1)
	b.nonEmpty.set(i, true)
	b.length++
}

// key returns the position of a request among those of its queue.
func (f *Flow) key(r *Request, nowUS int64) float64 {
	deadline := math.Inf(1)
	if r.DeadlineUS >= 0 {
		deadline = float64(r.DeadlineUS)
	}
	switch f.config.Order {
	case "priority":
		return -r.Priority
	case "deadline":
		return deadline
	case orderEDF:
		if f.config.TTLUS > 0 {
			deadline = min(deadline, float64(nowUS+f.config.TTLUS))
		}
		return deadline
	case orderSLODeadline:
		if r.TTFTTargetMS <= 0 {
			return math.Inf(1)
		}
		return float64(r.ArrivalUS) + float64(1000*r.TTFTTargetMS)
	}
	return 0
}

// band returns the band of a priority, which it creates if needed.
func (f *Flow) band(priority float64) *band {
	if !f.config.Bands {
		priority = 0
	}
	i, found := slices.BinarySearchFunc(f.bands, priority,
		func(b band, p float64) int { return cmp.Compare(p, b.priority) })
	if !found {
		f.bands = slices.Insert(f.bands, i, band{priority: priority})
	}
	return &f.bands[i]
}

// queueIndex returns the index of the queue of a request's tenant, which it creates if needed.
func (b *band) queueIndex(r *Request, fairness string) int {
	tenant := r.TenantID
	if fairness != "round-robin" && fairness != fairnessRoundRobin {
		tenant = 0
	}
	for int(tenant) >= len(b.queueOf) {
		b.queueOf = append(b.queueOf, 0)
	}
	if b.queueOf[tenant] == 0 {
		at := len(b.queues)
		if fairness == fairnessRoundRobin {
			at, _ = slices.BinarySearch(b.tenants, r.Tenant)
			b.tenants = slices.Insert(b.tenants, at, r.Tenant)
		}
		b.insertQueue(at)
		b.queueOf[tenant] = int32(at) + 1
	}
	return int(b.queueOf[tenant]) - 1
}

// insertQueue adds an empty queue at an index, and moves those from there on.
func (b *band) insertQueue(at int) {
	b.queues = slices.Insert(b.queues, at, nil)
	if at == len(b.queues)-1 {
		return
	}
	for i, k := range b.queueOf {
		if k > int32(at) {
			b.queueOf[i]++
		}
	}
	if b.nextQueue > at {
		b.nextQueue++
	}
	for i := len(b.queues) - 1; i >= at; i-- {
		b.nonEmpty.set(i, len(b.queues[i]) > 0)
	}
}

// Peek returns the slot of the request that would leave next if all bands were open; there must be one.
func (f *Flow) Peek() int32 {
	b := &f.bands[slices.IndexFunc(f.bands, func(b band) bool { return b.length > 0 })]
	return b.queues[b.nextIndex()][0].slot
}

// Pop removes and returns the request that leaves next: of the highest band in which one waits, if
// neither that band nor a higher one is closed. ok is false if one is.
func (f *Flow) Pop(g *Gate, saturation float64) (slot int32, ok bool) {
	limits := g.limits(saturation, f.bands)
	for k := range f.bands {
		b := &f.bands[k]
		if saturation >= limits[k] {
			return 0, false
		}
		if b.length == 0 {
			continue
		}
		i := b.nextIndex()
		slot = b.queues[i][0].slot
		b.nextQueue = i + 1
		f.remove(b, i, 0)
		return slot, true
	}
	return 0, false
}

// nextIndex returns the first non-empty queue from nextQueue on, wrapping around.
func (b *band) nextIndex() int {
	i := b.nonEmpty.next(b.nextQueue)
	if i < 0 {
		i = b.nonEmpty.next(0)
	}
	if i < 0 {
		panic("policy: no request waits")
	}
	return i
}

// Remove removes the request in slot.
func (f *Flow) Remove(slot int32, r *Request) {
	b := f.band(r.Priority)
	i := b.queueIndex(r, f.config.Fairness)
	if at := slices.IndexFunc(b.queues[i], func(w waiter) bool { return w.slot == slot }); at >= 0 {
		f.remove(b, i, at)
	}
}

// remove removes entry at of queue i of a band.
func (f *Flow) remove(b *band, i, at int) {
	b.queues[i].remove(at)
	b.length--
	f.length--
	b.nonEmpty.set(i, len(b.queues[i]) > 0)
	if b.length == 0 && f.config.Fairness == fairnessRoundRobin {
		b.nextQueue = 0
	}
}

// Clone returns an independent copy of the queue.
func (f *Flow) Clone() *Flow {
	c := *f
	c.bands = slices.Clone(f.bands)
	for k := range c.bands {
		b := &c.bands[k]
		b.queues, b.tenants = slices.Clone(b.queues), slices.Clone(b.tenants)
		b.queueOf, b.nonEmpty = slices.Clone(b.queueOf), b.nonEmpty.clone()
		for i := range b.queues {
			b.queues[i] = slices.Clone(b.queues[i])
		}
	}
	return &c
}

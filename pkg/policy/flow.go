package policy

import (
	"math"
	"slices"
)

// FlowNeeds is what flow control reads: the inputs of saturation, and the tenant.
const FlowNeeds = NeedQueueDepth | NeedKVUtil | NeedTenant

// Flow is the queue of requests in front of routing.
type Flow struct {
	order string
	fair  bool
	// queues holds one queue, or one for each tenant in order of their first requests; queueOf is a
	// tenant's queue index plus one, 0 for none.
	queues    []tenantQueue
	queueOf   []int32
	nonEmpty  intSet // the queues in which a request waits
	nextQueue int    // where the search for the next request starts
	length    int
	arrivals  int64
}

// tenantQueue is a binary heap of waiting requests.
type tenantQueue []waiter

type waiter struct {
	slot int32
	key  float64 // lower is sooner
	rank int64   // order of arrival
}

// NewFlow returns an empty queue. order is fifo, priority (highest first) or deadline (earliest
// first); fair takes tenants in turn.
func NewFlow(order string, fair bool) *Flow { return &Flow{order: order, fair: fair} }

// Len returns how many requests wait.
func (f *Flow) Len() int { return f.length }

// Push adds the request in slot.
func (f *Flow) Push(slot int32, r *Request) {
	w := waiter{slot: slot, rank: f.arrivals}
	f.arrivals++
	switch {
	case f.order == "priority":
		w.key = -r.Priority
	case f.order == "deadline" && r.DeadlineUS >= 0:
		w.key = float64(r.DeadlineUS)
	case f.order == "deadline":
		w.key = math.Inf(1)
	}
	f.length++
	i := f.queueIndex(r.TenantID)
	q := &f.queues[i]
	*q = append(*q, w)
	q.siftUp(len(*q) - 1)
	f.nonEmpty.set(i, true)
}

// queueIndex returns the index of a tenant's queue, which it creates if needed.
func (f *Flow) queueIndex(tenant int32) int {
	if !f.fair {
		tenant = 0
	}
	for int(tenant) >= len(f.queueOf) {
		f.queueOf = append(f.queueOf, 0)
	}
	if f.queueOf[tenant] == 0 {
		f.queues = append(f.queues, nil)
		f.queueOf[tenant] = int32(len(f.queues))
	}
	return int(f.queueOf[tenant]) - 1
}

// First returns the slot of the request that leaves next; there must be one.
func (f *Flow) First() int32 { return f.queues[f.nextIndex()][0].slot }

// Pop removes the request that First returns.
func (f *Flow) Pop() {
	i := f.nextIndex()
	f.remove(i, 0)
	f.nextQueue = i + 1
}

// nextIndex returns the first non-empty queue from nextQueue on, wrapping around.
func (f *Flow) nextIndex() int {
	i := f.nonEmpty.next(f.nextQueue)
	if i < 0 {
		i = f.nonEmpty.next(0)
	}
	if i < 0 {
		panic("policy: no request waits")
	}
	return i
}

// Remove removes the request in slot, which is the tenant's.
func (f *Flow) Remove(slot, tenant int32) {
	i := f.queueIndex(tenant)
	for at := range f.queues[i] {
		if f.queues[i][at].slot == slot {
			f.remove(i, at)
			return
		}
	}
}

// remove removes entry at of queue i.
func (f *Flow) remove(i, at int) {
	f.queues[i].remove(at)
	f.length--
	f.nonEmpty.set(i, len(f.queues[i]) > 0)
}

func (q tenantQueue) less(i, k int) bool {
	return q[i].key < q[k].key || q[i].key == q[k].key && q[i].rank < q[k].rank
}

func (q tenantQueue) siftUp(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q.less(i, parent) {
			return
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
}

func (q tenantQueue) siftDown(i int) {
	for {
		first := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(q); k++ {
			if q.less(k, first) {
				first = k
			}
		}
		if first == i {
			return
		}
		q[i], q[first] = q[first], q[i]
		i = first
	}
}

func (q *tenantQueue) remove(i int) {
	last := len(*q) - 1
	(*q)[i] = (*q)[last]
	*q = (*q)[:last]
	if i < last {
		q.siftDown(i)
		q.siftUp(i)
	}
}

// Clone returns an independent copy of the queue.
func (f *Flow) Clone() *Flow {
	c := *f
	c.queues, c.queueOf, c.nonEmpty = slices.Clone(f.queues), slices.Clone(f.queueOf), f.nonEmpty.clone()
	for i := range c.queues {
		c.queues[i] = slices.Clone(c.queues[i])
	}
	return &c
}

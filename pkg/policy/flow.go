package policy

import "math"

// FlowNeeds is what flow control looks at: what saturation is made of, and whose
// turn it is.
const FlowNeeds = NeedQueueDepth | NeedKVUtil | NeedTenant

// Flow is a queue of requests in front of routing.
type Flow struct {
	order string
	fair  bool
	// lines are one for all, or one for each tenant, in the order in which they
	// first came; lineOf is one more than the number of a tenant's, 0 for none.
	lines   []line
	lineOf  []int32
	waiting numbers // the lines in which somebody waits
	turn    int     // the line that is asked next
	length  int
	entered int64
}

// line is a binary heap of the requests of one line.
type line []waiter

type waiter struct {
	slot int32
	key  float64 // lower is sooner
	rank int64   // of entry
}

// NewFlow returns an empty queue. order is fifo, priority (highest first) or
// deadline (earliest first); fair ones take tenants in turn.
func NewFlow(order string, fair bool) *Flow { return &Flow{order: order, fair: fair} }

// Len returns how many wait.
func (f *Flow) Len() int { return f.length }

// Push lets the request in slot wait.
func (f *Flow) Push(slot int32, r *Request) {
	w := waiter{slot: slot, rank: f.entered}
	f.entered++
	switch {
	case f.order == "priority":
		w.key = -r.Priority
	case f.order == "deadline" && r.DeadlineUS >= 0:
		w.key = float64(r.DeadlineUS)
	case f.order == "deadline":
		w.key = math.Inf(1)
	}
	f.length++
	i := f.line(r.TenantID)
	l := &f.lines[i]
	*l = append(*l, w)
	l.up(len(*l) - 1)
	f.waiting.set(i, true)
}

// line returns the number of a tenant's line.
func (f *Flow) line(tenant int32) int {
	if !f.fair {
		tenant = 0
	}
	for int(tenant) >= len(f.lineOf) {
		f.lineOf = append(f.lineOf, 0)
	}
	if f.lineOf[tenant] == 0 {
		f.lines = append(f.lines, nil)
		f.lineOf[tenant] = int32(len(f.lines))
	}
	return int(f.lineOf[tenant]) - 1
}

// First returns the request that leaves next; there must be one.
func (f *Flow) First() int32 { return f.lines[f.next()][0].slot }

// Pop takes it out.
func (f *Flow) Pop() {
	i := f.next()
	f.remove(i, 0)
	f.turn = i + 1
}

// next is the number of the line whose turn it is: the first from turn on, or
// else the first of all, in which somebody waits.
func (f *Flow) next() int {
	i := f.waiting.from(f.turn)
	if i < 0 {
		i = f.waiting.from(0)
	}
	if i < 0 {
		panic("policy: nobody waits")
	}
	return i
}

// Remove takes the request in slot out, whose tenant it is told.
func (f *Flow) Remove(slot, tenant int32) {
	i := f.line(tenant)
	for at := range f.lines[i] {
		if f.lines[i][at].slot == slot {
			f.remove(i, at)
			return
		}
	}
}

// remove takes the request at a place of line i out.
func (f *Flow) remove(i, at int) {
	f.lines[i].remove(at)
	f.length--
	f.waiting.set(i, len(f.lines[i]) > 0)
}

func (l line) before(i, k int) bool {
	return l[i].key < l[k].key || l[i].key == l[k].key && l[i].rank < l[k].rank
}

func (l line) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !l.before(i, parent) {
			return
		}
		l[i], l[parent] = l[parent], l[i]
		i = parent
	}
}

func (l line) down(i int) {
	for {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(l); k++ {
			if l.before(k, least) {
				least = k
			}
		}
		if least == i {
			return
		}
		l[i], l[least] = l[least], l[i]
		i = least
	}
}

func (l *line) remove(i int) {
	last := len(*l) - 1
	(*l)[i] = (*l)[last]
	*l = (*l)[:last]
	if i < last {
		l.down(i)
		l.up(i)
	}
}

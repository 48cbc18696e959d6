package policy

import "math"

// Flow is a queue of requests in front of routing.
type Flow struct {
	order string
	fair  bool
	// lines are one for all, or one for each tenant, in the order in which they
	// first came.
	lines   []line
	tenants []int32
	turn    int // the line that is asked next
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
	l := &f.lines[f.line(r.TenantID)]
	*l = append(*l, w)
	l.up(len(*l) - 1)
}

// line returns the number of a tenant's line.
func (f *Flow) line(tenant int32) int {
	if !f.fair {
		tenant = 0
	}
	for i, t := range f.tenants {
		if t == tenant {
			return i
		}
	}
	f.tenants, f.lines = append(f.tenants, tenant), append(f.lines, nil)
	return len(f.lines) - 1
}

// First returns the request that leaves next; there must be one.
func (f *Flow) First() int32 { return f.lines[f.next()][0].slot }

// Pop takes it out.
func (f *Flow) Pop() {
	i := f.next()
	f.lines[i].remove(0)
	f.length--
	f.turn = i + 1
}

// next is the number of the line whose turn it is.
func (f *Flow) next() int {
	for i := range f.lines {
		if k := (f.turn + i) % len(f.lines); len(f.lines[k]) > 0 {
			return k
		}
	}
	panic("policy: nobody waits")
}

// Remove takes the request in slot out, whose tenant it is told.
func (f *Flow) Remove(slot, tenant int32) {
	l := &f.lines[f.line(tenant)]
	for i := range *l {
		if (*l)[i].slot == slot {
			l.remove(i)
			f.length--
			return
		}
	}
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

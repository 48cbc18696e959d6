package engine

// doneAt is the tick at which a steady sequence has all its output.
type doneAt struct {
	tick, order int64
	seq         int32
}

func (a doneAt) before(b doneAt) bool {
	return a.tick < b.tick || a.tick == b.tick && a.order < b.order
}

// doneHeap is a binary heap of steady sequences, the first to be done on top,
// of several at one tick the one admitted first.
type doneHeap []doneAt

func (h *doneHeap) push(d doneAt) {
	*h = append(*h, d)
	a, i := *h, len(*h)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !d.before(a[parent]) {
			break
		}
		a[i] = a[parent]
		i = parent
	}
	a[i] = d
}

func (h *doneHeap) pop() doneAt {
	a := *h
	top, last := a[0], a[len(a)-1]
	*h = a[:len(a)-1]
	if len(*h) > 0 {
		h.sink(0, last)
	}
	return top
}

// init restores the heap's order.
func (h doneHeap) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i, h[i])
	}
}

func (h doneHeap) sink(i int, d doneAt) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(d) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = d
}

package engine

// The wait queue is a binary heap of those who wait: the lowest order first,
// among equals by rank, which counts up for those that enter and down for those
// that come back from being preempted, so that these are first.

// waiter is a place in the wait queue.
type waiter struct {
	order float64
	rank  int64
	seq   int32
}

func (w *waiter) before(v *waiter) bool {
	return w.order < v.order || w.order == v.order && w.rank < v.rank
}

// waitQueue keeps for each sequence, by its place in the heap, where it waits.
type waitQueue struct {
	heap        []waiter
	last, first int64 // ranks given
}

// Enqueue puts a request into the wait queue and returns the number by which
// Abort knows it.
func (e *Engine) Enqueue(r Request) int32 {
	var s int32
	if last := len(e.spare) - 1; last >= 0 {
		s = e.spare[last]
		e.spare = e.spare[:last]
	} else {
		s = int32(len(e.seqs))
		e.seqs = append(e.seqs, sequence{})
	}
	e.seqs[s] = sequence{tag: r.Tag, kv: e.cache.Open(r.Path), input: int32(r.Input), output: int32(r.Output), order: r.Order}
	e.wait.last++
	e.push(waiter{r.Order, e.wait.last, s})
	return s
}

// putBack puts a preempted sequence before its equals in the wait queue.
func (e *Engine) putBack(s int32) {
	e.wait.first--
	e.push(waiter{e.seqs[s].order, e.wait.first, s})
}

func (e *Engine) push(w waiter) {
	q := &e.wait
	q.heap = append(q.heap, w)
	e.rise(len(q.heap)-1, w)
	e.stats.PeakWaiting = max(e.stats.PeakWaiting, len(q.heap))
}

// unqueue takes a sequence out, wherever it is.
func (e *Engine) unqueue(s int32) {
	q := &e.wait
	i := int(e.seqs[s].place)
	last := len(q.heap) - 1
	w := q.heap[last]
	q.heap = q.heap[:last]
	if i == last {
		return
	}
	if i > 0 && w.before(&q.heap[(i-1)/2]) {
		e.rise(i, w)
	} else {
		e.sink(i, w)
	}
}

// rise puts w at place i, which is free, or higher.
func (e *Engine) rise(i int, w waiter) {
	h := e.wait.heap
	for i > 0 {
		parent := (i - 1) / 2
		if !w.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		e.seqs[h[i].seq].place = int32(i)
		i = parent
	}
	h[i] = w
	e.seqs[w.seq].place = int32(i)
}

// sink puts w at place i, which is free, or lower.
func (e *Engine) sink(i int, w waiter) {
	h := e.wait.heap
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&w) {
			break
		}
		h[i] = h[child]
		e.seqs[h[i].seq].place = int32(i)
		i = child
	}
	h[i] = w
	e.seqs[w.seq].place = int32(i)
}

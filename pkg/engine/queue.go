package engine

import "blis/pkg/tier"

// The wait queue is a binary heap, lowest order first and, among equals, lowest rank first. Ranks
// count up for requests that enter and down for preempted ones that return, which are therefore
// first.

// waiter is an entry of the wait queue.
type waiter struct {
	order float64
	rank  int64
	seq   int32
}

func (w *waiter) before(v *waiter) bool {
	return w.order < v.order || w.order == v.order && w.rank < v.rank
}

// waitQueue is the heap; sequence.heapIndex is the index of a sequence in it.
type waitQueue struct {
	heap        []waiter
	last, first int64 // ranks assigned
}

// Enqueue adds a request to the wait queue and returns the number that Abort takes.
func (e *Engine) Enqueue(r Request) int32 {
	var s int32
	if last := len(e.spare) - 1; last >= 0 {
		s = e.spare[last]
		e.spare = e.spare[:last]
	} else {
		s = int32(len(e.seqs))
		e.seqs = append(e.seqs, sequence{})
	}
	e.seqs[s] = sequence{tag: r.Tag, kv: e.cache.Open(r.Path, r.Input), input: int32(r.Input), output: int32(r.Output),
		adapter: r.Adapter, grammar: r.Grammar, order: r.Order, hold: r.Hold, remote: r.Remote,
		overruns: r.EOS && e.cfg.AsyncScheduling}
	if e.spec != nil {
		e.spec.open(s, &e.seqs[s], &r)
	}
	if m := r.Moved; m != nil {
		q := &e.seqs[s]
		q.generated, q.emitted, q.gaps = int32(m.Generated), int32(m.Generated), m.Gaps
		q.lastTokenAt, q.admitted = m.lastTokenAt, m.admitted
		if m.Generated > 0 {
			e.notBefore = max(e.notBefore, m.lastTokenAt+1)
		}
	}
	e.wait.last++
	e.own.known = false
	if e.offload != nil {
		*e.offload.use(s) = use{User: tier.User{Priority: r.Priority}, arrival: e.wait.last}
	}
	e.seqs[s].arrival = e.wait.last
	if e.lora != nil {
		e.lora.open(r.Adapter)
	}
	if r.Grammar != 0 {
		e.openGrammar(s, &r)
	}
	if e.pipe != nil {
		e.openPipelined(s, &r)
	}
	if e.cadence != nil { // a request with a grammar is passed until it has asked for it
		e.cadence.setPassed(s, r.Grammar != 0)
	}
	if e.encoder != nil {
		e.encoder.open(s, r.Items)
	}
	e.push(waiter{r.Order, e.wait.last, s})
	return s
}

// requeue puts a preempted sequence ahead of its equals in the wait queue.
func (e *Engine) requeue(s int32) {
	e.wait.first--
	rank := e.wait.first
	if e.offload != nil && e.offload.cfg.ByArrival {
		rank = e.offload.uses[s].arrival
	}
	if e.ordersByArrival() {
		rank = e.seqs[s].arrival
	}
	e.push(waiter{e.seqs[s].order, rank, s})
}

func (e *Engine) push(w waiter) {
	q := &e.wait
	q.heap = append(q.heap, w)
	e.siftUp(len(q.heap)-1, w)
	e.stats.PeakWaiting = max(e.stats.PeakWaiting, e.Waiting())
}

// dequeue removes a sequence from anywhere in the queue.
func (e *Engine) dequeue(s int32) {
	q := &e.wait
	i := int(e.seqs[s].heapIndex)
	last := len(q.heap) - 1
	w := q.heap[last]
	q.heap = q.heap[:last]
	if i == last {
		return
	}
	if i > 0 && w.before(&q.heap[(i-1)/2]) {
		e.siftUp(i, w)
	} else {
		e.siftDown(i, w)
	}
}

// siftUp places w at index i, which is free, or nearer the root.
func (e *Engine) siftUp(i int, w waiter) {
	h := e.wait.heap
	for i > 0 {
		parent := (i - 1) / 2
		if !w.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		e.seqs[h[i].seq].heapIndex = int32(i)
		i = parent
	}
	h[i] = w
	e.seqs[w.seq].heapIndex = int32(i)
}

// siftDown places w at index i, which is free, or farther from the root.
func (e *Engine) siftDown(i int, w waiter) {
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
		e.seqs[h[i].seq].heapIndex = int32(i)
		i = child
	}
	h[i] = w
	e.seqs[w.seq].heapIndex = int32(i)
}

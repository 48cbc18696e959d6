package anomaly

import "math"

// queue is the wait queue of a replica in arrival order. Each request has a key. A tree with the
// highest key of each half finds the first key above a bound in logarithmic time.
type queue struct {
	all []waiter
	// tree[1] is the root and tree[2i], tree[2i+1] are the children of tree[i]. The leaf of all[i]
	// is tree[len(tree)/2+i]; it is lowest if the request is marked or dequeued.
	tree    []float64
	removed int // entries of all that are dequeued
	// alone: all has one entry, which is not in the tree. Most requests wait alone.
	alone bool
}

type waiter struct {
	tag int32
	// at is the time of enqueueing. marked is the time of marking, or never.
	at, marked int64
	key        float64
	dequeued   bool
	id         string
}

const never = math.MaxInt64

var lowest = math.Inf(-1)

// queues are the wait queues by replica. positions maps the number of a request to its index in its
// queue, -1 if it does not wait.
type queues struct {
	byReplica []queue
	positions []int32
}

// forReplica returns the queue of a replica.
func (s *queues) forReplica(replica int32) *queue {
	for int(replica) >= len(s.byReplica) {
		s.byReplica = append(s.byReplica, queue{})
	}
	return &s.byReplica[replica]
}

// add appends a request.
func (s *queues) add(replica int32, w waiter) {
	q := s.forReplica(replica)
	if q.alone {
		q.alone = false
		if len(q.tree) > 0 && q.all[0].marked == never {
			q.set(0, q.all[0].key)
		}
	}
	if len(q.all) > 0 && (len(q.tree) == 0 || len(q.all) == len(q.tree)/2) {
		s.rebuild(q)
	}
	for int(w.tag) >= len(s.positions) {
		s.positions = append(s.positions, -1)
	}
	w.marked = never
	s.positions[w.tag] = int32(len(q.all))
	if q.all = append(q.all, w); len(q.all) == 1 {
		q.alone = true
		return
	}
	q.set(len(q.all)-1, w.key)
}

// rebuild drops the dequeued requests and makes the tree twice as large as needed.
func (s *queues) rebuild(q *queue) {
	stay := q.all[:0]
	for _, w := range q.all {
		if !w.dequeued {
			s.positions[w.tag] = int32(len(stay))
			stay = append(stay, w)
		}
	}
	clear(q.all[len(stay):])
	q.all, q.removed = stay, 0
	leaves := 16
	for leaves < 2*len(stay) {
		leaves *= 2
	}
	if len(q.tree) != 2*leaves {
		q.tree = make([]float64, 2*leaves)
	}
	for i := range q.tree {
		q.tree[i] = lowest
	}
	for i := range stay {
		if stay[i].marked == never {
			q.tree[leaves+i] = stay[i].key
		}
	}
	for i := leaves - 1; i > 0; i-- {
		q.tree[i] = max(q.tree[2*i], q.tree[2*i+1])
	}
}

// set changes the key of position i in the tree.
func (q *queue) set(i int, key float64) {
	if q.alone {
		return
	}
	i += len(q.tree) / 2
	q.tree[i] = key
	for i /= 2; i > 0; i /= 2 {
		high := q.tree[2*i]
		if right := q.tree[2*i+1]; right > high { // max would also look for NaN
			high = right
		}
		if q.tree[i] == high {
			return
		}
		q.tree[i] = high
	}
}

// find returns the waiting request with a number and its position, or nil and -1.
func (s *queues) find(replica, tag int32) (*waiter, int) {
	if int(tag) >= len(s.positions) || s.positions[tag] < 0 {
		return nil, -1
	}
	i := int(s.positions[tag])
	return &s.forReplica(replica).all[i], i
}

// remove dequeues a request and returns its entry; ok is false if it was not waiting.
func (s *queues) remove(replica, tag int32) (was waiter, ok bool) {
	w, i := s.find(replica, tag)
	if w == nil {
		return was, false
	}
	q := s.forReplica(replica)
	was = *w
	w.dequeued, w.id = true, ""
	s.positions[tag] = -1
	q.set(i, lowest)
	if q.removed++; q.removed == len(q.all) {
		q.all, q.removed, q.alone = q.all[:0], 0, false
	}
	return was, true
}

// mark marks, with time at, all requests before position end that were enqueued by since and whose
// keys are above a bound.
func (q *queue) mark(end int, above float64, since, at int64) {
	for {
		i := q.leftmost(above)
		if i < 0 || i >= end || q.all[i].at > since {
			return
		}
		q.all[i].marked = at
		q.set(i, lowest)
	}
}

// leftmost returns the first position whose key in the tree is above a bound, or -1.
func (q *queue) leftmost(above float64) int {
	if q.alone {
		if w := &q.all[0]; w.marked == never && w.key > above {
			return 0
		}
		return -1
	}
	if len(q.tree) == 0 || !(q.tree[1] > above) {
		return -1
	}
	i := 1
	for i < len(q.tree)/2 {
		if i *= 2; !(q.tree[i] > above) {
			i++
		}
	}
	return i - len(q.tree)/2
}

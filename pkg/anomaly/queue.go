package anomaly

import "math"

// queue is the wait queue of a replica in the order in which requests came, each with
// a key. It finds the first one whose key is above a bound in the logarithm of their
// number: a tree has the highest key of each half.
type queue struct {
	all []waiter
	// tree[1] is the root, those below i are 2i and 2i+1; the leaf of all[i] is
	// tree[len(tree)/2+i]. Who is marked or has left has the lowest key there.
	tree []float64
	gone int // of all have left
}

type waiter struct {
	tag int32
	// at is when it came, marked when it was marked, never if it was not.
	at, marked int64
	key        float64
	left       bool
	id         string
}

const never = math.MaxInt64

var lowest = math.Inf(-1)

// queues are those of replicas, by their numbers; place has where the request with a
// tag stands, -1 if it does not wait.
type queues struct {
	of    []queue
	place []int32
}

// at returns the queue of a replica.
func (s *queues) at(replica int32) *queue {
	for int(replica) >= len(s.of) {
		s.of = append(s.of, queue{})
	}
	return &s.of[replica]
}

// add puts a request at the end.
func (s *queues) add(replica int32, w waiter) {
	q := s.at(replica)
	if len(q.all) == len(q.tree)/2 {
		s.rebuild(q)
	}
	for int(w.tag) >= len(s.place) {
		s.place = append(s.place, -1)
	}
	w.marked = never
	s.place[w.tag] = int32(len(q.all))
	q.all = append(q.all, w)
	q.set(len(q.all)-1, w.key)
}

// rebuild forgets who has left, and makes the tree twice as large as need be.
func (s *queues) rebuild(q *queue) {
	stay := q.all[:0]
	for _, w := range q.all {
		if !w.left {
			s.place[w.tag] = int32(len(stay))
			stay = append(stay, w)
		}
	}
	clear(q.all[len(stay):])
	q.all, q.gone = stay, 0
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

// set changes the key of place i in the tree.
func (q *queue) set(i int, key float64) {
	i += len(q.tree) / 2
	q.tree[i] = key
	for i /= 2; i > 0; i /= 2 {
		high := max(q.tree[2*i], q.tree[2*i+1])
		if q.tree[i] == high {
			return
		}
		q.tree[i] = high
	}
}

// find returns who waits with a tag, and its place; nil if nobody does.
func (s *queues) find(replica, tag int32) (*waiter, int) {
	if int(tag) >= len(s.place) || s.place[tag] < 0 {
		return nil, -1
	}
	i := int(s.place[tag])
	return &s.at(replica).all[i], i
}

// remove takes a request out and returns what it was; ok is false if it did not wait.
func (s *queues) remove(replica, tag int32) (was waiter, ok bool) {
	w, i := s.find(replica, tag)
	if w == nil {
		return was, false
	}
	q := s.at(replica)
	was = *w
	w.left, w.id = true, ""
	s.place[tag] = -1
	q.set(i, lowest)
	if q.gone++; q.gone == len(q.all) { // mostly it is the only one
		q.all, q.gone = q.all[:0], 0
	}
	return was, true
}

// mark marks, at a time, all that came before place end, not after the instant
// since, whose keys are above a bound.
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

// leftmost is the first place whose key in the tree is above a bound, -1 if none is.
func (q *queue) leftmost(above float64) int {
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

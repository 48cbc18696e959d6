package attribution

import "iter"

// requestList has requests in the order in which it got them, in batches side by side in memory.
type requestList struct{ batches [][]request }

// requestBatch is how many requests are allocated at a time.
const requestBatch = 1024

// add adds a request and returns where it is from now on.
func (l *requestList) add(r request) *request {
	last := len(l.batches) - 1
	if last < 0 || len(l.batches[last]) == requestBatch {
		l.batches = append(l.batches, make([]request, 0, requestBatch))
		last++
	}
	l.batches[last] = append(l.batches[last], r)
	return &l.batches[last][len(l.batches[last])-1]
}

func (l *requestList) len() int {
	if len(l.batches) == 0 {
		return 0
	}
	return requestBatch*(len(l.batches)-1) + len(l.batches[len(l.batches)-1])
}

func (l *requestList) at(i int) *request { return &l.batches[i/requestBatch][i%requestBatch] }

// all are the requests with their places.
func (l *requestList) all() iter.Seq2[int, *request] {
	return func(yield func(int, *request) bool) {
		for n, batch := range l.batches {
			for i := range batch {
				if !yield(n*requestBatch+i, &batch[i]) {
					return
				}
			}
		}
	}
}

// list is a new list with all requests.
func (l *requestList) list() []*request {
	list := make([]*request, 0, l.len())
	for _, r := range l.all() {
		list = append(list, r)
	}
	return list
}

// contains reports whether f holds for any request.
func (l *requestList) contains(f func(*request) bool) bool {
	for _, r := range l.all() {
		if f(r) {
			return true
		}
	}
	return false
}

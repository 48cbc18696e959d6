package policy

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

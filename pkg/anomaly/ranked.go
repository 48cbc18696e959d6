package anomaly

// rankedQueues are the wait queues of replicas with the requests' priorities as keys: that of the
// policy and that of the SLO class. A request that leaves its queue is an occurrence if it is marked
// in either.
type rankedQueues struct {
	episodeBuilders
	queues [2]queues // by policy priority and by class priority
}

func newRankedQueues(r *rule, emit func(*Episode)) rankedQueues {
	return rankedQueues{episodeBuilders: episodeBuilders{rule: r, emit: emit}}
}

// priorities are the keys of a request.
func (r *Request) priorities() [2]float64 { return [2]float64{r.Priority, r.ClassPriority} }

// add adds a request that was enqueued.
func (d *rankedQueues) add(e *Event) {
	for i, key := range e.Request.priorities() {
		d.queues[i].add(e.Replica, waiter{tag: e.Tag, at: e.At, key: key, id: e.Request.ID})
	}
}

// remove removes a request that left its queue.
func (d *rankedQueues) remove(e *Event) {
	w, ok := d.queues[0].remove(e.Replica, e.Tag)
	other, _ := d.queues[1].remove(e.Replica, e.Tag)
	if !ok {
		return
	}
	for _, w := range [...]*waiter{&w, &other} {
		if w.marked == e.At { // what marked it left the queue in the same batch
			w.marked = never
		}
	}
	d.dequeued(e.At, e.Replica, &w, min(w.marked, other.marked), w.marked != never)
}

// finish counts the marked requests that still wait at the end of the run, and ends all episodes.
func (d *rankedQueues) finish(e *Event) {
	for i := range d.queues[0].byReplica {
		for k := range d.queues[0].byReplica[i].all {
			w := &d.queues[0].byReplica[i].all[k]
			if since := min(w.marked, d.queues[1].byReplica[i].all[k].marked); !w.dequeued && since != never {
				d.dequeued(e.At, int32(i), w, since, w.marked != never)
			}
		}
	}
	d.close()
}

// dequeued records that a request left its queue. It is an occurrence if the request was marked;
// byPolicy says that the policy's own priority was violated.
func (s *episodeBuilders) dequeued(at int64, replica int32, w *waiter, marked int64, byPolicy bool) {
	x := sample{at: at, from: marked, all: 1, id: w.id, byPolicy: byPolicy}
	if marked != never {
		x.bad = 1
	}
	s.forReplica(replica).add(x)
}

package sim

import (
	"blis/pkg/des"
	"blis/pkg/engine"
)

// waitMonitor observes which limit stopped the queue of each replica, and adds to outcomes how long it did before
// the first batch of the request.
type waitMonitor struct {
	replicas []limitTimes
	entered  []limitTimes // those of its replica when a request entered the queue, by slot
}

// limitTimes are the times in µs in which each limit stopped a queue, until at. limit stops it from then on.
type limitTimes struct {
	us    [engine.LimitCount]des.Time
	at    des.Time
	limit engine.Limit
}

// advance adds the time to now.
func (t *limitTimes) advance(now des.Time) {
	t.us[t.limit] += now - t.at
	t.at = now
}

func (m *waitMonitor) hooks() []hook {
	return []hook{onEnqueue, onCompiled, onBatch, onWait, onMove, onFinal}
}

func (m *waitMonitor) observe(s *simulation, h hook, i int32) error {
	if h == onBatch || h == onWait {
		e, t := s.replicas[i].engine, m.timesOf(i)
		t.advance(s.now)
		for _, step := range e.Formed() {
			for _, a := range step.Admitted {
				m.record(s, a.Tag)
			}
		}
		if len(e.Formed()) > 0 || !e.FormsAtEnd() { // else it stays until then
			t.limit = e.StoppedBy()
		}
		return nil
	}
	r := s.request(i)
	at, queued := r.queuedAt()
	if at == missing {
		return nil
	}
	m.timesOf(at).advance(s.now)
	if h == onEnqueue || h == onCompiled {
		for int(i) >= len(m.entered) {
			m.entered = append(m.entered, limitTimes{})
		}
		m.entered[i] = m.replicas[at]
	} else if queued {
		m.record(s, i)
	}
	return nil
}

// timesOf returns the times of a replica, which may have been added during the run.
func (m *waitMonitor) timesOf(replica int32) *limitTimes {
	for int(replica) >= len(m.replicas) {
		m.replicas = append(m.replicas, limitTimes{})
	}
	return &m.replicas[replica]
}

// record adds the waits of a request in a slot to its outcome.
func (m *waitMonitor) record(s *simulation, slot int32) {
	r := s.request(slot)
	r.out.GrammarWaitUS += r.grammar.waited(s.now)
	if r.grammar.pending != never { // limits did not matter yet
		return
	}
	at, _ := r.queuedAt()
	since := func(l engine.Limit) des.Time { return m.replicas[at].us[l] - m.entered[slot].us[l] }
	r.out.SlotWaitUS += since(engine.SlotLimit)
	r.out.BudgetWaitUS += since(engine.BudgetLimit)
	r.out.BlockWaitUS += since(engine.BlockLimit)
	r.out.AdapterWaitUS += since(engine.AdapterLimit)
	r.out.EncoderWaitUS += since(engine.EncoderLimit)
}

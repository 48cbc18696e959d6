package sim

import (
	"slices"

	"blis/pkg/des"
	"blis/pkg/stream"
)

// recovery measures how long the attainment of SLO targets stays low after replicas went down: until the last time at
// which it was more than recoveredWithin below the attainment before, over windows of recoveryUS.
type recovery struct {
	judged   []judgedRequest // in the window
	met      int
	targets  bool // any request had targets
	open     bool
	failedAt des.Time
	before   float64
	lowAt    des.Time // the last time at which it was low
	// failures are those that are over; us is the sum of their times, lasting the number of those that the next failure
	// or the end of the run came before.
	failures, us, lasting int64
}

type judgedRequest struct {
	at  des.Time
	met bool
}

const (
	recoveryUS      = 60e6
	recoveredWithin = 0.01
)

func (r *recovery) hooks() []hook { return []hook{onPhase, onFinal, onClose} }

func (r *recovery) observe(s *simulation, h hook, i int32) error {
	switch h {
	case onPhase:
		if s.fleet.members[i].phase == failed {
			r.fail(s.now)
		}
	case onFinal:
		if o := &s.request(i).out; o.SLOMet != nil && !o.Retried && o.State != stream.StateUnfinished {
			r.add(s.now, *o.SLOMet)
		}
	case onClose:
		r.end(s.now)
	}
	return nil
}

// attainment is that of the window that ends at now, 1 if it is empty.
func (r *recovery) attainment(now des.Time) float64 {
	gone := 0
	for gone < len(r.judged) && r.judged[gone].at <= now-recoveryUS {
		if r.judged[gone].met {
			r.met--
		}
		gone++
	}
	r.judged = slices.Delete(r.judged, 0, gone)
	if len(r.judged) == 0 {
		return 1
	}
	return float64(r.met) / float64(len(r.judged))
}

// isLow reports whether the attainment is low now.
func (r *recovery) isLow(now des.Time) bool { return r.attainment(now) < r.before-recoveredWithin }

// add counts a request that is final.
func (r *recovery) add(now des.Time, met bool) {
	r.judged, r.targets = append(r.judged, judgedRequest{now, met}), true
	if met {
		r.met++
	}
	if r.open && r.isLow(now) {
		r.lowAt = now
	}
}

// fail notes that a replica went down.
func (r *recovery) fail(now des.Time) {
	if r.open && r.failedAt == now {
		return
	}
	before := r.attainment(now)
	if r.open && r.isLow(now) {
		before = r.before // the next failure is judged by the time before both
	}
	r.end(now)
	r.open, r.failedAt, r.before, r.lowAt = true, now, before, now
}

// end ends the time after a failure.
func (r *recovery) end(now des.Time) {
	if !r.open {
		return
	}
	r.failures++
	if r.isLow(now) {
		r.lasting++
		r.lowAt = now
	}
	r.us += r.lowAt - r.failedAt
	r.open = false
}

// meanMS is the mean time of the failures that are over, nil if there are none or no request had targets.
func (r *recovery) meanMS() *float64 {
	if r.failures == 0 || !r.targets {
		return nil
	}
	mean := float64(r.us) / float64(r.failures) / 1000
	return &mean
}

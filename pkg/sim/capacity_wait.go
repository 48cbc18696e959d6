package sim

import (
	"slices"

	"blis/pkg/des"
)

// capacityWait adds up how long requests waited before their first batch while a deployment that scales of their model
// had no replica that serves, or had replicas that are provisioned or load.
type capacityWait struct {
	lacking []lackingTime // by model
	entered []des.Time    // the lacking time when a request arrived, by slot; negative after its first batch
	us      des.Time
}

// lackingTime is the time in which a model lacked capacity, until at. now: it does from then on.
type lackingTime struct {
	us, at des.Time
	now    bool
}

// until is the time until now.
func (t *lackingTime) until(now des.Time) des.Time {
	if t.now {
		return t.us + now - t.at
	}
	return t.us
}

// newCapacityWait returns nil if no deployment scales.
func newCapacityWait(s *simulation) *capacityWait {
	if !s.scales() {
		return nil
	}
	return &capacityWait{lacking: make([]lackingTime, len(s.models))}
}

func (w *capacityWait) hooks() []hook { return []hook{onArrival, onBatch, onPhase, onFinal} }

func (w *capacityWait) observe(s *simulation, h hook, i int32) error {
	switch h {
	case onPhase:
		if e := s.elasticOf(i); e != nil {
			t := &w.lacking[e.model]
			t.us, t.at, t.now = t.until(s.now), s.now, s.lacksCapacity(e.model)
		}
	case onArrival:
		for int(i) >= len(w.entered) {
			w.entered = append(w.entered, -1)
		}
		if m := s.request(i).model; m >= 0 {
			w.entered[i] = w.lacking[m].until(s.now)
		}
	case onBatch:
		for _, step := range s.replicas[i].engine.Formed() {
			for _, a := range step.Admitted {
				w.stop(s, a.Tag)
			}
		}
	case onFinal:
		w.stop(s, i)
	}
	return nil
}

// stop ends the wait of a request, if it has not ended.
func (w *capacityWait) stop(s *simulation, slot int32) {
	if w.entered[slot] >= 0 {
		w.us += w.lacking[s.request(slot).model].until(s.now) - w.entered[slot]
		w.entered[slot] = -1
	}
}

// lacksCapacity reports whether the deployments that an auto-scaler of a model scales have no replica that serves, or
// one that starts.
func (s *simulation) lacksCapacity(model int) bool {
	starts := func(k int32) bool {
		p := s.fleet.members[k].phase
		return p == provisioning || p == loading
	}
	for i := range s.deployments {
		e := s.deployments[i].elastic
		if e == nil || e.lead != e || e.model != model {
			continue
		}
		serves := 0
		for _, m := range e.members {
			x := s.deployments[m].elastic
			if serves += len(x.serving); slices.ContainsFunc(x.present, starts) {
				return true
			}
		}
		if serves == 0 {
			return true
		}
	}
	return false
}

package attribution

import (
	"math"

	"blis/pkg/stream"
)

// moment is one in the life of a request.
type moment int

const (
	whenAdmitted moment = iota
	whenRouted
	whenEnqueued
	whenScheduled
	whenFirstToken
	whenEnded
	moments
)

// times are the moments of a request in µs after its arrival, or one of the following. That takes half the memory of
// absolute times.
type times [moments]uint32

const (
	absent = math.MaxUint32     // the moment did not come
	tooFar = math.MaxUint32 - 1 // it does not fit, see incidents.farTimes
)

var noTimes = times{absent, absent, absent, absent, absent, absent}

// set sets a moment; at may be never.
func (r *request) set(m moment, at stream.Micros) {
	switch after := at - r.from; {
	case at == never:
		r.times[m] = absent
	case after >= 0 && after < tooFar:
		r.times[m] = uint32(after)
	default:
		x := *r.incidents
		f := [moments]stream.Micros{}
		if x.farTimes != nil {
			f = *x.farTimes
		}
		f[m] = at
		x.farTimes = &f
		r.setIncidents(x)
		r.times[m] = tooFar
	}
}

// setTimes sets the times of the request with an outcome.
func (r *request) setTimes(o *stream.Outcome) {
	r.from = o.Began()
	r.set(whenAdmitted, o.AdmittedUS)
	r.set(whenRouted, o.RoutedUS)
	r.set(whenEnqueued, o.EnqueuedUS)
	r.set(whenScheduled, o.ScheduledUS)
	r.set(whenFirstToken, o.FirstTokenUS)
	r.set(whenEnded, o.EndedUS)
	if !o.CompletedUS.IsZero() {
		r.set(whenEnded, o.CompletedUS)
	}
	r.ignoreOverlap()
}

// at is a moment in µs, never if it did not come.
func (r *request) at(m moment) stream.Micros {
	if after := r.times[m]; after < tooFar {
		return r.from + stream.Micros(after)
	}
	return r.atFar(m)
}

func (r *request) atFar(m moment) stream.Micros {
	if r.times[m] == absent {
		return never
	}
	return r.farTimes[m]
}

// arrival is when the request arrived, never while its outcome did not come.
func (r *request) arrival() stream.Micros {
	if r.pending {
		return never
	}
	return r.from
}

// ended is when a request became final.
func (r *request) ended() stream.Micros { return r.at(whenEnded) }

func (r *request) admitted() stream.Micros   { return r.at(whenAdmitted) }
func (r *request) routed() stream.Micros     { return r.at(whenRouted) }
func (r *request) enqueued() stream.Micros   { return r.at(whenEnqueued) }
func (r *request) scheduled() stream.Micros  { return r.at(whenScheduled) }
func (r *request) firstToken() stream.Micros { return r.at(whenFirstToken) }

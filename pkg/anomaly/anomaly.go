// Package anomaly finds what should not happen in a cluster that serves well: each
// detector looks at the true state of a run, and not at what policies see of it.
//
// What detectors find are episodes. All look at windows, of one replica or of one SLO
// class: of thirty seconds or, but for shadow_divergence, of the last so many that the
// least number of signs is the share of, if these are more. A window is bad if enough of what it holds is, in
// number and as a share. Bad windows are one episode as long as a sign in one comes
// within a minute, or the length of the window, of the last sign in the one before.
// Figures are of bad windows only.
package anomaly

import "blis/pkg/registry"

// Episode is one anomaly, from its first sign to its last. Times are µs.
type Episode struct {
	// Type is the name of its detector.
	Type       string
	Start, End int64
	// Severity is from 0 to 1, the share that Text speaks of.
	Severity float64
	// Count is the number of signs, Requests are the first of those that they are
	// about, each once, MaxRequests at most.
	Count    int64
	Requests []string
	// Replica is where it was, Nowhere if it was not at one; Class is the SLO class
	// of all that it is about, "" if they may have any.
	Replica int32
	Class   string
	// Text is one line with its figures.
	Text string
}

// MaxRequests is how many requests an Episode names.
const MaxRequests = 20

// Nowhere is the Replica of what was not at one.
const Nowhere int32 = -1

// Request is what detectors know of a request. Detectors do not keep it.
type Request struct {
	ID string
	// Class is its SLO class; Priority is what the priority policy gave it,
	// ClassPriority its class's. Higher is sooner.
	Class                   string
	Priority, ClassPriority float64
	// Input is the length of its prompt; Expected of that the router expected to be
	// cached, Cached was.
	Input, Expected, Cached int64
	// Promised: its class has targets. Met: it met them all.
	Promised, Met bool
}

// Detector is told what happens, in the order in which it does, at times in µs that
// never go back. Replicas and requests have numbers, from 0; that of a request
// is its own until it has left its queue. Of the batches that a replica forms at one
// instant, it is told first who holds up the queue then.
type Detector interface {
	// Enqueued: a request entered the wait queue of a replica.
	Enqueued(at int64, replica, tag int32, r *Request)
	// Held: from now on one request holds up the queue of a replica, nil if none
	// does; whoever is not longer than room would fit in its place.
	Held(at int64, replica int32, by *Request, room int64)
	// Admitted: a request entered a batch for the first time.
	Admitted(at int64, replica, tag int32, r *Request)
	// Left: a request left the wait queue and has never been in a batch.
	Left(at int64, replica, tag int32)
	// Preempted: a request lost its place in a batch.
	Preempted(at int64, replica int32, r *Request)
	// Final: a request has ended, by itself or by others.
	Final(at int64, r *Request)
	// Close: nothing more will happen.
	Close(at int64)
}

// Detectors is every detector. Each is made with what takes the episodes that it
// finds, which come when they are over.
var Detectors = registry.Table[func(tell func(*Episode)) Detector]{
	{Name: "priority_inversion", Doc: priorityInversionDoc, Value: newPriorityInversion},
	{Name: "hol_blocking", Doc: holBlockingDoc, Value: newHOLBlocking},
	{Name: "preemption_storm", Doc: preemptionStormDoc, Value: newPreemptionStorm},
	{Name: "shadow_divergence", Doc: shadowDivergenceDoc, Value: newShadowDivergence},
	{Name: "slo_violation", Doc: sloViolationDoc, Value: newSLOViolation},
}

// Watch is all detectors as one.
type Watch []Detector

// New returns all detectors. tell gets what they find, with its Type.
func New(tell func(*Episode)) Watch {
	var w Watch
	for _, d := range Detectors {
		w = append(w, d.Value(func(e *Episode) {
			e.Type = d.Name
			tell(e)
		}))
	}
	return w
}

// Enqueued tells all.
func (w Watch) Enqueued(at int64, replica, tag int32, r *Request) {
	for _, d := range w {
		d.Enqueued(at, replica, tag, r)
	}
}

// Held tells all.
func (w Watch) Held(at int64, replica int32, by *Request, room int64) {
	for _, d := range w {
		d.Held(at, replica, by, room)
	}
}

// Admitted tells all.
func (w Watch) Admitted(at int64, replica, tag int32, r *Request) {
	for _, d := range w {
		d.Admitted(at, replica, tag, r)
	}
}

// Left tells all.
func (w Watch) Left(at int64, replica, tag int32) {
	for _, d := range w {
		d.Left(at, replica, tag)
	}
}

// Preempted tells all.
func (w Watch) Preempted(at int64, replica int32, r *Request) {
	for _, d := range w {
		d.Preempted(at, replica, r)
	}
}

// Final tells all.
func (w Watch) Final(at int64, r *Request) {
	for _, d := range w {
		d.Final(at, r)
	}
}

// Close tells all.
func (w Watch) Close(at int64) {
	for _, d := range w {
		d.Close(at)
	}
}

// deaf is the part of a detector that does not listen.
type deaf struct{}

func (deaf) Enqueued(int64, int32, int32, *Request) {}
func (deaf) Held(int64, int32, *Request, int64)     {}
func (deaf) Admitted(int64, int32, int32, *Request) {}
func (deaf) Left(int64, int32, int32)               {}
func (deaf) Preempted(int64, int32, *Request)       {}
func (deaf) Final(int64, *Request)                  {}

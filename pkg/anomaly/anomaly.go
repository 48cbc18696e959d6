// Package anomaly detects undesirable behavior of a serving cluster. Detectors see the true state of
// a run, not what policies see.
//
// A detector reports episodes. It keeps a window for each replica or each SLO class: the last thirty
// seconds, extended backward to the number of samples in which the minimum count makes up the
// minimum share. shadow_divergence never extends its window. A window is bad if its occurrences
// reach the minimum count and the minimum share. An episode continues while each occurrence of a bad
// window follows the last one of the previous bad window within a minute, or within the length of
// the window if that is longer. The figures of an episode cover bad windows only.
package anomaly

import "blis/pkg/registry"

// Episode is one anomaly, from its first occurrence to its last. Times are in µs.
type Episode struct {
	// Type is the name of its detector.
	Type       string
	Start, End int64
	// Severity is between 0 and 1: the share that Text states.
	Severity float64
	// Count is the number of occurrences. Requests are the first distinct requests concerned,
	// MaxRequests at most.
	Count    int64
	Requests []string
	// Replica is the replica concerned, or NoReplica. Class is the SLO class of all requests
	// concerned, or "" if they may differ.
	Replica int32
	Class   string
	// Text is one line that states the figures.
	Text string
}

// maxRequests is the maximum number of requests that an Episode lists.
const maxRequests = 20

// NoReplica is the Replica of an episode that concerns no single replica.
const NoReplica int32 = -1

// Request is what detectors see of a request. Detectors do not retain it.
type Request struct {
	ID string
	// Class is the SLO class. Priority was assigned by the priority policy, ClassPriority is that of
	// the class. Higher runs sooner.
	Class                   string
	Priority, ClassPriority float64
	// Input is the prompt length. Expected is how much of it the router expected to be cached,
	// Cached is how much was. All are in tokens.
	Input, Expected, Cached int64
	// HasTargets: the class has SLO targets. MetTargets: the request met all of them.
	HasTargets, MetTargets bool
}

// Detector receives the events of a run in order. Times are in µs and never decrease. Replicas and
// requests are numbered from 0; the number of a request is unique until the request leaves its
// queue. When a replica forms batches at one instant, HeadOfLineBlocked comes before their other
// events.
type Detector interface {
	// Enqueued: a request entered the wait queue of a replica.
	Enqueued(at int64, replica, tag int32, r *Request)
	// HeadOfLineBlocked: from now on request by blocks the queue of a replica; nil if none does. A
	// request of at most room tokens would fit instead of it.
	HeadOfLineBlocked(at int64, replica int32, by *Request, room int64)
	// Admitted: a request entered a batch for the first time.
	Admitted(at int64, replica, tag int32, r *Request)
	// Dequeued: a request left the wait queue and has never been in a batch.
	Dequeued(at int64, replica, tag int32)
	// Preempted: a request lost its batch slot.
	Preempted(at int64, replica int32, r *Request)
	// Finished: a request reached its final state.
	Finished(at int64, r *Request)
	// Close: the run is over.
	Close(at int64)
}

// Detectors lists all detectors. Each is created with a function that receives its episodes, which
// are reported when they end.
var Detectors = registry.Table[func(emit func(*Episode)) Detector]{
	{Name: "priority_inversion", Doc: priorityInversionDoc, Value: newPriorityInversion},
	{Name: "hol_blocking", Doc: holBlockingDoc, Value: newHOLBlocking},
	{Name: "preemption_storm", Doc: preemptionStormDoc, Value: newPreemptionStorm},
	{Name: "shadow_divergence", Doc: shadowDivergenceDoc, Value: newShadowDivergence},
	{Name: "slo_violation", Doc: sloViolationDoc, Value: newSLOViolation},
}

// Set forwards each event to several detectors.
type Set []Detector

// New returns all detectors. emit receives their episodes with Type set.
func New(emit func(*Episode)) Set {
	var w Set
	for _, d := range Detectors {
		w = append(w, d.Value(func(e *Episode) {
			e.Type = d.Name
			emit(e)
		}))
	}
	return w
}

// Enqueued forwards to all detectors.
func (w Set) Enqueued(at int64, replica, tag int32, r *Request) {
	for _, d := range w {
		d.Enqueued(at, replica, tag, r)
	}
}

// HeadOfLineBlocked forwards to all detectors.
func (w Set) HeadOfLineBlocked(at int64, replica int32, by *Request, room int64) {
	for _, d := range w {
		d.HeadOfLineBlocked(at, replica, by, room)
	}
}

// Admitted forwards to all detectors.
func (w Set) Admitted(at int64, replica, tag int32, r *Request) {
	for _, d := range w {
		d.Admitted(at, replica, tag, r)
	}
}

// Dequeued forwards to all detectors.
func (w Set) Dequeued(at int64, replica, tag int32) {
	for _, d := range w {
		d.Dequeued(at, replica, tag)
	}
}

// Preempted forwards to all detectors.
func (w Set) Preempted(at int64, replica int32, r *Request) {
	for _, d := range w {
		d.Preempted(at, replica, r)
	}
}

// Finished forwards to all detectors.
func (w Set) Finished(at int64, r *Request) {
	for _, d := range w {
		d.Finished(at, r)
	}
}

// Close forwards to all detectors.
func (w Set) Close(at int64) {
	for _, d := range w {
		d.Close(at)
	}
}

// nopDetector ignores every event. Detectors embed it and override what they need.
type nopDetector struct{}

func (nopDetector) Enqueued(int64, int32, int32, *Request)          {}
func (nopDetector) HeadOfLineBlocked(int64, int32, *Request, int64) {}
func (nopDetector) Admitted(int64, int32, int32, *Request)          {}
func (nopDetector) Dequeued(int64, int32, int32)                    {}
func (nopDetector) Preempted(int64, int32, *Request)                {}
func (nopDetector) Finished(int64, *Request)                        {}

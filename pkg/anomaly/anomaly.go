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

import (
	"slices"

	"blis/pkg/registry"
)

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
	// OfDeployment: the episode concerns Deployment and no single replica.
	OfDeployment bool
	Deployment   int32
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
	// Cached is how much was, or came from a KV tier. All are in tokens.
	Input, Expected, Cached int64
	// Completed: it has produced all its tokens. Failed: its replica was lost.
	Completed, Failed bool
	// HasTargets: the class has SLO targets. MetTargets: the request met all of them.
	HasTargets, MetTargets bool
}

// EventKind is what happened.
type EventKind int8

const (
	// Enqueued: a request entered the wait queue of a replica.
	Enqueued EventKind = iota
	// HeadOfLineBlocked: from now on the request blocks the queue of a replica; nil if none does. A
	// request of at most Room tokens would fit instead of it.
	HeadOfLineBlocked
	// Admitted: a request entered a batch for the first time.
	Admitted
	// Dequeued: a request left the wait queue and has never been in a batch.
	Dequeued
	// Preempted: a request lost its batch slot.
	Preempted
	// Finished: a request reached its final state. Replica and Tag are those of its queue, if any.
	Finished
	// Scaled: a deployment gets more replicas if Change is positive, else fewer.
	Scaled
	// Slowed: steps of a replica took longer than they should, as Slow says.
	Slowed
	// Lost and Restored: a replica of a deployment stopped and began again to accept requests because it failed and
	// came back, or is no longer missed. Replicas is the number that the deployment has with it.
	Lost
	Restored
	// Routed: a request was sent to a decode replica, in a cluster with backpressure. It was held back for HeldUS, 0 if
	// not at all; ByPrefill: because of the prefill pool.
	Routed
	// Loaded: a load of Blocks from the tier below the cache of a replica has ended. Again of them were stored shortly
	// before, or all if the request has left.
	Loaded
	// Closed: the run is over.
	Closed
)

// Slow are the steps of a replica from From until Until that a failure made longer: their number, how long they took,
// and how long they should have taken, in µs.
type Slow struct{ From, Until, Steps, ActualUS, NormalUS int64 }

// Event is something that happened at time At, in µs. Replicas and requests are numbered from 0; Tag,
// the number of a request, is unique until the request leaves its queue.
type Event struct {
	Kind         EventKind
	At           int64
	Replica, Tag int32
	Request      *Request
	Room         int64
	// Deployment is that of Scaled, Lost and Restored.
	Deployment, Change, Replicas int32
	Slow                         Slow
	HeldUS                       int64
	ByPrefill                    bool
	Blocks, Again                int64
}

// Detector receives the events of a run in order: times never decrease. When a replica forms batches
// at one instant, HeadOfLineBlocked comes before their other events.
type Detector func(*Event)

// Detectors lists all detectors. Each is created with a function that receives its episodes, which
// are reported when they end.
var Detectors = registry.Table[func(emit func(*Episode)) Detector]{
	{Name: "priority_inversion", Doc: "later requests of lower priority or of a lower SLO class are scheduled first: " +
		"at least 5 requests and 5 % of those that leave a queue in 30 s (or of the last 100) are passed over after " +
		"waiting 100 ms", Value: newPriorityInversion},
	{Name: "hol_blocking", Doc: "short requests wait behind a long one: at least 10 requests and 35 % of those that " +
		"leave a queue in 30 s (or of the last 29) waited 2 s behind a prompt 8 times as long", Value: newHOLBlocking},
	{Name: "hol_blocking_priority", Doc: "requests of lower priority or of a lower SLO class complete while higher " +
		"ones from the same queue wait: at least 10 requests and 5 % of those that leave a queue in 30 s (or of the " +
		"last 200)", Value: newHOLBlockingPriority},
	{Name: "preemption_storm", Doc: "a replica preempts running requests repeatedly: at least 10 preemptions and 30 " +
		"% of preemptions plus first admissions, in 30 s (or of the last 34)", Value: newPreemptionStorm},
	{Name: "shadow_divergence", Doc: "the router mispredicts a cache: for at least 20 requests scheduled in 30 s, " +
		"and for 60 % of the tokens expected or cached", Value: newShadowDivergence},
	{Name: scaleOscillation, Doc: "an auto-scaler undoes what it has done: at least 2 actions in an hour come less " +
		"than 10 minutes after an opposite one", Value: newScaleOscillation},
	{Name: replicaSlow, Doc: "a replica is slow: at least 20 steps within a minute of each other take 20 % longer " +
		"than they should, because of a failure", Value: newReplicaSlow},
	{Name: capacityLost, Doc: "a deployment misses at least 10 % of its replicas for at least 10 s because they failed",
		Value: newCapacityLost},
	{Name: pdBackpressure, Doc: "requests wait before routing because too many are on their way through the prefill " +
		"pool: at least 10 requests and 20 % of those routed in 30 s (or of the last 50) waited 100 ms",
		Value: newBackpressure},
	{Name: cacheThrashing, Doc: "blocks go back and forth between a cache and the tier below it: at least 100 blocks " +
		"and 20 % of those loaded in 30 s were stored at most 10 s before, or their request had left",
		Value: newCacheThrashing},
	{Name: "slo_violation", Doc: "a class misses its SLO targets: at least 20 requests and 50 % of those that finish " +
		"in 30 s (or of the last 40)", Value: newSLOViolation},
}

// The anomalies of deployments that scale, of replicas that fail, of pools with backpressure and of tiers.
const (
	scaleOscillation = "scale_oscillation"
	replicaSlow      = "replica_slow"
	capacityLost     = "capacity_lost"
	pdBackpressure   = "pd_backpressure"
	cacheThrashing   = "cache_thrashing"
)

// Names returns the names of the anomalies that can occur in a cluster: some only if it scales, if replicas fail, if
// pools have backpressure or if replicas have tiers.
func Names(scales, fails, backpressure, tiers bool) []string {
	return slices.DeleteFunc(Detectors.Names(), func(name string) bool {
		switch name {
		case scaleOscillation:
			return !scales
		case replicaSlow, capacityLost:
			return !fails
		case pdBackpressure:
			return !backpressure
		case cacheThrashing:
			return !tiers
		}
		return false
	})
}

// New returns a Detector that passes each event to all detectors. emit receives their episodes with
// Type set.
func New(emit func(*Episode)) Detector {
	var all []Detector
	for _, d := range Detectors {
		all = append(all, d.Value(func(e *Episode) {
			e.Type = d.Name
			emit(e)
		}))
	}
	return func(e *Event) {
		for _, detect := range all {
			detect(e)
		}
	}
}

package stream

import "blis/pkg/anomaly"

// Anomaly is an episode of something that should not happen, from its first sign
// to its last. It is written when it is over.
type Anomaly struct {
	Kind    string `json:"kind"`
	Type    string `json:"type"`
	StartUS Micros `json:"start_us"`
	EndUS   Micros `json:"end_us"`
	// Severity is from 0 to 1; what it is the share of is the type's.
	Severity float64 `json:"severity"`
	// Count is the number of signs, Requests are the ids of the first that they are
	// about, anomaly.MaxRequests at most.
	Count    int64    `json:"count"`
	Requests []string `json:"requests"`
	// Deployment and Replica are where it was, SLOClass is that of all whom it
	// met; absent where it has no such place or class.
	Deployment string `json:"deployment,omitempty"`
	Replica    Index  `json:"replica,omitzero"`
	SLOClass   string `json:"slo_class,omitempty"`
	// Text is one line with its figures.
	Text string `json:"text"`
}

var anomalyObject = describe[Anomaly](KindAnomaly, "An episode of something that should not happen, written when it is over.",
	Field{Name: "kind", Doc: "Always anomaly.", Required: true, OneOf: []string{KindAnomaly}},
	Field{Name: "type", Doc: "What happened.", Required: true, OneOf: anomaly.Detectors.Names()},
	Field{Name: "start_us", Doc: "When its first sign was, in µs since the workload's origin.", Required: true, Max: maxExact},
	Field{Name: "end_us", Doc: "When its last sign was.", Required: true, Max: maxExact},
	Field{Name: "severity", Doc: "From 0 to 1: the share that the text speaks of.", Required: true},
	Field{Name: "count", Doc: "How many signs there were.", Required: true, Min: 1, Max: maxExact},
	Field{Name: "requests", Doc: "The ids of the first requests that they are about, 20 at most.", Required: true},
	Field{Name: "deployment", Doc: "The deployment of the replica where it was."},
	Field{Name: "replica", Doc: "The index of that replica in its deployment, from 0.", Max: maxIndex},
	Field{Name: "slo_class", Doc: "The class of all requests that it is about."},
	Field{Name: "text", Doc: "One line with its figures.", Required: true},
)

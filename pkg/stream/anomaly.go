package stream

import "blis/pkg/anomaly"

var anomalyTypes = anomaly.Detectors.Names()

// Anomaly is an episode of a problem, from its first to its last occurrence, written when it is over.
//
//wire:record anomaly
type Anomaly struct {
	Kind string `json:"kind"`
	// What happened.
	Type string `json:"type" wire:"oneof=anomalyTypes"`
	// Time of the first occurrence, in µs since the workload's origin.
	StartUS Micros `json:"start_us"`
	// Time of the last occurrence, in µs since the workload's origin.
	EndUS Micros `json:"end_us"`
	// From 0 to 1: the share that the text states.
	Severity float64 `json:"severity"`
	// Number of occurrences.
	Count int64 `json:"count" wire:"min=1"`
	// Ids of the first affected requests, at most 20.
	RequestIDs []string `json:"request_ids"`
	// Deployment of the affected replica.
	Deployment string `json:"deployment,omitempty"`
	// Index of the affected replica in its deployment, from 0.
	Replica Index `json:"replica,omitzero"`
	// SLO class of all affected requests.
	SLOClass string `json:"slo_class,omitempty"`
	// One line with the numbers.
	Text string `json:"text"`
}

package stream

// StageAutoscale is the stage of scaling records.
const StageAutoscale = "autoscale"

// stageAutoscale are the stages of Scaling.
var stageAutoscale = []string{StageAutoscale}

// Scaling is one look of the auto-scaler at a deployment, with what it saw and decided.
//
//wire:record scaling
type Scaling struct {
	Kind string `json:"kind"`
	// Name of the decision, unique in its stream.
	ID string `json:"id" wire:"unique"`
	// Stage that decided.
	Stage string `json:"stage" wire:"oneof=stageAutoscale"`
	// Time of the decision, in µs since the workload's origin.
	AtUS Micros `json:"at_us"`
	// Deployment.
	Deployment string `json:"deployment"`
	// Replicas that are not draining.
	Current int64 `json:"current"`
	// Of these, those that serve, which includes those that warm up.
	Ready int64 `json:"ready"`
	// Those that load the model.
	Loading int64 `json:"loading"`
	// Those that have no GPUs yet.
	Provisioning int64 `json:"provisioning"`
	// Replicas that complete their requests before they go.
	Draining int64 `json:"draining"`
	// Requests in flow control.
	FlowWaiting int64 `json:"flow_waiting"`
	// Replicas that the policy recommends.
	Recommended int64 `json:"recommended"`
	// Replicas that remain after stabilization, limits, cooldown and bounds.
	Desired int64 `json:"desired"`
	// What decided, in a few words.
	Reason string `json:"reason,omitempty"`
}

// States of a replica, in the order in which it has them. One that has failed then loads, if it comes back.
const (
	ReplicaProvisioning = "provisioning"
	ReplicaLoading      = "loading"
	ReplicaWarming      = "warming"
	ReplicaReady        = "ready"
	ReplicaDraining     = "draining"
	ReplicaGone         = "gone"
	ReplicaFailed       = "failed"
)

// ReplicaStates are the states of a replica.
var ReplicaStates = []string{ReplicaProvisioning, ReplicaLoading, ReplicaWarming, ReplicaReady, ReplicaDraining,
	ReplicaGone, ReplicaFailed}

// ReplicaState is a change of the state of a replica of a deployment that scales, or whose replicas fail.
//
//wire:record replica_state
type ReplicaState struct {
	Kind string `json:"kind"`
	// Time of the change, in µs since the workload's origin.
	AtUS Micros `json:"at_us"`
	// Deployment of the replica.
	Deployment string `json:"deployment"`
	// Index of the replica in its deployment, from 0.
	Replica Index `json:"replica"`
	// State from now on.
	State string `json:"state" wire:"oneof=ReplicaStates"`
	// Requests that were sent to the replica and have not left it.
	Inflight int64 `json:"inflight"`
}

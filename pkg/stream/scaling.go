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
	// Deployment; those that scale together are joined by +.
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

// Changes of a deployment by one replica.
const (
	AddReplica    = "add"
	RemoveReplica = "remove"
)

// replicaChanges are the values of ScalingChoice.Change.
var replicaChanges = []string{AddReplica, RemoveReplica}

// ScalingChoice is the choice of the deployment that gets or loses one replica, among those that scale together.
//
//wire:record scaling_choice
type ScalingChoice struct {
	Kind string `json:"kind"`
	// Name of the look that decided the number of replicas.
	Decision string `json:"decision"`
	// Time of the choice, in µs since the workload's origin.
	AtUS Micros `json:"at_us"`
	// The deployment that is chosen.
	Deployment string `json:"deployment"`
	// Whether it gets a replica (add) or loses one (remove).
	Change string `json:"change" wire:"oneof=replicaChanges"`
	// The deployments that may change, in the order of the cluster file.
	Considered []ScalingCandidate `json:"considered"`
	// What decided, in a few words.
	Reason string `json:"reason"`
}

// ScalingCandidate is a deployment that may get or lose a replica.
//
//wire:object scaling_candidate
type ScalingCandidate struct {
	// Deployment.
	Deployment string `json:"deployment"`
	// Its replicas that are not draining, before the change.
	Replicas int64 `json:"replicas"`
	// Number that the rule gives it; the highest is chosen. Absent if the rule failed.
	Score *float64 `json:"score,omitempty"`
}

// Changes of the number of replicas that are simulated instead of one that was made.
const (
	ScalingEarlier = "earlier"
	ScalingLater   = "later"
	ScalingNever   = "never"
)

// scalingChanges are the values of ScalingAlternative.Change.
var scalingChanges = []string{ScalingEarlier, ScalingLater, ScalingNever}

// ScalingRegret is the effect that alternatives to one change of the number of replicas would have had: for each, the
// whole run was simulated again.
//
//wire:record scaling_regret
type ScalingRegret struct {
	Kind string `json:"kind"`
	// Name of the decision.
	Decision string `json:"decision" wire:"unique"`
	// Time of the decision, in µs since the workload's origin.
	AtUS Micros `json:"at_us"`
	// Deployment; those that scale together are joined by +.
	Deployment string `json:"deployment"`
	// Replicas before the change, without those that were draining.
	Current int64 `json:"current"`
	// Replicas that were decided.
	Desired int64 `json:"desired"`
	// The alternatives.
	Alternatives []ScalingAlternative `json:"alternatives"`
	// How far the run moves by itself.
	Sensitivity *ScalingSensitivity `json:"sensitivity"`
}

// ScalingAlternative is another time of a change of the number of replicas.
//
//wire:object scaling_alternative
type ScalingAlternative struct {
	// Change: made at the look before (earlier), at the look after (later), or not at this look, after which the
	// auto-scaler decides as it does (never).
	Change string `json:"change" wire:"oneof=scalingChanges"`
	// GPU seconds of the run minus those of the alternative.
	GPUS float64 `json:"gpu_s"`
	// Effect on all requests.
	All *Difference `json:"all"`
	// The effect on all requests is within the sensitivity of the run.
	Insensitive bool `json:"insensitive,omitempty"`
}

// ScalingSensitivity is how far a run moves by itself: the largest absolute changes in controls, which change no
// decision but give one request one output token more.
//
//wire:object scaling_sensitivity
type ScalingSensitivity struct {
	// Number of controls.
	Controls int64 `json:"controls"`
	// Largest net number of requests that gain or lose their targets.
	SLO int64 `json:"slo"`
	// Largest change of the number of completed requests.
	Completed int64 `json:"completed"`
	// Largest change of the sum of the TTFT of all requests, in ms.
	TTFTMS float64 `json:"ttft_ms"`
	// Largest change of the sum of the E2E of all requests, in ms.
	E2EMS float64 `json:"e2e_ms"`
	// Largest change of the GPU seconds.
	GPUS float64 `json:"gpu_s"`
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

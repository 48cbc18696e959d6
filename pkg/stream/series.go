package stream

// Series is the state of a deployment at the end of an interval and what happened in it, with --series. In a
// disaggregated deployment there is one for each pool; requests are those of its replicas.
//
//wire:record series
type Series struct {
	Kind string `json:"kind"`
	// End of the interval, in µs since the workload's origin.
	AtUS Micros `json:"at_us"`
	// Deployment.
	Deployment string `json:"deployment"`
	// Replicas without GPUs yet.
	Provisioning int64 `json:"provisioning"`
	// Replicas that load the model.
	Loading int64 `json:"loading"`
	// Replicas that warm up.
	Warming int64 `json:"warming"`
	// Replicas that are ready.
	Ready int64 `json:"ready"`
	// Replicas that complete their requests before they go.
	Draining int64 `json:"draining"`
	// Replicas that are down.
	Failed int64 `json:"failed"`
	// Requests for the model that arrived in the interval.
	Arrived int64 `json:"arrived"`
	// Requests of the deployment that completed in it.
	Completed int64 `json:"completed"`
	// Requests of the deployment that ended in it otherwise.
	Ended int64 `json:"ended"`
	// Requests in batches.
	Running int64 `json:"running"`
	// Requests in queues of replicas.
	Waiting int64 `json:"waiting"`
	// Requests for the model in flow control.
	FlowWaiting int64 `json:"flow_waiting"`
	// KV blocks in use.
	UsedBlocks int64 `json:"used_blocks"`
	// KV blocks of the replicas that are not gone.
	Blocks int64 `json:"blocks"`
	// Prompt tokens computed in the interval.
	PrefillTokens int64 `json:"prefill_tokens"`
	// Decode tokens computed in the interval.
	DecodeTokens int64 `json:"decode_tokens"`
	// Sum of the TTFT of the requests of the deployment that ended in the interval and have a first token, in µs.
	TTFTSumUS int64 `json:"ttft_sum_us"`
	// Number of these requests.
	TTFTCount int64 `json:"ttft_count"`
}

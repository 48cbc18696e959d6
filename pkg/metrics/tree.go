// Package metrics computes the tree of metrics that runs carry, summaries show and
// fitness expressions read.
//
// Definitions:
//
//   - Denominators are offered requests: a request that was rejected, timed out,
//     failed or left unfinished is a miss. The calls that a broken session did
//     not issue were not offered, but they are misses too: breaking sessions must not
//     improve a score.
//   - Requests in each distribution: TTFT, all whose first token reached the client,
//     in any state; queue, all that entered a batch; E2E, completed requests; TPOT,
//     completed requests with more than one output token; ITL, all gaps between tokens
//     of all requests, pooled.
//   - TTFT and E2E run from arrival to the client's receipt, queue from entry into
//     the replica's queue to the first batch. TPOT is (E2E − TTFT) / (output tokens − 1).
//   - Quantiles interpolate linearly at p·(n−1) of the sorted values. A quantile of
//     fewer than 10/(1−p) values carries a warning. A distribution without values is
//     absent, never 0.
//   - Sums are of integers or of sorted values: the order in which requests end does
//     not change a bit of the result.
//
// A number that is not defined, such as a ratio with denominator 0, is absent.
package metrics

import "blis/pkg/stream"

// Raw is the tree of metrics of a run.
type Raw struct {
	// FromUS is the first arrival, UntilUS the time when the last request became final.
	// DurationS, the denominator of throughputs, is the time between them.
	FromUS    stream.Micros `json:"from_us,omitzero"`
	UntilUS   stream.Micros `json:"until_us,omitzero"`
	DurationS float64       `json:"duration_s"`

	Group
	// Reasons counts the requests that did not complete, by reason.
	Reasons map[string]int64 `json:"reasons,omitempty"`

	ITL      *Distribution `json:"itl,omitempty"`
	Fairness *Fairness     `json:"fairness,omitempty"`
	Cost     *Cost         `json:"cost,omitempty"`
	// Energy is absent unless the cluster has energy, and if the power of a GPU is unknown.
	Energy *Energy `json:"energy,omitempty"`
	// Scale is absent if the number of replicas is constant.
	Scale *Scale `json:"scale,omitempty"`
	// Failures is absent if replicas do not fail.
	Failures *Failures `json:"failures,omitempty"`
	// PD is absent without disaggregated deployments.
	PD *PD `json:"pd,omitempty"`
	// EncodePool is absent without encode replicas.
	EncodePool *EncodePool `json:"encode_pool,omitempty"`
	// Load is absent if no time passes between arrivals, or no call can be served.
	Load *Load `json:"load,omitempty"`
	// Bound is of runs with --clairvoyant, without jitter of step times.
	Bound    *Bound    `json:"bound,omitempty"`
	Replicas []Replica `json:"replicas,omitempty"`
	// Control is absent if the control plane has nothing to report, Shadow if the router
	// does not use prefixes.
	Control *Control `json:"control,omitempty"`
	Shadow  *Shadow  `json:"shadow,omitempty"`

	// Regret is absent if it was not requested.
	Regret *Regret `json:"regret,omitempty"`
	// Anomalies counts anomalies by type; absent if no detector ran.
	Anomalies map[string]int64 `json:"anomalies,omitempty"`
	// DP is absent if no data-parallel ranks run in lockstep.
	DP *DP `json:"dp,omitempty"`
	// LoRA is absent if no adapter was loaded.
	LoRA *LoRA `json:"lora,omitempty"`
	// StructuredOutput is absent if no request has a grammar.
	StructuredOutput *StructuredOutput `json:"structured_output,omitempty"`
	// Pipeline is absent if no replica has several pipeline stages.
	Pipeline *Pipeline `json:"pipeline,omitempty"`
	// Encoder is absent if no request with images or other media ran.
	Encoder *Encoder `json:"encoder,omitempty"`
	// SpecDecode is absent if no drafts were verified.
	SpecDecode *SpecDecode `json:"spec_decode,omitempty"`
	// Sessions is absent if there are none.
	Sessions *Sessions `json:"sessions,omitempty"`

	// Cls, Tenant and Model group the requests by SLO class, tenant and model. A request
	// that names none is in no group.
	Cls     map[string]*Group `json:"cls,omitempty"`
	Tenants map[string]*Group `json:"tenants,omitempty"`
	Models  map[string]*Group `json:"models,omitempty"`

	// Warnings name numbers that rest on too few samples.
	Warnings []string `json:"warnings,omitempty"`
}

// Record is the record of a stream that holds Raw; Kind is stream.KindMetrics.
type Record struct {
	Kind string `json:"kind"`
	Raw
}

// Group holds the metrics that the whole run and each of its groups have.
type Group struct {
	Requests Requests `json:"requests"`
	// AdmissionRate is admitted/offered.
	AdmissionRate *float64      `json:"admission_rate,omitempty"`
	TTFT          *Distribution `json:"ttft,omitempty"`
	TPOT          *Distribution `json:"tpot,omitempty"`
	E2E           *Distribution `json:"e2e,omitempty"`
	Queue         *Distribution `json:"queue,omitempty"`
	// Targeted is what scores, gates and objectives read instead of TTFT, TPOT and E2E; absent where it
	// is the same.
	Targeted *Targeted `json:"targeted,omitempty"`
	// TailBlowup is p99/p50 of E2E.
	TailBlowup *float64 `json:"tail_blowup,omitempty"`
	// Throughput is absent if the run has no duration.
	Throughput *Throughput `json:"throughput,omitempty"`
	// Goodput is absent if no request has targets.
	Goodput *Goodput `json:"goodput,omitempty"`
	KV      KV       `json:"kv"`
	// PreemptionRate is preemptions per request that entered a batch.
	PreemptionRate *float64 `json:"preemption_rate,omitempty"`
}

// Requests counts requests. Offered is the sum of Completed, Rejected, TimedOut, Failed
// and Unfinished. Admitted is absent for a recording without admission times. NotIssued
// is not part of Offered: it counts the calls that broken sessions did not issue because
// an earlier call did not complete. Their model is unknown, so groups by model do not
// count them. Retries are attempts after the first ones, which are not offered again.
type Requests struct {
	Offered    int64  `json:"offered"`
	Admitted   *int64 `json:"admitted,omitempty"`
	Completed  int64  `json:"completed"`
	Rejected   int64  `json:"rejected"`
	TimedOut   int64  `json:"timed_out"`
	Failed     int64  `json:"failed"`
	Unfinished int64  `json:"unfinished"`
	NotIssued  int64  `json:"not_issued"`
	Retries    int64  `json:"retries,omitempty"`
	// ServerRejected are those of the Rejected that servers rejected: max_num_queued_reqs and max_num_queued_tokens.
	ServerRejected int64 `json:"server_rejected,omitempty"`
}

// Distribution summarizes times in ms. Coverage is the share of requests that have such a
// time, among the offered ones that could have it plus the calls that were not issued.
// Only requests with more than one output token could have a TPOT; for ITL it is the
// share of inter-token gaps. Coverage is absent where values do not belong to requests
// (steps, iterations, tool calls).
type Distribution struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`

	Coverage *float64 `json:"coverage,omitempty"`
}

// Throughput is per second of the run's duration and counts completed requests: their
// number, their output tokens, and their prompt and output tokens.
type Throughput struct {
	RPS       float64 `json:"rps"`
	OutputTPS float64 `json:"output_tok_s"`
	TotalTPS  float64 `json:"total_tok_s"`
}

// Goodput covers requests whose class has targets: Offered of them, and Met that met all.
// NotIssued counts the calls with targets that were not issued. Ratio, the SLO
// attainment, is Met/(Offered + NotIssued); RPS is Met per second of the run's duration.
type Goodput struct {
	RPS       *float64 `json:"rps,omitempty"`
	Ratio     float64  `json:"ratio"`
	Met       int64    `json:"met"`
	Offered   int64    `json:"offered"`
	NotIssued int64    `json:"not_issued"`
}

// KV reports the KV caches. UtilMean and UtilMax are shares of all blocks in use, over
// time and replicas, and exist only for the whole run. PrefixHitRatio is the share of
// prompt tokens that requests found cached when they first entered a batch; hits after a
// preemption, mostly the request's own blocks, do not count. It and Preemptions are
// absent for a recording that does not contain them. Tiers is absent if no replica has a tier, and for groups.
type KV struct {
	UtilMean       *float64 `json:"util_mean,omitempty"`
	UtilMax        *float64 `json:"util_max,omitempty"`
	PrefixHitRatio *float64 `json:"prefix_hit_ratio,omitempty"`
	Preemptions    *int64   `json:"preemptions,omitempty"`
	Tiers          *KVTiers `json:"tiers,omitempty"`
	// ThrashingRate is the share of the blocks loaded from the memory of hosts that were stored there less than 10 s
	// before, or whose request had left when their load ended.
	ThrashingRate *float64 `json:"thrashing_rate,omitempty"`
}

// Pipeline reports the stages of pipeline parallelism, over all replicas: StageMS is the time in which stages
// computed, and BubbleShare the share of the time with batches in flight in which a stage did not.
type Pipeline struct {
	StageMS     float64 `json:"stage_ms"`
	BubbleShare float64 `json:"bubble_share"`
}

// LoRA reports adapters: Loads of them into the memory of the host and Copies from there to the GPU. LoadMS is how long
// steps waited for these, over all replicas.
type LoRA struct {
	Loads  int64   `json:"loads"`
	Copies int64   `json:"copies"`
	LoadMS float64 `json:"load_ms"`
}

// StructuredOutput reports grammars: Requests with one came to replicas, which made Compilations. Waits of the requests
// had to wait for theirs, WaitMS in all. The host filled Masks of tokens in MaskMS, for which steps waited StepWaitMS.
type StructuredOutput struct {
	Requests     int64   `json:"requests"`
	Compilations int64   `json:"compilations"`
	Waits        int64   `json:"waits"`
	WaitMS       float64 `json:"wait_ms"`
	Masks        int64   `json:"masks"`
	MaskMS       float64 `json:"mask_ms"`
	StepWaitMS   float64 `json:"step_wait_ms"`
}

// Encoder reports the encoder of images and other media: Items with Tokens were encoded, which took MS of steps, over
// all replicas; the embeddings of Loaded ones came from encode replicas. CacheHits were found in the encoder cache, and
// CacheHitRatio is their share in all of these. PrefixHits were in the
// cached prefix of a prompt and needed no embeddings. Cuts counts chunks that ended before an item since the budget
// or the cache of the encoder had no room for it, and attempts to admit a request that begins with it.
type Encoder struct {
	Items         int64   `json:"items"`
	Tokens        int64   `json:"tokens"`
	CacheHits     int64   `json:"cache_hits"`
	CacheHitRatio float64 `json:"cache_hit_ratio"`
	PrefixHits    int64   `json:"prefix_hits"`
	Cuts          int64   `json:"cuts"`
	MS            float64 `json:"ms"`
	Loaded        int64   `json:"loaded,omitempty"`
}

// SpecDecode reports speculative decoding: DraftTokens were verified, and AcceptedTokens of them were accepted, also
// behind the end of an output. AcceptanceRate is their share, MeanAcceptanceLength the mean number of tokens that a
// sequence gets in a step that verifies drafts.
type SpecDecode struct {
	DraftTokens          int64   `json:"draft_tokens"`
	AcceptedTokens       int64   `json:"accepted_tokens"`
	AcceptanceRate       float64 `json:"acceptance_rate"`
	MeanAcceptanceLength float64 `json:"mean_acceptance_length"`
}

// Fairness reports Jain's index over tenants of completed/offered output tokens.
type Fairness struct {
	Jain float64 `json:"jain"`
}

// Cost reports resources held, busy or idle: replicas and their GPUs, times seconds.
// PerMillion is GPU seconds per million tokens of completed requests, input and output;
// absent if none completed. Total is the price of the GPU seconds, absent without a per_gpu_hour.
type Cost struct {
	GPUS       float64  `json:"gpu_s"`
	ReplicaS   float64  `json:"replica_s"`
	PerMillion *float64 `json:"per_million_tokens,omitempty"`
	Total      *float64 `json:"total,omitempty"`
	// PerMillionWithinSLO and TotalPerMillionWithinSLO are GPU seconds and the price per million tokens of the requests
	// that met their SLO targets; only of clusters that scale or have deployments with prices, and absent if none did.
	PerMillionWithinSLO      *float64 `json:"per_million_tokens_within_slo,omitempty"`
	TotalPerMillionWithinSLO *float64 `json:"total_per_million_tokens_within_slo,omitempty"`
	// Deployments are the parts of deployments, if one has a price of its own or several scale together.
	Deployments map[string]*DeploymentCost `json:"deployment,omitempty"`
}

// DeploymentCost is the part of a deployment in Cost, per million tokens of the requests that it served within their
// targets.
type DeploymentCost struct {
	GPUS                     float64  `json:"gpu_s"`
	ReplicaS                 float64  `json:"replica_s"`
	Total                    *float64 `json:"total,omitempty"`
	PerMillionWithinSLO      *float64 `json:"per_million_tokens_within_slo,omitempty"`
	TotalPerMillionWithinSLO *float64 `json:"total_per_million_tokens_within_slo,omitempty"`
}

// Scale reports the auto-scaler. Ups and Downs are its actions that add and that remove replicas; Oscillations are
// those that came less than 10 minutes after an opposite one for the same deployment. AvgReplicas is the mean number
// of replicas that hold GPUs, Efficiency the share of their time in which a step ran. WaitForCapacityMS is how long a
// request, on average, waited before its first batch while no replica served its model or while replicas started.
type Scale struct {
	Ups          int64    `json:"ups"`
	Downs        int64    `json:"downs"`
	Oscillations int64    `json:"oscillations"`
	AvgReplicas  *float64 `json:"avg_replicas,omitempty"`
	Efficiency   *float64 `json:"efficiency,omitempty"`
	// WaitForCapacityMS is absent if no request was offered.
	WaitForCapacityMS *float64 `json:"wait_for_capacity_ms,omitempty"`
}

// Failures reports replicas that went down: how often, and the attempts at requests that were lost, redirected, and
// refused by a replica that was down. Availability is the share of the replicas' time in which they were not down.
// RecoverMS is how long, on average, it took after a failure until SLO attainment was back within 1 % of what it was,
// over windows of a minute, or until the next failure; NotRecovered counts the failures before which that was not so.
// Without requests that have targets there is no RecoverMS.
type Failures struct {
	Down         int64    `json:"down"`
	Lost         int64    `json:"lost"`
	Redirected   int64    `json:"redirected"`
	Refused      int64    `json:"refused"`
	Availability *float64 `json:"availability,omitempty"`
	RecoverMS    *float64 `json:"recover_ms,omitempty"`
	NotRecovered int64    `json:"not_recovered"`
}

// Load is the offered load over the capacity of the cluster; 1 is saturation (package
// capacity). Offered assumes the cache hits of this run, where a request that entered no
// batch has none; Uncached assumes no hits. The offered duration is from the first to the
// last arrival. Above 16,384 calls an evenly spaced subset is used, which is accurate to
// about 0.3 %.
type Load struct {
	Offered  float64 `json:"offered_over_capacity"`
	Uncached float64 `json:"uncached"`
}

// Bound is what no routing can beat, if all requests complete: each takes at least as long as alone on a replica of the
// fastest deployment, with the tokens cached that its prompt shares with any other. E2EMeanMS also has a lower bound of
// what requests wait for each other. GoodputRatio, absent without SLO targets, is the share of requests that would
// meet theirs alone.
type Bound struct {
	E2EMeanMS    float64  `json:"e2e_mean_ms"`
	GoodputRatio *float64 `json:"goodput_ratio,omitempty"`
}

// Replica reports one replica. Tokens counts the tokens it computed, Requests the
// requests routed to it.
type Replica struct {
	Deployment     string       `json:"deployment"`
	Index          stream.Index `json:"index"`
	Requests       int64        `json:"requests"`
	Completed      int64        `json:"completed"`
	Tokens         int64        `json:"tokens"`
	PrefillTokens  int64        `json:"prefill_tokens"`
	DecodeTokens   int64        `json:"decode_tokens"`
	PrefixHitRatio *float64     `json:"prefix_hit_ratio,omitempty"`
	Preemptions    int64        `json:"preemptions"`
	PeakQueue      int64        `json:"peak_queue"`
	PeakBatch      int64        `json:"peak_batch"`
	// Utilization is the share of its lifetime in which a step ran.
	Utilization *float64 `json:"utilization,omitempty"`
	KVUtilMean  *float64 `json:"kv_util_mean,omitempty"`
	KVUtilMax   *float64 `json:"kv_util_max,omitempty"`
}

// Package metrics turns what became of requests into the tree of metrics that
// runs carry, summaries show and fitness expressions read.
//
// What is counted, and in what:
//
//   - Denominators are offered requests: a request that was rejected, timed
//     out, failed or was left unfinished is a miss, not a gap in the data. The calls
//     that a broken session did not come to make were not offered, but are misses,
//     too: who breaks sessions gains nothing.
//   - Which requests enter a distribution: TTFT, all whose first token the
//     client saw, whatever became of them; queue, all that entered a batch;
//     E2E, the completed; TPOT, the completed with more than one token; ITL,
//     all gaps between the tokens of all requests, pooled.
//   - TTFT and E2E count from arrival to what the client sees, queue from the
//     entry into the replica's queue to the first batch; TPOT is
//     (E2E − TTFT) / (output tokens − 1).
//   - Quantiles interpolate linearly at p·(n−1) of the sorted values. Those of
//     too few values (fewer than 10/(1−p)) carry a warning; without any value
//     the distribution is absent, never 0.
//   - Sums are of integers, or of sorted values: the order in which requests
//     end changes no bit.
//
// A number that is not defined (a ratio with nothing below the line) is absent.
package metrics

import "blis/pkg/stream"

// Raw is the tree of metrics of a run.
type Raw struct {
	// FromUS is the first arrival, UntilUS when the last request became final;
	// DurationS, which throughputs are divided by, lies between.
	FromUS    stream.Micros `json:"from_us,omitzero"`
	UntilUS   stream.Micros `json:"until_us,omitzero"`
	DurationS float64       `json:"duration_s"`

	Group
	// Reasons counts the requests that did not complete by why.
	Reasons map[string]int64 `json:"reasons,omitempty"`

	ITL      *Distribution `json:"itl,omitempty"`
	Fairness *Fairness     `json:"fairness,omitempty"`
	Cost     *Cost         `json:"cost,omitempty"`
	// Load is absent where no time passes between arrivals, or no call can be served.
	Load    *Load     `json:"load,omitempty"`
	Replica []Replica `json:"replica,omitempty"`
	// Control is absent where the control plane has nothing to tell, Shadow where
	// the router does not look at prefixes.
	Control *Control `json:"control,omitempty"`
	Shadow  *Shadow  `json:"shadow,omitempty"`

	// Regret is absent where nobody asked for it.
	Regret *Regret `json:"regret,omitempty"`
	// Anomalies counts episodes by their type; absent where nobody looked for them.
	Anomalies map[string]int64 `json:"anomalies,omitempty"`
	// Sessions is absent without one.
	Sessions *Sessions `json:"session,omitempty"`

	// Cls, Tenant and Model are the parts of the whole by SLO class, tenant and
	// model. A request that names none is in no part.
	Cls    map[string]*Group `json:"cls,omitempty"`
	Tenant map[string]*Group `json:"tenant,omitempty"`
	Model  map[string]*Group `json:"model,omitempty"`

	// Warnings say which numbers rest on too little.
	Warnings []string `json:"warnings,omitempty"`
}

// Record is Raw as a run carries it; Kind is stream.KindMetrics.
type Record struct {
	Kind string `json:"kind"`
	Raw
}

// Group is the part of the tree that the whole and its parts have alike.
type Group struct {
	Requests Requests `json:"requests"`
	// AdmissionRate is admitted/offered.
	AdmissionRate *float64      `json:"admission_rate,omitempty"`
	TTFT          *Distribution `json:"ttft,omitempty"`
	TPOT          *Distribution `json:"tpot,omitempty"`
	E2E           *Distribution `json:"e2e,omitempty"`
	Queue         *Distribution `json:"queue,omitempty"`
	// TailBlowup is p99/p50 of E2E.
	TailBlowup *float64 `json:"tail_blowup,omitempty"`
	// Throughput is absent where the run took no time.
	Throughput *Throughput `json:"throughput,omitempty"`
	// Goodput is absent where no request was promised anything.
	Goodput *Goodput `json:"goodput,omitempty"`
	KV      KV       `json:"kv"`
	// PreemptionRate is preemptions per request that entered a batch.
	PreemptionRate *float64 `json:"preemption_rate,omitempty"`
}

// Requests counts requests: Offered is the sum of the five ends below it but
// for Admitted. Lost are beside them: the calls of broken sessions that never came
// about, because one that they come after did not complete. What model they would
// have asked for is not known: the parts by model leave them out. Admitted is absent
// of a recording that does not say.
type Requests struct {
	Offered    int64  `json:"offered"`
	Admitted   *int64 `json:"admitted,omitempty"`
	Completed  int64  `json:"completed"`
	Rejected   int64  `json:"rejected"`
	TimedOut   int64  `json:"timed_out"`
	Failed     int64  `json:"failed"`
	Unfinished int64  `json:"unfinished"`
	Lost       int64  `json:"lost"`
}

// Distribution is of times in ms. Coverage is the share, of the offered requests that
// could have such a time, lost calls included, of those that have one: of TPOT those
// of more than one token could, of ITL all gaps between tokens. It is absent where no
// request is to be counted (steps, iterations, calls of tools).
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

// Throughput is per second of the run's duration and of completed requests:
// their number, the tokens generated for them, these and their prompts.
type Throughput struct {
	RPS       float64 `json:"rps"`
	OutputTPS float64 `json:"output_tok_s"`
	TotalTPS  float64 `json:"total_tok_s"`
}

// Goodput is about the requests whose class has targets: Offered of them, and
// Met that met all. Lost are those of Requests that had targets. Ratio, the SLO
// attainment, is Met/(Offered + Lost); RPS is Met per second of the run's duration.
type Goodput struct {
	RPS     *float64 `json:"rps,omitempty"`
	Ratio   float64  `json:"ratio"`
	Met     int64    `json:"met"`
	Offered int64    `json:"offered"`
	Lost    int64    `json:"lost"`
}

// KV is about the block caches. UtilMean and UtilMax are shares of all blocks
// in use, over the time and the replicas, and are of the whole run only.
// PrefixHitRatio is the prompt tokens that requests found cached when they
// first entered a batch, of all prompt tokens of these requests; what a request
// finds when it comes back after a preemption, mostly its own, is not counted. It and
// Preemptions are absent of a recording that does not say.
type KV struct {
	UtilMean       *float64 `json:"util_mean,omitempty"`
	UtilMax        *float64 `json:"util_max,omitempty"`
	PrefixHitRatio *float64 `json:"prefix_hit_ratio,omitempty"`
	Preemptions    *int64   `json:"preemptions,omitempty"`
}

// Fairness: Jain is the index of Jain over tenants of completed/offered output
// tokens.
type Fairness struct {
	Jain float64 `json:"jain"`
}

// Cost is what was held, busy or not: replicas and their GPUs, times seconds.
// PerMillion is in GPU seconds, whose price is everybody's own: those for a
// million tokens of completed requests, prompts and answers; absent without one.
type Cost struct {
	GPUS       float64  `json:"gpu_s"`
	ReplicaS   float64  `json:"replica_s"`
	PerMillion *float64 `json:"per_million_tokens,omitempty"`
}

// Load is what was asked of the cluster over what it can serve, of which 1 is
// saturation (package load): Offered with as much of the prompts found in caches as
// was in this run, where a request that entered no batch found nothing; Uncached with
// nothing found. The time offered is that between the first and the last arrival; of
// more than 16,384 calls it is of some, evenly spread, whose load is within 0.3 % or so.
type Load struct {
	Offered  float64 `json:"offered_over_capacity"`
	Uncached float64 `json:"uncached"`
}

// Replica is one replica's part. Tokens are those that it computed; requests
// those that were sent to it.
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
	// Utilization is the share of its life in which a step ran.
	Utilization *float64 `json:"utilization,omitempty"`
	KVUtilMean  *float64 `json:"kv_util_mean,omitempty"`
	KVUtilMax   *float64 `json:"kv_util_max,omitempty"`
}

// Package workloadstats describes workloads: the number of requests and sessions, burstiness, lengths, shared prefixes.
//
//   - An arrival is a request or a session. Statistics of time (rate, gaps, counts per minute) are about arrivals,
//     because the simulation decides when the later calls of a session come.
//   - A call is a model call: a request, or a step of a session that calls no tool. Lengths are per call.
//   - Quantiles interpolate linearly at p·(n−1). Standard deviations are those of the population (divided by n).
//   - Undefined values are absent.
package workloadstats

import "blis/pkg/stream"

// Description describes a workload.
type Description struct {
	// Arrivals is Requests plus Sessions; Calls counts model calls.
	Arrivals int64 `json:"arrivals"`
	Requests int64 `json:"requests"`
	Sessions int64 `json:"sessions"`
	Calls    int64 `json:"calls"`
	// FromUS is the first arrival, UntilUS the last, DurationS the time between them and Rate the
	// arrivals per second.
	FromUS    stream.Micros `json:"from_us,omitzero"`
	UntilUS   stream.Micros `json:"until_us,omitzero"`
	DurationS float64       `json:"duration_s"`
	Rate      *float64      `json:"rate,omitempty"`
	// CV is the coefficient of variation of the gaps between arrivals, 1 for Poisson. Fano is
	// variance over mean of the counts in the Minutes complete minutes from the first arrival, 1
	// for Poisson.
	CV       *float64 `json:"cv,omitempty"`
	Fano     *float64 `json:"fano,omitempty"`
	Minutes  int64    `json:"minutes"`
	Timeline Timeline `json:"timeline"`

	Lengths
	Prefix *Prefix `json:"prefix,omitempty"`

	// Cls, Tenant and Model break the workload down by SLO class, tenant and model. Calls without a
	// name are in no part.
	Cls    map[string]*Part `json:"cls,omitempty"`
	Tenant map[string]*Part `json:"tenant,omitempty"`
	Model  map[string]*Part `json:"model,omitempty"`

	Session *Sessions `json:"session,omitempty"`
}

// Lengths describes the lengths of calls, in tokens. Correlation is Pearson's coefficient of input
// and output.
type Lengths struct {
	Input       *Distribution `json:"input,omitempty"`
	Output      *Distribution `json:"output,omitempty"`
	Correlation *float64      `json:"correlation,omitempty"`
}

// Part is the part of a workload of one class, tenant or model. A session arrives in the part of
// its own model; its calls may be in others.
type Part struct {
	Arrivals int64    `json:"arrivals"`
	Calls    int64    `json:"calls"`
	Rate     *float64 `json:"rate,omitempty"`
	CV       *float64 `json:"cv,omitempty"`
	Lengths
}

// Distribution describes a distribution of integers. CV is the coefficient of variation.
type Distribution struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	CV    float64 `json:"cv"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// Prefix describes how much of the prompts an infinite, cluster-wide prefix cache would hit that
// holds the prompts and outputs of all earlier calls. Calls are in the order of arrival; the steps
// of a session are at its arrival, in order. Outputs count if the workload identifies them (see
// stream.Segment), without their last token, which no server computes.
type Prefix struct {
	// Identified is the share of prompt tokens that belong to a segment. Other tokens are unique.
	Identified float64 `json:"prefix_identified_ratio"`
	// Hit is the share of prompt tokens that were there before. BlockHit counts whole blocks of
	// BlockSize tokens; as in servers, the last token of a prompt is always computed.
	Hit       float64 `json:"hit_ratio"`
	BlockHit  float64 `json:"block_hit_ratio"`
	BlockSize int64   `json:"block_size"`
}

// Sessions describes session records and the requests that name a session.
type Sessions struct {
	// Workflows counts session records by their workflow label.
	Workflows map[string]int64 `json:"workflows,omitempty"`
	// Per session: model calls, tool calls, the longest path through its steps, and the maximum
	// number of steps that directly follow one step or begin the session.
	Calls  *Distribution `json:"calls,omitempty"`
	Tools  *Distribution `json:"tools,omitempty"`
	Depth  *Distribution `json:"depth,omitempty"`
	FanOut *Distribution `json:"fan_out,omitempty"`
	// ThinkS is the delay of steps with dependencies, ToolS the latency of tool calls, in s.
	ThinkS *Distribution `json:"think_s,omitempty"`
	ToolS  *Distribution `json:"tool_s,omitempty"`
	// SessionHit is the share of prompt tokens that the same session had before, in whole blocks as
	// in Prefix. SessionHitMedian is the median over sessions.
	SessionHit       *float64 `json:"session_hit_ratio,omitempty"`
	SessionHitMedian *float64 `json:"session_hit_ratio_p50,omitempty"`
	// Turns is the number of requests per conversation that requests name. TurnsSessionHit is the
	// share of their prompt tokens that the conversation had before.
	Turns           *Distribution `json:"turns,omitempty"`
	TurnsSessionHit *float64      `json:"turns_session_hit_ratio,omitempty"`
}

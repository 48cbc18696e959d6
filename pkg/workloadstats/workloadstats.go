// Package workloadstats describes workloads: how many requests and sessions they
// offer, how bursty, how long, how alike.
//
// What is counted, and in what:
//
//   - An arrival is a request, or a session as a whole. What is said of time
//     (rate, gaps, counts a minute) is about arrivals: when the later calls of a
//     session come is decided in the simulation.
//   - A call is a call of a model: a request, or a step of a session that calls
//     no tool. Lengths are of calls.
//   - Quantiles interpolate linearly at p·(n−1), deviations are those of the
//     whole population (divided by n).
//   - A number that is not defined is absent.
package workloadstats

import "blis/pkg/stream"

// Description is what there is to say of a workload.
type Description struct {
	// Arrivals are Requests and Sessions; Calls are calls of models.
	Arrivals int64 `json:"arrivals"`
	Requests int64 `json:"requests"`
	Sessions int64 `json:"sessions"`
	Calls    int64 `json:"calls"`
	// FromUS is the first arrival, UntilUS the last, DurationS the time between
	// them and Rate the arrivals per second of it.
	FromUS    stream.Micros `json:"from_us,omitzero"`
	UntilUS   stream.Micros `json:"until_us,omitzero"`
	DurationS float64       `json:"duration_s"`
	Rate      *float64      `json:"rate,omitempty"`
	// CV is the coefficient of variation of the gaps between arrivals: deviation
	// by mean, 1 for Poisson. Fano is the variance by the mean of the counts of
	// the Minutes whole minutes from the first arrival: 1 for Poisson.
	CV       *float64 `json:"cv,omitempty"`
	Fano     *float64 `json:"fano,omitempty"`
	Minutes  int64    `json:"minutes"`
	Timeline Timeline `json:"timeline"`

	Lengths
	Prefix *Prefix `json:"prefix,omitempty"`

	// Cls, Tenant and Model are the parts of the whole by SLO class, tenant and
	// model. What names none is in no part.
	Cls    map[string]*Part `json:"cls,omitempty"`
	Tenant map[string]*Part `json:"tenant,omitempty"`
	Model  map[string]*Part `json:"model,omitempty"`

	Session *Sessions `json:"session,omitempty"`
}

// Lengths are those of calls, in tokens. Correlation is Pearson's coefficient of
// input and output.
type Lengths struct {
	Input       *Distribution `json:"input,omitempty"`
	Output      *Distribution `json:"output,omitempty"`
	Correlation *float64      `json:"correlation,omitempty"`
}

// Part is the part of a workload that one class, tenant or model has. A session
// arrives in the part of its own model; its calls may be in others.
type Part struct {
	Arrivals int64    `json:"arrivals"`
	Calls    int64    `json:"calls"`
	Rate     *float64 `json:"rate,omitempty"`
	CV       *float64 `json:"cv,omitempty"`
	Lengths
}

// Distribution is of whole numbers. CV is deviation by mean.
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

// Prefix says how much of the prompts was there before: what a cache would have
// that never forgets, is one for the whole cluster, and holds the prompts and
// answers of all calls before, in the order of arrival; the steps of a session
// stand at its arrival, in their order. Answers count where the workload names
// what they follow (see stream.Segment), without their last token, which no
// server computes.
type Prefix struct {
	// Identified is the share of the prompt tokens that have a name. Others are unique.
	Identified float64 `json:"named_ratio"`
	// Hit is the share that was there before, to the token; BlockHit in whole
	// blocks of BlockSize tokens, where the last token of a prompt is always
	// computed, as servers do.
	Hit       float64 `json:"hit_ratio"`
	BlockHit  float64 `json:"block_hit_ratio"`
	BlockSize int64   `json:"block_size"`
}

// Sessions are about sessions: session records, and the requests that name one.
type Sessions struct {
	// Workflows counts the session records by what they say they are.
	Workflows map[string]int64 `json:"workflows,omitempty"`
	// Of each session: calls of models, calls of tools, the longest way through
	// its steps, and the most steps that follow right after one step or begin with
	// the session.
	Calls  *Distribution `json:"calls,omitempty"`
	Tools  *Distribution `json:"tools,omitempty"`
	Depth  *Distribution `json:"depth,omitempty"`
	FanOut *Distribution `json:"fan_out,omitempty"`
	// ThinkS are the delays, in s, of the steps that have one after others; ToolS
	// how long calls of tools take.
	ThinkS *Distribution `json:"think_s,omitempty"`
	ToolS  *Distribution `json:"tool_s,omitempty"`
	// SessionHit is the share of the prompt tokens that the session itself had before,
	// in whole blocks as in Prefix; OwnMedian is the median of the sessions'
	// shares.
	SessionHit       *float64 `json:"own_hit_ratio,omitempty"`
	SessionHitMedian *float64 `json:"own_hit_ratio_p50,omitempty"`
	// Turns are of the conversations that requests name: how many requests each
	// has. TurnsOwn is the share of their prompt tokens that the conversation
	// had before.
	Turns           *Distribution `json:"turns,omitempty"`
	TurnsSessionHit *float64      `json:"turns_own_hit_ratio,omitempty"`
}

package sweep

import (
	"encoding/json"

	"blis/pkg/fitness"
	"blis/pkg/metrics"
)

// kindResult is the kind of a Result.
const kindResult = "result"

// Result is the record of one run of a sweep.
type Result struct {
	Kind string `json:"kind"`
	// Index is the place of the run in the sweep, from 0.
	Index int `json:"index"`
	// ID identifies what determines the run: its header with the configuration, and the workload.
	ID string `json:"id,omitempty"`
	// Set, Policies, Workload, Rate and Seed are the point. Rate is absent if the workload has its own.
	Set      map[string]any `json:"set,omitempty"`
	Policies string         `json:"policies,omitempty"`
	Workload string         `json:"workload,omitempty"`
	Rate     float64        `json:"rate,omitempty"`
	Seed     uint64         `json:"seed"`
	// Prefix is the number of first requests of the workload that ran, 0 if all did: others were better in a round of
	// Halving.
	Prefix int `json:"prefix,omitempty"`
	// WorkloadDigest and ConfigDigest are as in the run; Policy is the digest of its policies.
	WorkloadDigest string `json:"workload_digest,omitempty"`
	ConfigDigest   string `json:"config_digest,omitempty"`
	Policy         string `json:"policy,omitempty"`
	// Stopped says why the run ended early, absent if it did not. Then there are no metrics, and the score is 0.
	Stopped *Stopped `json:"stopped,omitempty"`
	// Metrics is the tree of the run, absent if there was none.
	Metrics json.RawMessage `json:"metrics,omitempty"`
	// Fitness is absent if none was asked for. A run without metrics has score 0.
	Fitness  *fitness.Result `json:"fitness,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
	// Error says why there are no metrics, or why the fitness does not apply.
	Error string `json:"error,omitempty"`
}

// Stopped is a gate that could not hold any more, and when that was certain.
type Stopped struct {
	// By is what ended the run: gate.
	By string `json:"by"`
	// Gate is its name, Expr the condition.
	Gate string `json:"gate"`
	Expr string `json:"expr"`
	// AtUS is the simulated time.
	AtUS int64 `json:"at_us"`
}

// failed reports whether the run has no result.
func (r *Result) failed() bool { return r.Metrics == nil && r.Stopped == nil }

// Values returns all numbers of the metrics by path.
func (r *Result) Values() ([]metrics.Value, error) {
	if r.Metrics == nil {
		return nil, nil
	}
	raw, err := decodeMetrics(r.Metrics)
	if err != nil {
		return nil, err
	}
	return metrics.Values(raw), nil
}

func decodeMetrics(text json.RawMessage) (*metrics.Raw, error) {
	record := emptyRecord()
	if err := json.Unmarshal(text, record); err != nil {
		return nil, err
	}
	return &record.Raw, nil
}

package metrics

import (
	"maps"

	"blis/pkg/stream"
)

// missing is a time in µs that a request does not have.
const missing = -1

// elapsed returns the µs between two times, missing if one of them is.
func elapsed(from, to stream.Micros) int64 {
	if from.IsZero() || to < from {
		return missing
	}
	return int64(to - from)
}

// tpot returns the time per output token after the first, in ms; ok is false if there is
// none.
func tpot(ttft, e2e, outputTokens int64) (ms float64, ok bool) {
	if ttft == missing || e2e == missing || outputTokens <= 1 {
		return 0, false
	}
	return stream.TPOT(e2e-ttft, outputTokens), true
}

// TargetedLatencies are the latencies that targets are for, by their names in metrics.
var TargetedLatencies = []string{"ttft", "tpot", "e2e"}

// Latency returns one of TargetedLatencies of a request in ms; ok is false if it has none.
func Latency(o *stream.Outcome, name string) (ms float64, ok bool) {
	ttft, e2e := elapsed(o.Began(), o.FirstTokenUS), elapsed(o.Began(), o.CompletedUS)
	switch name {
	case "ttft":
		return float64(ttft) / 1000, ttft != missing
	case "tpot":
		return tpot(ttft, e2e, o.OutputTokens)
	}
	return float64(e2e) / 1000, e2e != missing
}

// SLOMet reports whether the request met all targets in t; equality meets a target. A
// request that did not complete missed them. Latencies count from the first attempt. A request of one output token
// meets every TPOT target. Without targets the result is nil. The result must not be modified.
func SLOMet(o *stream.Outcome, t stream.Targets) *bool {
	if t == (stream.Targets{}) {
		return nil
	}
	ttft, e2e := elapsed(o.Began(), o.FirstTokenUS), elapsed(o.Began(), o.CompletedUS)
	if o.State != stream.StateCompleted || ttft == missing || e2e == missing {
		return stream.BoolPtr(false)
	}
	return stream.BoolPtr(Meets(t, ttft, e2e, o.OutputTokens))
}

// Meets reports whether a completed request with these latencies in µs meets all targets in t.
func Meets(t stream.Targets, ttft, e2e, outputTokens int64) bool {
	perToken, _ := tpot(ttft, e2e, outputTokens)
	return meets(float64(ttft)/1000, t.TTFTMS) && meets(perToken, t.TPOTMS) && meets(float64(e2e)/1000, t.E2EMS)
}

// MissedByNow reports whether a request that is not final has already missed a target of
// t. It assumes that all outstanding tokens arrive now.
func MissedByNow(o *stream.Outcome, t stream.Targets, now stream.Micros) bool {
	cut := *o
	cut.State, cut.CompletedUS = stream.StateCompleted, now
	if cut.FirstTokenUS.IsZero() {
		cut.FirstTokenUS = now
	}
	met := SLOMet(&cut, t)
	return met != nil && !*met
}

// meets reports whether ms meets the target, which is 0 if there is none.
func meets(ms, target float64) bool { return target == 0 || ms <= target }

// WithTargets returns the tree with everything that depends on targets replaced from by,
// the metrics of the same requests under other targets.
func (r *Raw) WithTargets(by *Raw) *Raw {
	judged := *r
	judged.Goodput, judged.Targeted = by.Goodput, by.Targeted
	if r.Sessions != nil && by.Sessions != nil {
		sessions := *r.Sessions
		sessions.Attainment = by.Sessions.Attainment
		judged.Sessions = &sessions
	}
	judged.Cls, judged.Tenants = groupsWithTargets(r.Cls, by.Cls), groupsWithTargets(r.Tenants, by.Tenants)
	judged.Models = groupsWithTargets(r.Models, by.Models)
	return &judged
}

func groupsWithTargets(groups, by map[string]*Group) map[string]*Group {
	groups = maps.Clone(groups)
	for name, g := range groups {
		group := *g
		group.Goodput, group.Targeted = nil, nil
		if other := by[name]; other != nil {
			group.Goodput, group.Targeted = other.Goodput, other.Targeted
		}
		groups[name] = &group
	}
	return groups
}

// Package scale decides how many replicas a deployment has. It computes a recommendation from what an auto-scaler
// sees, limits how fast the number changes, and slows the steps of a replica that warms up.
//
// The rules are those of Kubernetes' Horizontal Pod Autoscaler (pkg/controller/podautoscaler, v1.34).
package scale

import "math"

// slack keeps rounding errors of quotients from changing a decision: a ratio at the edge of the tolerance is inside,
// and a recommendation of 6.0000000001 replicas is 6.
const slack = 1e-9

// Fleet is what an auto-scaler sees of the replicas of a deployment that are not draining.
type Fleet struct {
	// Values holds the signal of each ready or warming replica.
	Values []float64
	// Loading replicas run and have no value yet. Provisioning replicas do not run yet.
	Loading, Provisioning int
}

// Replicas is the number of replicas.
func (f *Fleet) Replicas() int { return len(f.Values) + f.Loading + f.Provisioning }

// Target is the value of a signal that an auto-scaler aims at. Within the tolerance, a fraction of it, the number of
// replicas does not change.
type Target struct{ Value, Tolerance float64 }

// isMet reports whether a ratio to the target is inside the tolerance.
func (t Target) isMet(ratio float64) bool {
	return 1-t.Tolerance-slack <= ratio && ratio <= 1+t.Tolerance+slack
}

// ForMean recommends a number of replicas at which the mean of the signal meets the target.
//
// Replicas without a value count so that they weaken a change: those that load have the target's value if the ratio
// of the mean to the target is below 1, else 0. Those that do not run yet count 0 if it is above 1; else they do not
// count. If they turn the direction of the change, there is none (calcPlainMetricReplicas in
// replica_calculator.go).
func (t Target) ForMean(f *Fleet) int {
	current := f.Replicas()
	if len(f.Values) == 0 {
		return current
	}
	sum := 0.0
	for _, x := range f.Values {
		sum += x
	}
	counted := len(f.Values)
	ratio := sum / float64(counted) / t.Value
	if f.Loading == 0 && (f.Provisioning == 0 || ratio <= 1) {
		if t.isMet(ratio) {
			return current
		}
		return ceil(ratio * float64(counted))
	}
	counted += f.Loading
	switch {
	case ratio < 1:
		sum += float64(t.Value * float64(f.Loading))
	case ratio > 1:
		counted += f.Provisioning
	}
	corrected := sum / float64(counted) / t.Value
	if t.isMet(corrected) || (ratio < 1) != (corrected < 1) {
		return current
	}
	desired := ceil(corrected * float64(counted))
	if corrected < 1 {
		return min(desired, current)
	}
	return max(desired, current)
}

// ForTotal recommends a number of replicas that have the target's value each if they share total. current is the
// number of replicas, of which 0 become more when total exceeds activation (GetObjectMetricReplicas with an average
// value, and KEDA's activation).
func (t Target) ForTotal(total float64, current int, activation float64) int {
	if current == 0 {
		if total <= activation {
			return 0
		}
	} else if t.isMet(total / (t.Value * float64(current))) {
		return current
	}
	return ceil(total / t.Value)
}

// ceil rounds up to an int. Above maxReplicas it is maxReplicas.
func ceil(x float64) int { return int(math.Ceil(min(x, maxReplicas) - slack)) }

// maxReplicas is more than any deployment has.
const maxReplicas = 1 << 30

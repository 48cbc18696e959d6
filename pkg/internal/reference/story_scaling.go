package reference

import (
	"fmt"
	"strconv"
)

// defaultScaling is an auto-scaler of a story: it keeps the mean of inflight at 1.
func defaultScaling() *Scaling {
	return &Scaling{Min: 1, Max: 16, Policy: "target-utilization", Signal: "inflight", Target: 1, Tolerance: 0.1,
		Step: 1, IntervalUS: 1000, Select: "max", Curve: "linear", Factor: 1.5,
		Predict: Prediction{TTFTMS: 500, TPOTMS: 50, MaxChange: 8, Level: 1, Trend: 0.1, Noise: 10, MinPoints: 5}}
}

// set sets a key of the scale command: min=1, max=16, policy=target-utilization, signal=inflight, target=1,
// tolerance=0.1, up=0, down=0, step=1 and factor=1.5; interval=1000, up_window=0, down_window=0, cooldown=0,
// provision=0, load=0, warmup=0, timeout=0 and hold=0, in µs; curve=linear, warming=routed (or waits) and drain=wait
// (or immediate, redirect); activation=0; formula and trigger, numbers in Formulas and Conditions; of a threshold
// across=mean (or each), settle=false, cancel_starting=false, inclusive=false and check_removal=false; of
// predicted-load predictor=constant (or kalman), ttft_ms=500, tpot_ms=50, max_change=8 and min_points=5. Of a fleet,
// rule=0 is a number in PlacementRules, and each fleet=1:2:4 adds a deployment with 1 replica at first, 2 at most, and
// a price of 4.
func (s *Scaling) set(key, value string) (err error) {
	whole := map[string]*int{"min": &s.Min, "max": &s.Max, "step": &s.Step, "formula": &s.Formula,
		"trigger": &s.Trigger, "activation": &s.Activation, "rule": &s.Rule, "max_change": &s.Predict.MaxChange,
		"min_points": &s.Predict.MinPoints}
	us := map[string]*int64{"interval": &s.IntervalUS, "up_window": &s.UpWindowUS, "down_window": &s.DownWindowUS,
		"cooldown": &s.CooldownUS, "provision": &s.ProvisionUS, "load": &s.LoadUS, "warmup": &s.WarmupUS,
		"timeout": &s.TimeoutUS, "hold": &s.HoldUS}
	real := map[string]*float64{"target": &s.Target, "tolerance": &s.Tolerance, "up": &s.Up, "down": &s.Down,
		"factor": &s.Factor, "ttft_ms": &s.Predict.TTFTMS, "tpot_ms": &s.Predict.TPOTMS}
	switch {
	case whole[key] != nil:
		*whole[key], err = strconv.Atoi(value)
	case us[key] != nil:
		*us[key], err = strconv.ParseInt(value, 10, 64)
	case real[key] != nil:
		*real[key], err = strconv.ParseFloat(value, 64)
	case key == "policy":
		s.Policy, err = value, oneOf(value, "target-utilization", "queue-depth", "average-value", "threshold",
			"slo-attainment", "predicted-load", "expression", "tree", "oscillator")
	case key == "signal":
		s.Signal, err = value, oneOf(value, "kv_util", "utilization", "queue_depth", "running", "inflight")
	case key == "predictor":
		s.Predict.Kalman, err = value == "kalman", oneOf(value, "constant", "kalman")
	case key == "curve":
		s.Curve, err = value, oneOf(value, "linear", "exponential", "step")
	case key == "warming":
		s.WarmingWaits, err = value == "waits", oneOf(value, "routed", "waits")
	case key == "drain":
		s.Immediate, s.Redirect = value == "immediate", value == "redirect"
		err = oneOf(value, "wait", "immediate", "redirect")
	case key == "across":
		s.Each, err = value == "each", oneOf(value, "mean", "each")
	case key == "settle", key == "cancel_starting", key == "inclusive", key == "check_removal":
		*map[string]*bool{"settle": &s.Settle, "cancel_starting": &s.Cancel, "inclusive": &s.Inclusive,
			"check_removal": &s.CheckRemoval}[key], err = value == "true", oneOf(value, "true", "false")
	case key == "fleet":
		m := Member{Seqs: 256, Slower: 1, Min: 1}
		_, err = fmt.Sscanf(value, "%d:%d:%g", &m.Start, &m.Max, &m.Price)
		if len(s.Fleet) == 0 {
			s.Min, s.Max = 0, 0
		}
		s.Fleet, s.Min, s.Max = append(s.Fleet, m), s.Min+m.Min, s.Max+m.Max
	default:
		err = fmt.Errorf("unknown key")
	}
	return err
}

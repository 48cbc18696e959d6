package reference

import (
	"fmt"
	"strconv"
)

// defaultFailures are those of a story: replicas come back at once, without warming up.
func defaultFailures() *Failures {
	return &Failures{Start: Scaling{Curve: "linear", Factor: 1.5}, Probes: 3}
}

// set sets a key of the failures command: load=0, warmup=0 and probe=0 (interval, none), in µs; probes=3; curve=linear,
// factor=1.5 and warming=routed (or waits) as for scale.
func (f *Failures) set(key, value string) (err error) {
	switch key {
	case "probe":
		f.ProbeUS, err = strconv.ParseInt(value, 10, 64)
	case "probes":
		f.Probes, err = strconv.Atoi(value)
	case "load", "warmup", "curve", "factor", "warming":
		err = f.Start.set(key, value)
	default:
		err = fmt.Errorf("unknown key")
	}
	return err
}

// set sets a key of the fail command: at and for in µs (default: for good), replica=0, inflight=fail (or redirect),
// pool=decode (or prefill), kind=down (or slow, with a factor, or partition, with for).
func (f *Failure) set(key, value string) (err error) {
	switch key {
	case "at":
		f.AtUS, err = strconv.ParseInt(value, 10, 64)
	case "for":
		f.ForUS, err = strconv.ParseInt(value, 10, 64)
	case "replica":
		f.Replica, err = strconv.Atoi(value)
	case "factor":
		f.Factor, err = strconv.ParseFloat(value, 64)
	case "kind":
		f.Cut, err = value == "partition", oneOf(value, "down", "slow", "partition")
	case "pool":
		f.Prefill, err = value == "prefill", oneOf(value, "prefill", "decode")
	case "inflight":
		f.Redirect, err = value == "redirect", oneOf(value, "fail", "redirect")
	default:
		err = fmt.Errorf("unknown key")
	}
	return err
}

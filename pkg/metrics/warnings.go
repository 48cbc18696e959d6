package metrics

import (
	"fmt"
	"strings"
)

// MinSamples returns the number of samples that a percentile needs to be reliable:
// 10/(1−p). percent is from 0 to 99.
func MinSamples(percent int64) int64 { return 1000 / (100 - percent) }

// percentiles are the percentiles of a Distribution.
var percentiles = []int64{50, 90, 95, 99}

// warnings reports failed policy expressions, and percentiles of too few samples: one
// line for each distribution of the whole run, one for each grouping.
func warnings(r *Raw, groupings []*grouping) []string {
	var all []string
	if failed := r.Control.Warning(); failed != "" {
		all = append(all, failed)
	}
	warn := func(name string, d *Distribution) {
		var tooFew []string
		for _, p := range percentiles {
			if d != nil && d.Count < MinSamples(p) {
				tooFew = append(tooFew, fmt.Sprintf("p%d (needs %d)", p, MinSamples(p)))
			}
		}
		if tooFew != nil {
			all = append(all, fmt.Sprintf("%s: %d samples are too few for %s", name, d.Count,
				strings.Join(tooFew, ", ")))
		}
	}
	for _, m := range latencies {
		warn(m.name, *m.field(&r.Group))
	}
	warn("itl", r.ITL)
	for _, p := range groupings {
		if line := p.warning(); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// warning reports how many groups have a percentile of too few samples, and which has the
// fewest; "" if none has.
func (p *grouping) warning() string {
	needs := MinSamples(percentiles[len(percentiles)-1])
	few, fewest, what := 0, needs, ""
	for i, g := range p.groups {
		short := false
		for _, m := range latencies {
			d := *m.field(g)
			if d == nil || d.Count >= needs {
				continue
			}
			short = true
			if d.Count < fewest {
				fewest, what = d.Count, fmt.Sprintf("%s of %s", m.name, p.names[i])
			}
		}
		if short {
			few++
		}
	}
	if few == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %d of %d groups have percentiles of too few samples (p99 needs %d; minimum %d: %s)",
		p.name, few, len(p.groups), needs, fewest, what)
}

// DeploymentWarnings are the warnings that concern a deployment, such as extrapolated step times. Only metrics that a
// simulation wrote itself have them.
func (r *Raw) DeploymentWarnings() (about []string) {
	for _, w := range r.Warnings {
		if strings.HasPrefix(w, "deployment ") {
			about = append(about, w)
		}
	}
	return about
}

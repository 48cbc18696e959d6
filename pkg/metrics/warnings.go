package metrics

import (
	"fmt"
	"strings"
)

// Needs returns how many samples a percentile takes to be trusted: 10/(1−p).
// percent is from 0 to 99.
func Needs(percent int64) int64 { return 1000 / (100 - percent) }

// percentiles are those that a Distribution has.
var percentiles = []int64{50, 90, 95, 99}

// warnings says which expressions failed, and which percentiles rest on too few
// samples: a line for each distribution of the whole, one for each part.
func warnings(r *Raw, parts []*part) []string {
	var all []string
	if failed := r.Control.Warning(); failed != "" {
		all = append(all, failed)
	}
	add := func(name string, d *Distribution) {
		var few []string
		for _, p := range percentiles {
			if d != nil && d.Count < Needs(p) {
				few = append(few, fmt.Sprintf("p%d (needs %d)", p, Needs(p)))
			}
		}
		if few != nil {
			all = append(all, fmt.Sprintf("%s: %d samples are few for %s", name, d.Count, strings.Join(few, ", ")))
		}
	}
	for _, m := range measures {
		add(m.written, *m.branch(&r.Group))
	}
	add("itl", r.ITL)
	for _, p := range parts {
		if line := p.warning(); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// warning says how many groups have a percentile of too few samples, and which
// has the fewest; "" if none has.
func (p *part) warning() string {
	needs := Needs(percentiles[len(percentiles)-1])
	few, fewest, what := 0, needs, ""
	for i, g := range p.groups {
		short := false
		for _, m := range measures {
			d := *m.branch(g)
			if d == nil || d.Count >= needs {
				continue
			}
			short = true
			if d.Count < fewest {
				fewest, what = d.Count, fmt.Sprintf("%s of %s", m.written, p.names[i])
			}
		}
		if short {
			few++
		}
	}
	if few == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %d of %d have percentiles of few samples (p99 needs %d; the fewest, %d, are %s)",
		p.written, few, len(p.groups), needs, fewest, what)
}

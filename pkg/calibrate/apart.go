package calibrate

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"blis/pkg/recording"
)

// mostApart is by how many points the errors of mean E2E of recordings that are fitted
// together may lie on both sides of 0.
const mostApart = 10

// off is by how many % the mean E2E of what is held back of a recording is simulated off.
type off struct {
	file            *recording.Recording
	measured, is, n float64
}

func (o *off) percent() float64 { return 100 * (o.is/o.measured - 1) }

// warnApart warns where recordings that were fitted together are, of what is held back of
// them, one simulated too slow and another too fast: no coefficients are those of both.
func (r *Report) warnApart() {
	var all []off
	for i := range r.parts {
		p := &r.parts[i]
		if p.simulated == nil || !slices.Contains(r.setup.files, p.run.file) {
			continue // a recording that only judges
		}
		k := slices.IndexFunc(all, func(o off) bool { return o.file == p.run.file })
		if k < 0 {
			k = len(all)
			all = append(all, off{file: p.run.file})
		}
		for i, in := range p.in {
			if m, s := p.run.measured[i].e2e, p.simulated[i].e2e; in && !math.IsNaN(m) && !math.IsNaN(s) {
				all[k].measured, all[k].is, all[k].n = all[k].measured+m, all[k].is+s, all[k].n+1
			}
		}
	}
	all = slices.DeleteFunc(all, func(o off) bool { return o.n == 0 })
	if len(all) < 2 {
		return
	}
	low, high := math.Inf(1), math.Inf(-1)
	var told []string
	for i := range all {
		percent := all[i].percent()
		low, high = min(low, percent), max(high, percent)
		told = append(told, fmt.Sprintf("%s by %+.1f %%", filepath.Base(all[i].file.Path), percent))
	}
	if low < 0 && high > 0 && high-low > mostApart {
		r.setup.warnf("recordings disagree: of what is held back, mean E2E is off of %s: are they of one server, with the same settings?", strings.Join(told, ", "))
	}
}

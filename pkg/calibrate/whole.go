package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"blis/pkg/stream"
)

// played is what the requests of a run saw when it was played with the coefficients of
// a report: unseen of those that were not.
type played struct {
	run       *run
	simulated []seen
}

// keep keeps what requests in saw, beside what is known of the run's others.
func (r *Report) keep(of *run, simulated []seen, in []bool) {
	i := slices.IndexFunc(r.played, func(p played) bool { return p.run == of })
	if i < 0 {
		i = len(r.played)
		r.played = append(r.played, played{of, slices.Repeat([]seen{unseen}, len(of.requests))})
	}
	for k, s := range simulated {
		if in[k] {
			r.played[i].simulated[k] = s
		}
	}
}

// playFitted plays the runs that were fitted to.
func (r *Report) playFitted(ctx context.Context, runs []*run) error {
	m, err := r.slower(0)
	if err != nil {
		return err
	}
	for _, run := range runs {
		simulated, err := run.play(ctx, m)
		if err != nil {
			return err
		}
		r.keep(run, simulated, run.used)
	}
	return nil
}

// wholeBlocks is by how much more the first tokens of prompts that fill whole blocks of
// the KV cache come late beside a simulation than those of others of like lengths, in µs,
// with its standard error.
type wholeBlocks struct {
	us, err       float64
	whole, others int
	ttft          float64 // the median of those that fill blocks, measured
}

// What is told: so many standard errors, and such a part of TTFT.
const (
	clearErrors = 5
	clearPart   = 0.02
)

// clear reports whether it is worth telling.
func (w *wholeBlocks) clear() bool {
	return w != nil && math.Abs(w.us) > clearErrors*w.err && math.Abs(w.us) > clearPart*w.ttft
}

// likeLengths is how many prompts that fill blocks are compared with others at once, at
// least: prompts of a few lengths, so that what a model lacks over longer ones is not
// taken for what blocks do.
const likeLengths = 20

// wholeBlocksOf compares the residuals of TTFT of requests in [from, to). nil where there
// are not enough of both kinds.
func wholeBlocksOf(p *played, from, to stream.Micros, size int64) *wholeBlocks {
	var whole, others []int
	for i, in := range p.run.within(from, to) {
		switch {
		case !in || math.IsNaN(p.late(i)):
		case p.run.requests[i].InputTokens%size == 0:
			whole = append(whole, i)
		default:
			others = append(others, i)
		}
	}
	input := func(i int) int64 { return p.run.requests[i].InputTokens }
	slices.SortStableFunc(whole, func(a, b int) int { return cmp.Compare(input(a), input(b)) })
	var out wholeBlocks
	var ttfts []float64
	squares := 0.0
	compared := make([]bool, len(p.run.requests))
	for len(whole) >= likeLengths {
		end := likeLengths
		for end < len(whole) && input(whole[end]) == input(whole[end-1]) {
			end++
		}
		group, least, most := whole[:end], input(whole[0])-size, input(whole[end-1])+size
		whole = whole[end:]
		var a, b []float64
		var near []int
		for _, i := range group {
			a, ttfts = append(a, p.late(i)), append(ttfts, p.run.measured[i].ttft)
		}
		for _, i := range others {
			if input(i) > least && input(i) < most {
				b, near = append(b, p.late(i)), append(near, i)
			}
		}
		if len(b) < likeLengths {
			continue
		}
		x, xErr := medianOf(a)
		y, yErr := medianOf(b)
		n := float64(len(a))
		out.us, squares = out.us+n*(x-y), squares+n*n*(xErr*xErr+yErr*yErr)
		out.whole += len(a)
		for _, i := range near {
			if !compared[i] {
				compared[i] = true
				out.others++
			}
		}
	}
	if out.whole == 0 {
		return nil
	}
	out.us, out.err = out.us/float64(out.whole), math.Sqrt(squares)/float64(out.whole)
	out.ttft, _ = medianOf(ttfts)
	return &out
}

// late is by how much later the first token of a request came than simulated, in µs; NaN
// where either is not known.
func (p *played) late(i int) float64 { return p.run.measured[i].ttft - p.simulated[i].ttft }

// medianOf sorts values and returns their median and its standard error, whatever they are
// distributed like: half of what lies between the ranks that are a standard deviation of a
// binomial distribution to either side.
func medianOf(values []float64) (median, err float64) {
	slices.Sort(values)
	n := float64(len(values))
	at := func(rank float64) float64 {
		return values[min(len(values)-1, max(0, int(math.Round(rank))))]
	}
	middle, half := (n-1)/2, math.Sqrt(n)/2
	return (at(math.Floor(middle)) + at(math.Ceil(middle))) / 2, (at(middle+half) - at(middle-half)) / 2
}

// warnWholeBlocks warns of each stage in which prompts that fill whole blocks do otherwise
// than simulated.
func (r *Report) warnWholeBlocks() {
	size := int64(r.setup.deployment.Engine.BlockSize)
	for i := range r.played {
		p := &r.played[i]
		for _, stage := range p.run.stagesOrAll() {
			w := wholeBlocksOf(p, stage.FromUS, stage.ToUS, size)
			if !w.clear() {
				continue
			}
			r.setup.warnf("%s: %s", nameOfStage(p.run, stage), w.text(size))
		}
	}
}

func (w *wholeBlocks) text(size int64) string {
	when := "later"
	if w.us < 0 {
		when = "sooner"
	}
	return fmt.Sprintf("beside the simulation, first tokens of the %d prompts that fill whole blocks (of %d tokens) come %.3g ms (±%.2g at %g %%) %s than those of %d others of like lengths: a KV connector may have been on, or what the server does to compute the last token of a prompt that is cached whole takes other steps than simulated",
		w.whole, size, math.Abs(w.us)/1e3, ofLevel*w.err/1e3, levelPercent, when, w.others)
}

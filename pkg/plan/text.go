package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"blis/pkg/texttab"
)

// Text returns the answer for people.
func (a *Answer) Text() string {
	w := new(text)
	w.line("workload    %s", a.Workload)
	w.line("required    %s", strings.Join(a.Require, ", "))
	if a.Best == nil {
		w.line("answer      no fleet is feasible")
	} else {
		w.best(a)
	}
	w.options(a.Options)
	if a.Best != nil {
		w.curve(a)
	}
	w.pareto(a.Pareto)
	w.line("\n%d runs", a.Runs)
	for _, warning := range a.Warnings {
		w.line("warning: %s", warning)
	}
	return w.String()
}

type text struct{ strings.Builder }

func (w *text) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *text) table(t *texttab.Table) { w.Write(t.Append(nil)) }

func (w *text) best(a *Answer) {
	b := a.Best
	prefills := ""
	if b.Prefill > 0 {
		prefills = fmt.Sprintf(" and %d prefill replicas", b.Prefill)
	}
	w.line("answer      %s: %d x %s%s, %s per hour", gpus(b.GPUs), b.Replicas, settings(b.GPU, b.Set), prefills,
		number(b.Cost))
	w.line("            all served requests: TTFT p99 %s ms, TPOT p99 %s ms, targets met %.4g, %s output tokens/s, KV "+
		"blocks in use at most %.3g", number(b.TTFTp99MS), number(b.TPOTp99MS), b.Attainment, number(b.OutputTokS),
		b.MaxKVUse)
	if conditions := b.conditions(); len(conditions) > 0 {
		w.line("conditions  %s", strings.Join(conditions, "; "))
	}
	if d := a.Below; d != nil {
		w.limit(a, d, fmt.Sprintf("with %d replicas", d.Replicas))
	} else if d := a.AboveKnee; d != nil {
		w.limit(a, d, fmt.Sprintf("at %g x the load", d.Load))
	}
	var changes []string
	for _, s := range a.Sensitivity {
		changes = append(changes, fmt.Sprintf("%s at %g x the load", gpus(s.GPUs), s.Load))
	}
	w.line("sensitivity of the same option: %s", strings.Join(changes, ", "))
	if u := a.Uncertainty; u != nil {
		w.line("uncertainty of the same option: %d to %s with %s", u.Lo.GPUs, u.upper(b.GPUs), u.of())
	} else {
		w.line("uncertainty unknown: the coefficients of the step times have no intervals")
	}
	w.line("knee        %g x the load", a.Knee)
	if a.Seeds == 1 {
		w.line("seeds       1 of one workload: others may give another answer (seeds; blis-gen --seed)")
	}
}

// conditions returns those of the file with their values. That all requests are served needs no number: they are.
func (f *Fleet) conditions() (all []string) {
	for _, c := range f.Conditions {
		if c.Expr != served {
			all = append(all, c.Expr+": "+strings.Join(c.Values, ", "))
		}
	}
	return all
}

// feasible is yes, or no with the conditions that fail.
func (f *Fleet) feasible() string {
	if f.Feasible {
		return "yes"
	}
	var failing []string
	for _, c := range f.Conditions {
		switch {
		case c.Met:
		case c.Expr == served:
			failing = append(failing, limitWords["served"])
		default:
			failing = append(failing, c.Expr)
		}
	}
	if failing == nil {
		return "no"
	}
	return "no: " + strings.Join(failing, ", ")
}

// limit says what binds a fleet that is not feasible. with is how it differs from the answer.
func (w *text) limit(a *Answer, d *Fleet, with string) {
	w.line("limit       %s: %s, %s", strings.Join(limitNames(d.Limits), ", "), with, strings.Join(d.Failed, "; "))
	w.line("            queue p99 %s ms, KV blocks in use at most %.3g, %s preemptions, batch slots in use at "+
		"most %.3g", number(d.QueueP99MS), d.MaxKVUse, number(d.Preemptions), d.MaxSlotUse)
	if untried := a.untried(d.Limits); len(untried) > 0 {
		w.line("to try      engine settings that bear on it, under set: %s", strings.Join(untried, ", "))
	}
}

// upper is the largest fleet in words. best is the answer.
func (u *Uncertainty) upper(best int) string {
	if u.Hi == nil {
		return fmt.Sprintf("more than max_gpus (the answer is %d)", best)
	}
	return gpus(u.Hi.GPUs)
}

// of says what differs.
func (u *Uncertainty) of() string {
	switch {
	case u.StepError > 0:
		return fmt.Sprintf("step times %.0f %% shorter and longer: they are computed, not measured", 100*u.StepError)
	case u.Level > 0:
		return fmt.Sprintf("all coefficients at the ends of their %.0f %% intervals", 100*u.Level)
	}
	return "all coefficients at the ends of their intervals"
}

// limitWords are the values of Fleet.Limits in words.
var limitWords = map[string]string{"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E", "goodput": "targets",
	"kv": "KV blocks", "slots": "batch slots", "served": "requests that are not served"}

// bearing are the engine settings that change what a value of Fleet.Limits measures: a small token budget delays the
// decodes of a step less, tensor parallelism makes steps shorter and leaves more memory for KV blocks.
var bearing = map[string][]string{
	"ttft":  {"tensor_parallel_size", "max_num_batched_tokens"},
	"tpot":  {"max_num_batched_tokens", "tensor_parallel_size"},
	"itl":   {"max_num_batched_tokens", "tensor_parallel_size"},
	"e2e":   {"tensor_parallel_size"},
	"kv":    {"kv_cache_dtype", "gpu_memory_utilization", "tensor_parallel_size"},
	"slots": {"max_num_seqs"},
}

// untried returns the engine settings that bear on limits and that no option sets.
func (a *Answer) untried(limits []string) (names []string) {
	for _, l := range limits {
		for _, name := range bearing[l] {
			tried := slices.ContainsFunc(a.Options, func(o *Option) bool {
				return slices.ContainsFunc(slices.Collect(maps.Keys(o.Set)),
					func(path string) bool { return strings.HasSuffix(path, ".engine."+name) })
			})
			if !tried && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func limitNames(limits []string) (words []string) {
	for _, l := range limits {
		words = append(words, limitWords[l])
	}
	if words == nil {
		return []string{"other conditions"}
	}
	return words
}

// number writes four significant digits, and all digits of the integer part.
func number(x float64) string {
	if math.Abs(x) >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

func gpus(n int) string {
	if n == 1 {
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", n)
}

func (w *text) options(all []*Option) {
	t := &texttab.Table{LeftColumns: 2}
	t.Row("option", "state", "replicas", "GPUs", "per hour")
	for _, o := range all {
		row := []string{o.State, "", "", ""}
		if n := max(o.Replicas, o.AtLeast); n > 0 {
			mark := ""
			if o.AtLeast > 0 {
				mark = ">="
			}
			row = []string{o.State, fmt.Sprint(mark, n), fmt.Sprint(mark, o.gpus(n)),
				mark + number(o.cost(n))}
		}
		t.Row(settings(o.GPU, o.Set), row...)
	}
	w.line("")
	w.table(t)
	for _, o := range all {
		switch f := o.Largest; {
		case o.Error != "":
			w.line("%s: %s", settings(o.GPU, o.Set), o.Error)
		case f != nil:
			w.line("%s: with %d replicas (%s, max_gpus), %s", settings(o.GPU, o.Set), f.Replicas, gpus(f.GPUs),
				strings.Join(f.Failed, "; "))
		}
	}
}

// barWidth is the length of the longest bar.
const barWidth = 30

// curve draws TTFT p99 on a logarithmic scale.
func (w *text) curve(a *Answer) {
	lo, hi := math.Inf(1), 0.0
	for _, f := range a.Curve {
		if f.TTFTp99MS > 0 {
			lo, hi = min(lo, f.TTFTp99MS), max(hi, f.TTFTp99MS)
		}
	}
	t := &texttab.Table{}
	t.Row("load, all served requests", "TTFT p99 ms", "TPOT p99 ms", "targets met", "feasible", "TTFT p99, log scale")
	for _, f := range a.Curve {
		n := 1
		if hi > lo && f.TTFTp99MS > 0 {
			n += int(math.Round((barWidth - 1) * math.Log(f.TTFTp99MS/lo) / math.Log(hi/lo)))
		}
		bar := strings.Repeat("#", n) + strings.Repeat(" ", barWidth-n)
		t.Row(fmt.Sprintf("%.3f", f.Load), number(f.TTFTp99MS), number(f.TPOTp99MS), fmt.Sprintf("%.4f", f.Attainment),
			f.feasible(), bar)
	}
	w.line("")
	w.table(t)
}

func (w *text) pareto(front []*Fleet) {
	t := &texttab.Table{}
	t.Row("cost against targets met", "replicas", "GPUs", "per hour", "targets met", "feasible")
	for _, f := range front {
		t.Row(settings(f.GPU, f.Set), fmt.Sprint(f.Replicas), fmt.Sprint(f.GPUs), number(f.Cost),
			fmt.Sprintf("%.4f", f.Attainment), f.feasible())
	}
	w.line("")
	w.table(t)
}

package attribution

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"blis/pkg/stream"
)

// Change sets one value of the cluster file, at a path as in blis-sim --set. From and To are JSON values.
type Change struct {
	Path string `json:"path"`
	From any    `json:"from"`
	To   any    `json:"to"`
}

// Hint is a change that may remove what a pattern says, with other changes that it needs.
type Hint struct {
	// Pattern is its number, from 1; 0 where other patterns explain what the condition holds for.
	Pattern   int    `json:"pattern"`
	Condition string `json:"condition"`
	Component string `json:"component"`
	Change
	Also []Change `json:"also,omitempty"`
	// ExpectedGain is the share of the judged requests that the pattern explains: an upper bound of the gain.
	ExpectedGain float64 `json:"expected_gain"`
	// Command simulates it: the run again, on its workload, with other settings.
	Command string `json:"command"`
	// Measured is what the change did on the workload of the run; nil where that was not simulated.
	Measured *Measured `json:"measured,omitempty"`
}

// Measured is the score with a hint and the gain over the score without it, or why it could not be simulated.
type Measured struct {
	Score float64 `json:"score"`
	Gain  float64 `json:"gain"`
	Error string  `json:"error,omitempty"`
}

// Settings are the changes as arguments of blis-sim --set.
func (h *Hint) Settings() []string {
	all := []string{h.setting()}
	for i := range h.Also {
		all = append(all, h.Also[i].setting())
	}
	return all
}

// findHints are the executable hints of the patterns, in their order, then those of other conditions about capacity or
// order that hold for at least half of the loss.
func (a *Analyzer) findHints(f *Findings) (hints []Hint) {
	for i := range f.Patterns {
		if h := a.hint(&f.Patterns[i], f); h != nil {
			h.Pattern = i + 1
			hints = append(hints, *h)
		}
	}
	if f.Loss.TooSmall() {
		return hints
	}
	for i, c := range conditions {
		isPattern := func(p Pattern) bool { return p.Condition == c }
		if c.rank != rankCapacity || slices.ContainsFunc(f.Patterns, isPattern) {
			continue
		}
		p := Pattern{Condition: c}
		for _, r := range a.requests {
			if r.lost() && r.verdict.conditions&(1<<i) != 0 {
				p.losing = append(p.losing, r)
				p.Loss += r.verdict.loss / f.Loss.Total
			}
		}
		if p.Lost = int64(len(p.losing)); p.Loss >= minCapacitySupport {
			if h := a.hint(&p, f); h != nil {
				hints = append(hints, *h)
			}
		}
	}
	return hints
}

// hint is that of a pattern, without its number; nil if settings cannot say it.
func (a *Analyzer) hint(p *Pattern, f *Findings) *Hint {
	if p.Condition.change == nil {
		return nil
	}
	changes := p.Condition.change(&proposal{a, p, f})
	if len(changes) == 0 {
		return nil
	}
	h := &Hint{Condition: p.Condition.Name, Component: p.Condition.Component.Name, Change: changes[0],
		Also:         changes[1:],
		ExpectedGain: float64(p.Lost) / float64(max(1, f.Loss.Judged)), Command: "blis-sim --replay RUN"}
	for _, s := range h.Settings() {
		h.Command += " --set '" + s + "'"
	}
	h.Command += " WORKLOAD"
	return h
}

// setting is the change as an argument of blis-sim --set.
func (c *Change) setting() string {
	text, err := json.Marshal(c.To)
	if err != nil {
		return ""
	}
	return c.Path + "=" + string(text)
}

// proposal is what the value of a hint is computed from.
type proposal struct {
	*Analyzer
	p *Pattern
	f *Findings
}

// deployment is that of most of the losing requests; of those that reached none, the first one of their model.
func (x *proposal) deployment() *deployment {
	counts, best := map[string]int{}, &deployment{}
	for _, r := range x.p.losing {
		id := x.topology.modelDeployment(x.names.list[r.labels.model])
		if r.replica != missing {
			id = x.topology.replicas[r.replica].deployment
		}
		counts[id]++
	}
	for i := range x.topology.Deployments {
		if d := &x.topology.Deployments[i]; counts[d.ID] > counts[best.ID] {
			best = d
		}
	}
	return best
}

// modelDeployment is the id of the first deployment of a model, by default the first one.
func (t *topology) modelDeployment(model string) string {
	for i := range t.Deployments {
		if d := &t.Deployments[i]; d.Model == model || model == "" {
			return d.ID
		}
	}
	return ""
}

// config is the value of the configuration at a path, nil where there is none.
func (x *proposal) config(path string) any {
	var at any = x.topology.config
	for key := range strings.SplitSeq(path, ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[key]
		case []any:
			at = nil
			for _, e := range v {
				if m, ok := e.(map[string]any); ok && m["id"] == key {
					at = m
				}
			}
		default:
			return nil
		}
	}
	return at
}

// set is a change at a path.
func (x *proposal) set(path string, to any) Change { return Change{path, x.config(path), to} }

// engine is a change of the engine of the deployment of the pattern.
func (x *proposal) engine(field string, to any) Change {
	return x.set("deployments."+x.deployment().ID+".engine."+field, to)
}

// number is a number of the configuration, 0 where there is none.
func (x *proposal) number(path string) float64 {
	switch v := x.config(path).(type) {
	case float64:
		return v
	case json.Number:
		f, _ := v.Float64()
		return f
	case int64:
		return float64(v)
	}
	return 0
}

// policy replaces the policies of stages.
func policy(stages ...string) func(x *proposal) []Change {
	return func(x *proposal) (all []Change) {
		for i := 0; i < len(stages); i += 2 {
			if x.topology.policy(stages[i]) != stages[i+1] {
				all = append(all, x.set("policies."+stages[i], map[string]any{"type": stages[i+1]}))
			}
		}
		return all
	}
}

// setEngine sets a field of the engine to a fixed value.
func setEngine(field string, to any) func(x *proposal) []Change {
	return func(x *proposal) []Change { return []Change{x.engine(field, to)} }
}

// powerOf2 is the least power of 2 that is not below a number.
func powerOf2(n float64) int64 { return int64(math.Exp2(math.Ceil(math.Log2(max(1, n))))) }

// moreSlots proposes as many batch slots as requests were at the replica, as far as its blocks allow.
func (x *proposal) moreSlots() []Change {
	most := 0.0
	for _, r := range x.p.losing {
		most = max(most, float64(r.contention.resident))
	}
	slots := float64(x.deployment().Engine.MaxNumSeqs)
	if held := mean(x.p.losing, kvShare); held > 0 {
		most = min(most*1.25, 0.9*slots/held)
	}
	to := min(1024, powerOf2(max(most, 2*slots)))
	changes := []Change{x.engine("max_num_seqs", to)}
	if x.deployment().Engine.MaxNumBatchedTokens < to {
		changes = append(changes, x.engine("max_num_batched_tokens", to))
	}
	return changes
}

// moreBlocks proposes what gives requests more KV blocks: less watermark, what the memory holds, or replicas.
func (x *proposal) moreBlocks() []Change {
	d := x.deployment()
	at := "deployments." + d.ID + "."
	inMemory, override := x.number(at+"computed.memory.blocks"), x.number(at+"engine.num_gpu_blocks_override")
	used := x.number(at + "engine.gpu_memory_utilization")
	switch {
	case d.Engine.Watermark > 0.05:
		return []Change{x.engine("watermark", 0.01)}
	case override > 0 && inMemory > 1.5*override:
		return []Change{x.engine("num_gpu_blocks_override", inMemory)}
	case used > 0 && used < 0.85:
		return []Change{x.engine("gpu_memory_utilization", 0.9)}
	}
	return x.moreReplicas()
}

// moreBudget proposes the token budget at which a fifth of the longest prefill step does not depend on its tokens.
func (x *proposal) moreBudget() []Change {
	d, to := x.deployment(), int64(2048)
	if d.fixedStepShare() > 0 {
		to = powerOf2(4 * d.Latency.BetaUS[0] / d.Latency.BetaUS[1])
	}
	if to <= d.Engine.MaxNumBatchedTokens {
		return nil
	}
	return []Change{x.engine("max_num_batched_tokens", to)}
}

// lessBudget proposes the token budget at which a step with the pattern's requests fits the TPOT target.
func (x *proposal) lessBudget() (changes []Change) {
	d, target := x.deployment(), 0.0
	for _, r := range x.p.losing {
		target = max(target, x.classes[x.names.list[r.labels.class]].Targets.TPOTMS)
	}
	to := d.Engine.MaxNumBatchedTokens / 4
	if d.fixedStepShare() > 0 && len(d.Latency.BetaUS) > 2 && target > 0 {
		b := d.Latency.BetaUS
		fits := (1000*target - b[0] - b[2]*mean(x.p.losing, resident)) / b[1]
		to = powerOf2(fits) / 2
	}
	if to = max(to, 128, int64(d.Engine.MaxNumSeqs)); to >= d.Engine.MaxNumBatchedTokens {
		return nil
	}
	changes = []Change{x.engine("max_num_batched_tokens", to)}
	if x.config("deployments."+d.ID+".engine.enable_chunked_prefill") == false {
		changes = append([]Change{x.engine("enable_chunked_prefill", true)}, changes...)
	}
	return changes
}

// chunkLongPrompts proposes chunks of a quarter of the budget.
func (x *proposal) chunkLongPrompts() []Change {
	return []Change{x.engine("long_prefill_token_threshold", max(128, x.deployment().Engine.MaxNumBatchedTokens/4))}
}

// longerLimits proposes limits that hold the longest rejected request.
func (x *proposal) longerLimits() []Change {
	longest, reasons := int64(0), map[string]int{}
	for _, r := range x.p.losing {
		longest = max(longest, int64(r.tokens.input)+int64(r.tokens.output))
		reasons[x.names.list[r.labels.reason]]++
	}
	var changes []Change
	if reasons[stream.ReasonTooLongForModel] > 0 {
		changes = append(changes, x.engine("max_model_len", (longest+1023)/1024*1024))
	}
	if reasons[stream.ReasonTooLongForCache] > 0 {
		changes = append(changes, x.moreBlocks()...)
	}
	id := x.deployment().ID
	if len(changes) > 0 && x.config("deployments."+id+".engine.enable_chunked_prefill") == false ||
		reasons[stream.ReasonTooLongForBudget] > 0 {
		changes = append(changes, x.engine("enable_chunked_prefill", true))
	}
	return changes
}

// moreReplicas proposes replicas for the arrivals while the losing requests came, by what the present ones completed
// then.
func (x *proposal) moreReplicas() []Change {
	d := x.deployment()
	from, until := never, stream.Micros(0)
	for _, r := range x.p.losing {
		from, until = min(from, r.times.arrival), max(until, r.times.arrival)
	}
	arrived, completed := 0.0, 0.0
	for _, r := range x.requests {
		if r.replica == missing || x.topology.replicas[r.replica].deployment != d.ID {
			continue
		}
		if r.times.arrival >= from && r.times.arrival <= until {
			arrived++
		}
		if x.completed(r) && r.times.ended >= from && r.times.ended <= until {
			completed++
		}
	}
	factor := min(4, max(1.5, 1.25*arrived/max(1, completed)))
	return []Change{x.set("deployments."+d.ID+".replicas", math.Ceil(factor*float64(d.Replicas)))}
}

package attribution

import (
	"encoding/json"
	"slices"
	"strings"
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
	// Advice says in words what usually helps; the changes are one way to do it.
	Advice string `json:"advice"`
	Change
	Also []Change `json:"also,omitempty"`
	// ExpectedGain is the share of the judged requests that the pattern explains, or the fitness where that is the
	// loss: an upper bound of the gain.
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

// maxHints bounds the hints of a run.
const maxHints = 16

// findHints are the executable hints of the patterns, in their order, then those of other conditions about capacity or
// order that hold for at least half of the loss, then what else may help with any of them. No setting is there twice.
func (a *Analyzer) findHints(f *Findings) (hints []Hint) {
	known := map[string]bool{}
	causes := a.hintedCauses(f)
	byCause := make([][]*Hint, len(causes))
	for i, p := range causes {
		for _, m := range p.Condition.remedies() {
			if h := a.hint(p, f, &m); h != nil {
				byCause[i] = append(byCause[i], h)
			}
		}
	}
	for n, found := 0, true; found; n++ {
		found = false
		for i, all := range byCause {
			if n >= len(all) {
				continue
			}
			found = true
			h := all[n]
			if known[h.Command] || len(hints) == maxHints {
				continue
			}
			if known[h.Command] = true; i < len(f.Patterns) {
				h.Pattern = i + 1
			}
			hints = append(hints, *h)
		}
	}
	return hints
}

// hintedCauses are the patterns, then the conditions about capacity or order that hold for at least half of the loss.
func (a *Analyzer) hintedCauses(f *Findings) (all []*Pattern) {
	for i := range f.Patterns {
		all = append(all, &f.Patterns[i])
	}
	if f.Loss.TooSmall() {
		return all
	}
	var lost []*request
	for _, r := range a.requests.all() {
		if r.lost() {
			lost = append(lost, r)
		}
	}
	for i, c := range conditions {
		isPattern := func(p Pattern) bool { return p.Condition == c }
		if c.rank != rankCapacity || slices.ContainsFunc(f.Patterns, isPattern) {
			continue
		}
		p := &Pattern{run: a, Condition: c}
		for _, r := range lost {
			if r.verdict.conditions.has(i) {
				p.losing = append(p.losing, r)
				p.Loss += r.verdict.loss / f.Loss.Total
			}
		}
		if p.Lost = int64(len(p.losing)); p.Loss >= minCapacitySupport {
			all = append(all, p)
		}
	}
	return all
}

// propose proposes changes, none where there is nothing to change.
type propose func(*proposal) []Change

// remedy is what may help, in words and as changes.
type remedy struct {
	advice string
	propose
}

// remedies are those of the condition, the one that usually helps most first.
func (c *Condition) remedies() []remedy {
	if c.change == nil {
		return c.others
	}
	return append([]remedy{{c.Hint, c.change}}, c.others...)
}

// hint is that of a pattern, without its number; nil if there is nothing to change.
func (a *Analyzer) hint(p *Pattern, f *Findings, m *remedy) *Hint {
	changes := slices.DeleteFunc(m.propose(&proposal{a, p, f}), (Change).isNothing)
	if len(changes) == 0 {
		return nil
	}
	h := &Hint{Condition: p.Condition.Name, Component: p.Condition.Component.Name, Advice: m.advice,
		Change: changes[0], Also: changes[1:],
		ExpectedGain: f.Loss.gain(p), Command: "blis-sim --replay RUN"}
	for _, s := range h.Settings() {
		h.Command += " --set '" + s + "'"
	}
	h.Command += " WORKLOAD"
	return h
}

// gain is what is won at most if a pattern loses nothing: a share of the judged requests, or fitness.
func (l *Loss) gain(p *Pattern) float64 {
	if l.Kind == LossFitness {
		return p.Loss * l.Total
	}
	return float64(p.Lost) / float64(max(1, l.Judged))
}

// isNothing reports whether the value is set already.
func (c Change) isNothing() bool {
	from, _ := json.Marshal(c.From)
	to, _ := json.Marshal(c.To)
	return string(from) == string(to)
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
	return number(x.config(path))
}

// number is a decoded number, 0 for anything else.
func number(v any) float64 {
	switch v := v.(type) {
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
func policy(stages ...string) propose {
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
func setEngine(field string, to any) propose {
	return func(x *proposal) []Change { return []Change{x.engine(field, to)} }
}

package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"blis/pkg/attribution"
)

// defaultPolicies are those of vLLM and of a cluster that decides nothing: the title does not name them.
var defaultPolicies = map[string]string{"admission": "always-admit", "priority": "constant", "scheduler": "fcfs",
	"preemption": "last-in"}

// titleLine is the first section: the policies.
func titleLine(in *Input) string {
	var stages []string
	for _, p := range in.Analyzer.Policies() {
		if stage, policy := p[0], p[1]; policy != defaultPolicies[stage] {
			stages = append(stages, stage+" "+name(policy))
		}
	}
	policies := cmp.Or(strings.Join(stages, ", "), "policies unknown")
	return fmt.Sprintf("[%s] %s\n", title, strings.TrimRight(short(policies, 60), " "))
}

// variants are texts of a line, the fullest first. A line whose last one is empty can wait until after the beginning.
type variants []string

// beginning writes the lines that stand alone: how the run went, where the loss is, its top cause and what to change.
func (w *writer) beginning() {
	f := w.Findings
	state, cause, change, lost, where, when := variants{w.state()}, variants{""}, variants{""}, variants{""},
		variants{""}, variants{""}
	if f != nil {
		state = append(variants{w.stateWithTargets()}, state...)
		change = w.change()
	}
	if f != nil && f.Loss.Lost > 0 {
		where, when = w.mainLoss(), variants{lossTime(f), ""}
		if len(f.Loss.Sources) > 0 {
			lost = variants{"lost: " + fitnessLost(f.Loss.Sources) + ".", ""}
		}
	}
	if f != nil && (f.Loss.Lost > 0 || w.SessionCause() != nil) {
		cause = w.topCause()
	}
	lines := []variants{state, lost, where, when, cause, change}
	priority := []int{0, 5, 1, 4, 2, 3} // what to change and the mechanism matter more than where and when
	w.fit(lines, priority, beginningLength-len(titleLine(w.Input)))
}

// fit writes the lines within room characters, if that is possible: each as full as those of higher priority leave
// room for. Lines that can wait follow.
func (w *writer) fit(lines []variants, priority []int, room int) {
	chosen := make([]string, len(lines))
	used := len(w.text)
	for i, v := range lines {
		chosen[i] = v[len(v)-1]
		used += len(chosen[i]) + 1
	}
	for _, i := range priority {
		for _, text := range lines[i] {
			if longer := len(text) - len(chosen[i]); used+longer <= room {
				chosen[i] = text
				used += longer
				break
			}
		}
	}
	for _, text := range chosen {
		if text != "" {
			w.line("%s", text)
		}
	}
	for i, text := range chosen {
		if text == "" && lines[i][0] != "" {
			w.line("%s", lines[i][0])
		}
	}
}

// change says what to change: the settings of the first hint, of simulated ones of the best, or the advice about the
// first pattern.
func (w *writer) change() variants {
	f := w.Findings
	if h := w.mainHint(); h != nil {
		gain := fmt.Sprintf(" (these misses are %s)", w.gain(h.ExpectedGain))
		if m := h.Measured; m != nil {
			gain = fmt.Sprintf(" (measured: fitness %+.4f)", m.Gain)
		}
		all := append([]attribution.Change{h.Change}, h.Also...)
		brief := "change: " + changeText(&h.Change, 48, 20)
		if len(h.Also) > 0 {
			brief += fmt.Sprintf(" and %d more", len(h.Also))
		}
		full := list(all, func(c attribution.Change) string { return changeText(&c, 80, 60) })
		if len(f.Patterns) == 0 || h.Condition != f.Patterns[0].Condition.Name { // else the top cause names it
			gain = " for " + h.Condition + gain
		}
		return variants{"change: " + full + gain, brief + gain, brief}
	}
	advice, session := "", w.SessionCause()
	switch {
	case len(f.Patterns) > 0:
		advice = f.Patterns[0].Condition.Hint
	case session != nil:
		advice = session.Advice
	case f.Loss.Kind == attribution.LossMisses && f.Loss.Lost == 0:
		return variants{"change: nothing; no request missed a target."}
	default:
		return variants{""}
	}
	return variants{"change: " + short(advice, 160), "change: " + short(advice, 90)}
}

// mainHint is the hint with the largest measured gain, else the first one of the first pattern, or of other conditions
// where there is no pattern; nil without any.
func (w *writer) mainHint() (best *attribution.Hint) {
	hints := w.Findings.Hints
	for i := range hints {
		if m := hints[i].Measured; m != nil && m.Gain > 0 && (best == nil || m.Gain > best.Measured.Gain) {
			best = &hints[i]
		}
	}
	if best != nil {
		return best
	}
	for i := range hints {
		isMain := hints[i].Pattern == 1 || len(w.Findings.Patterns) == 0
		if hints[i].Measured == nil && isMain && w.about(hints[i].Component) {
			return &hints[i]
		}
	}
	return nil
}

// changeText is a change of a setting, with a path of at most pathLength characters and values of at most valueLength.
func changeText(c *attribution.Change, pathLength, valueLength int) string {
	from := settingText(c.From)
	if policy, ok := c.From.(map[string]any); ok && policy["type"] != nil {
		from = fmt.Sprint(policy["type"])
	}
	return fmt.Sprintf("%s: %s -> %s", short(c.Path, pathLength), short(from, valueLength),
		short(settingText(c.To), valueLength))
}

// settingText is the value of a setting: a policy as its type and parameters.
func settingText(v any) string {
	switch v := v.(type) {
	case nil:
		return "unset"
	case map[string]any:
		rest := maps.Clone(v)
		delete(rest, "type")
		params, isMap := rest["params"].(map[string]any)
		if isMap && len(rest) == 1 {
			rest = params
		}
		switch {
		case v["type"] == nil:
			return inline(v)
		case len(rest) == 0:
			return fmt.Sprint(v["type"])
		}
		return fmt.Sprintf("%v %s", v["type"], inline(rest))
	case []any:
		return inline(v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strings.Trim(string(text), `"`)
}

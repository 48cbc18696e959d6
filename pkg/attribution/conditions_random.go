package attribution

import (
	"fmt"
	"strings"
)

var randomChoice = Condition{Name: "random_choice", Component: routingComponent, rank: rankMechanism,
	parts: afterAdmitted,
	Doc: "sent to a queue at least twice the shortest plus 4, or to a replica with at least 1.25 times as many" +
		" requests as another plus 3, or recomputed much of its prompt or such tokens of others started during its" +
		" wait, by a router that scores replicas and then draws one at random (picker, router_temperature)",
	cause: func(p *Pattern) string {
		return sentTo(p) + fmt.Sprintf(", %s of %s prompt tokens cached (means); the policy scores replicas and then"+
			" draws one at random (%s)", p.mean(cachedTokens), p.mean(inputTokens), p.run.draws)
	},
	Hint:    "choose the replica with the best score (picker max-score, router_temperature 0)",
	change:  (*proposal).bestScore,
	others:  otherRouters,
	isWrong: true,
	took:    (*Analyzer).recomputing,
	holds: func(a *Analyzer, r *request) bool {
		return a.draws != "" && (r.longerQueue() || a.imbalanced(r) || r.recomputes())
	}}

// pickerParam is the parameter of policies that score replicas, for how one of them is chosen.
const pickerParam = "policies.routing.params.picker"

// drawing says by which setting the router draws at random among the replicas that it has scored, "" if it does not.
func (x *proposal) drawing() string {
	switch x.topology.policy("routing") {
	case "dynamo-kv":
		if t := x.number(temperature); t > 0 {
			return fmt.Sprintf("router_temperature %g", t)
		}
	case "llm-d":
		if plugin, _ := x.randomPicker(); plugin != "" {
			return plugin
		}
	default:
		if picker, _ := x.config(pickerParam).(string); strings.Contains(picker, "random") {
			return "picker " + picker
		}
	}
	return ""
}

// randomPicker is the plugin by which the policy llm-d draws, and the other plugins.
func (x *proposal) randomPicker() (name string, others []any) {
	all, _ := x.config("policies.routing.of").([]any)
	for _, p := range all {
		plugin, _ := p.(map[string]any)
		if kind, _ := plugin["type"].(string); strings.HasSuffix(kind, "random-picker") {
			name = kind
			continue
		}
		others = append(others, p)
	}
	return name, others
}

// bestScore proposes that the replica with the best score is chosen.
func (x *proposal) bestScore() []Change {
	switch x.topology.policy("routing") {
	case "dynamo-kv":
		return []Change{x.set(temperature, 0.0)}
	case "llm-d":
		_, others := x.randomPicker()
		return []Change{x.set("policies.routing.of", append(others, map[string]any{"type": "max-score-picker"}))}
	}
	return []Change{x.set(pickerParam, "max-score")}
}

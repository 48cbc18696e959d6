package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/stream"
)

// Limits of the section about the setup.
const (
	maxSetupLine   = 400 // characters
	maxDeployments = 4
	maxChanges     = 6 // of the configuration, against the parent
)

var setup = section{name: "SETUP", write: func(w *writer) {
	config := configOf(w.Header)
	if config == nil {
		return
	}
	w.line("policies: %s", short(policiesText(config.at("policies")), maxSetupLine))
	deployments := config.list("deployments")
	shown := deployments[:min(len(deployments), maxDeployments)]
	w.line("engine: %s", short(list(shown, enginesText), maxSetupLine))
	w.line("cluster: %s; %s", short(list(shown, deploymentText), maxSetupLine), controlText(config.at("control_plane")))
	if text := featuresText(config, shown); text != "" {
		w.line("also: %s", short(text, maxSetupLine))
	}
	for i := range w.References {
		w.against(&w.References[i], config)
	}
}}

// tree is a mapping of a configuration. A missing one is nil.
type tree map[string]any

func configOf(h *stream.Header) tree {
	if h == nil || h.Run == nil {
		return nil
	}
	config, _ := h.Run.Config.(map[string]any)
	return config
}

func (t tree) at(key string) tree {
	value, _ := t[key].(map[string]any)
	return value
}

func (t tree) list(key string) (all []tree) {
	values, _ := t[key].([]any)
	for _, v := range values {
		if m, ok := v.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// isOn reports whether a value is neither absent nor 0 nor false.
func (t tree) isOn(key string) bool {
	v := t[key]
	return v != nil && v != false && fmt.Sprint(v) != "0"
}

// policiesText has the policies that are not defaults, with their parameters and expressions.
func policiesText(policies tree) string {
	var parts []string
	for _, stage := range []string{"admission", "priority", "routing", "prefill_routing", "scheduler", "preemption"} {
		if p := policies.at(stage); p != nil && p["type"] != defaultPolicies[stage] {
			parts = append(parts, stage+" "+settingText(map[string]any(p)))
		}
	}
	return strings.Join(append(parts, "others default"), "; ")
}

// inline is a value in one line, with sorted keys; a policy begins with its type.
func inline(v any) string {
	switch v := v.(type) {
	case map[string]any:
		if v["type"] != nil {
			return settingText(v)
		}
		return inline(tree(v))
	case tree:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if m, ok := v[k].(map[string]any); ok && len(m) == 0 {
				continue // a table without entries
			}
			parts = append(parts, k+": "+inline(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		return "[" + list(v, inline) + "]"
	}
	return fmt.Sprint(v)
}

// engineText has the limits of the engine of a deployment or a pool.
func engineText(d tree) string {
	e := d.at("engine")
	text := fmt.Sprintf("max_num_seqs %v, max_num_batched_tokens %v, %v KV blocks of %v", e["max_num_seqs"],
		e["max_num_batched_tokens"], d.at("computed")["kv_blocks"], e["block_size"])
	for _, key := range []string{"long_prefill_token_threshold", "watermark", "num_gpu_blocks_override"} {
		if e.isOn(key) {
			text += fmt.Sprintf(", %s %v", key, e[key])
		}
	}
	for _, key := range []string{"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"} {
		if e.isOn(key) && fmt.Sprint(e[key]) != "1" {
			text += fmt.Sprintf(", %s %v", key, e[key])
		}
	}
	switch {
	case e["merge_data_parallel_ranks"] == true:
		text += ", ranks merged"
	case d.at("computed")["lockstep"] == true:
		text += ", ranks in lockstep"
	}
	if e["enforce_eager"] == true {
		text += ", enforce_eager"
	}
	// Coefficients of the user have no source.
	if l := d.at("latency"); l["source"] == nil && l["beta_us"] != nil {
		text += fmt.Sprintf(", beta_us %s, alpha_us %s", inline(l["beta_us"]), inline(l["alpha_us"]))
	}
	for _, key := range []string{"enable_chunked_prefill", "enable_prefix_caching"} {
		if e[key] == false {
			text += ", " + key + " false"
		}
	}
	return text
}

// controlText has the ages of signals, flow control and latencies.
func controlText(c tree) string {
	byAge, snapshots := map[string][]string{}, c.at("snapshots")
	for _, signal := range slices.Sorted(maps.Keys(snapshots)) {
		if signal == "default" {
			continue
		}
		age := fmt.Sprint(snapshots[signal])
		byAge[age] = append(byAge[age], signal)
	}
	text := "snapshots"
	for _, age := range slices.SortedFunc(maps.Keys(byAge), func(x, y string) int {
		return cmp.Or(len(byAge[y])-len(byAge[x]), strings.Compare(x, y))
	}) {
		if signals := byAge[age]; text == "snapshots" { // the most frequent age
			text += " " + age
		} else {
			text += fmt.Sprintf(", %s %s", strings.Join(signals, " "), age)
		}
	}
	if flow := c["flow_control"]; flow != nil {
		text += "; flow control " + inline(flow)
	}
	for _, key := range []string{"admission_latency_us", "routing_latency_us"} {
		if c.isOn(key) {
			text += fmt.Sprintf("; %s %v", key, c[key])
		}
	}
	return short(text, maxSetupLine)
}

// against says what changed in the configuration and the patterns since a reference run.
func (w *writer) against(r *Reference, config tree) {
	before, after := map[string]string{}, map[string]string{}
	flatten("", any(map[string]any(configOf(r.Header))), before)
	flatten("", any(map[string]any(config)), after)
	paths := slices.Sorted(maps.Keys(after))
	for path := range before {
		if _, ok := after[path]; !ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	var changes []string
	for _, path := range paths {
		isComputed := strings.Contains(path, ".computed.") || strings.Contains(path, ".derived.")
		if before[path] != after[path] && !isComputed {
			changes = append(changes, fmt.Sprintf("%s %s -> %s", path, dashIfEmpty(before[path]),
				dashIfEmpty(after[path])))
		}
	}
	text := "nothing"
	if n := len(changes); n > 0 {
		text = strings.Join(changes[:min(n, maxChanges)], ", ")
		if n > maxChanges {
			text += fmt.Sprintf(" and %d more", n-maxChanges)
		}
	}
	w.line("changed since the %s: %s", r.Name, short(text, maxSetupLine))
	if w.Findings != nil && r.Findings != nil {
		w.line("patterns since the %s: %s", r.Name, patternChanges(r.Findings.Patterns, w.Findings.Patterns))
	}
}

func dashIfEmpty(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// flatten adds the values of a configuration by their paths; list elements with an id are named by it.
func flatten(path string, v any, into map[string]string) {
	below := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			flatten(below(k), x, into)
		}
	case []any:
		for i, x := range v {
			key := fmt.Sprint(i)
			if m, ok := x.(map[string]any); ok && m["id"] != nil {
				key = fmt.Sprint(m["id"])
			}
			flatten(below(key), x, into)
		}
	default:
		into[path] = fmt.Sprint(v)
	}
}

// patternChanges says which patterns are new, gone, or hold for clearly more or fewer requests.
func patternChanges(before, after []attribution.Pattern) string {
	var parts []string
	lost := func(all []attribution.Pattern, like *attribution.Pattern) (n int64) {
		for i := range all {
			if all[i].Condition == like.Condition && all[i].Value == like.Value {
				n += all[i].Lost
			}
		}
		return n
	}
	for i := range after {
		p := &after[i]
		switch was := lost(before, p); {
		case was == 0:
			parts = append(parts, fmt.Sprintf("%s is new (%d)", patternName(p), p.Lost))
		case was != p.Lost:
			parts = append(parts, fmt.Sprintf("%s %d -> %d", patternName(p), was, p.Lost))
		}
	}
	for i := range before {
		if p := &before[i]; lost(after, p) == 0 {
			parts = append(parts, fmt.Sprintf("%s is gone (%d)", patternName(p), p.Lost))
		}
	}
	if len(parts) == 0 {
		return "unchanged"
	}
	return strings.Join(parts, ", ")
}

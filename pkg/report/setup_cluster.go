package report

import (
	"cmp"
	"fmt"
	"strings"
)

// Limits of the line about what only some clusters have.
const (
	maxSetupPart     = 180 // characters of one deployment's pools or tiers, of the auto-scaler, and of failures
	maxFailureEvents = 2
	usualLease       = "30" // transfer.lease_s in s
)

// deploymentText has the model of a deployment and its replicas by GPU: those of its pools, and the bounds of their
// number if it scales.
func deploymentText(d tree) string {
	replicas := replicasText(d)
	if p := d.at("prefill"); p != nil {
		replicas = fmt.Sprintf("prefill %s + decode %s", replicasText(p), replicas)
	}
	return fmt.Sprintf("%s %s with %v", name(fmt.Sprint(d["id"])), replicas, name(fmt.Sprint(d["model"])))
}

// replicasText has the replicas of a deployment or a prefill pool.
func replicasText(d tree) string {
	if !d.isOn("max_replicas") {
		return fmt.Sprintf("%v x %v", d["replicas"], d["gpu"])
	}
	return fmt.Sprintf("%v (%v-%v) x %v", d["replicas"], cmp.Or[any](d["min_replicas"], 1), d["max_replicas"], d["gpu"])
}

// enginesText has the limits of the engine of a deployment, and of that of its prefill pool if they differ.
func enginesText(d tree) string {
	text := name(fmt.Sprint(d["id"])) + " " + engineText(d)
	if p := d.at("prefill"); p != nil && engineText(p) != engineText(d) {
		text += ", its prefill pool " + engineText(p)
	}
	return text
}

// featuresText has the rules of pools, memories below the KV cache, the auto-scaler and failures; "" without any.
func featuresText(config tree, deployments []tree) string {
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, short(text, maxSetupPart))
		}
	}
	several, pools := len(config.list("deployments")) > 1, false
	for _, d := range deployments {
		of := ""
		if several {
			of = " of " + name(fmt.Sprint(d["id"]))
		}
		pools = pools || d["prefill"] != nil
		add(poolsText(d, of))
		if p := d.at("prefill"); p == nil || tiersText(p, "") == tiersText(d, "") {
			add(tiersText(d, of))
		} else {
			add(tiersText(p, of+" at prefill replicas"))
			add(tiersText(d, of+" at decode replicas"))
		}
		add(speculationText(d, of))
		add(loraText(d, of))
		add(grammarText(d, of))
		add(encoderText(d, of))
		add(encodePoolText(d, of))
	}
	add(scalingText(config.at("policies").at("autoscale")))
	add(failuresText(config.at("failures"), several || pools))
	if h := config.at("control_plane").at("health_check"); h != nil {
		add(fmt.Sprintf("health checks every %v, a replica is out after %v failed", h["interval"],
			h["failures"]))
	}
	return strings.Join(parts, "; ")
}

// speculationText says how drafts are proposed in a deployment.
func speculationText(d tree, of string) string {
	s := d.at("engine").at("speculative_config")
	if s == nil {
		return ""
	}
	return fmt.Sprintf("speculative decoding%s: %v, %v drafts", of, s["method"], s["num_speculative_tokens"])
}

// loraText says how many adapters a deployment serves at once.
func loraText(d tree, of string) string {
	e := d.at("engine")
	if e["max_loras"] == nil {
		return ""
	}
	return fmt.Sprintf("LoRA%s: %v adapters in a batch, %v in the host's memory", of, e["max_loras"],
		e["max_cpu_loras"])
}

// grammarText says how long grammars are compiled in a deployment that states it.
func grammarText(d tree, of string) string {
	e := d.at("engine")
	if e["grammar_compile_us"] == nil {
		return ""
	}
	return fmt.Sprintf("structured output%s: %v us to compile a grammar, %v us for a mask", of, e["grammar_compile_us"],
		e["grammar_mask_us"])
}

// encoderText says how many tokens of images and other media a deployment encodes in a step and keeps.
func encoderText(d tree, of string) string {
	e := d.at("engine")
	if e["mm_max_tokens_per_item"] == nil {
		return ""
	}
	return fmt.Sprintf("encoder%s: %v tokens in a step, %v in its cache", of, e["max_num_encoder_input_tokens"],
		e["encoder_cache_size"])
}

// encodePoolText says how many replicas encode for those of a deployment, and how embeddings move.
func encodePoolText(d tree, of string) string {
	p := d.at("encode")
	if p == nil {
		return ""
	}
	link := p.at("transfer")
	return fmt.Sprintf("encode pool%s: %v replicas of %v GPUs, %v, links %v GB/s out and %v in, %v us", of,
		p["replicas"], p["gpus"], p["routing"], link["out_gb_per_s"], link["in_gb_per_s"], link["latency_us"])
}

// poolsText says which prompts the prefill pool of a deployment computes, and how their KV moves.
func poolsText(d tree, of string) string {
	if d.at("prefill") == nil {
		return ""
	}
	decider, link := d.at("decider"), d.at("transfer")
	text := fmt.Sprintf("pools%s: decider %v", of, decider["type"])
	if decider["type"] == "prefix-based" {
		text += fmt.Sprintf(" (prefill pool from %v tokens not cached", decider["non_cached_tokens"])
		if decider.isOn("prompt_tokens") {
			text += fmt.Sprintf(" and %v prompt tokens", decider["prompt_tokens"])
		}
		text += ")"
	}
	if decider["type"] == "conditional" {
		text += fmt.Sprintf(" (decode pool below %v tokens not cached and %v of the prompt)", decider["new_tokens"],
			decider["new_ratio"])
	}
	if order := d["stage_order"]; order == "prefill-first" {
		text += ", prefill replica chosen first"
	}
	text += fmt.Sprintf(", links %v GB/s out and %v in, %v us", link["out_gb_per_s"], link["in_gb_per_s"],
		link["latency_us"])
	if g := link["granularity"]; g == "chunk" || g == "block" {
		text += fmt.Sprintf(", granularity %v", g)
	}
	if link["pipeline"] == true {
		text += ", pipeline"
	}
	if link.isOn("hop_us") {
		text += fmt.Sprintf(", hop %v us", link["hop_us"])
	}
	if s := link["lease_s"]; s != nil && fmt.Sprint(s) != usualLease {
		text += fmt.Sprintf(", lease %v s (then %v)", s, link["on_expiry"])
	}
	if b := d.at("backpressure"); b != nil {
		text += fmt.Sprintf(", backpressure from %v waiting", b["max_waiting"])
	}
	return text
}

// tiersText has the sizes of the memories of a deployment and the rules for them.
func tiersText(d tree, of string) string {
	tiers, rules := d.list("kv_tiers"), d.at("kv_offload")
	if len(tiers) == 0 {
		return ""
	}
	text := "KV tier" + of + ": " + list(tiers, func(t tree) string {
		size := fmt.Sprintf("%v blocks", t["blocks"])
		if t.isOn("gib") {
			size = fmt.Sprintf("%v GiB", t["gib"])
		}
		if !t.isOn("shared") {
			size += " a replica"
		}
		return fmt.Sprintf("%v %s, loads %v GB/s", t["tier"], size, t.at("load")["gb_per_s"])
	})
	text += fmt.Sprintf(", offload %v", rules["policy"])
	if rules.isOn("storage") {
		text += fmt.Sprintf(" and %v", rules["storage"])
	}
	if rules.isOn("threshold") {
		text += fmt.Sprintf(" %v", rules["threshold"])
	}
	text += fmt.Sprintf(", eviction %v", rules["eviction"])
	if n := rules["min_load_blocks"]; rules.isOn("min_load_blocks") && fmt.Sprint(n) != "1" {
		text += fmt.Sprintf(", min_load_blocks %v", n)
	}
	return text
}

// scalingText has the policy of the auto-scaler, when it looks, and how long a new replica takes to come.
func scalingText(a tree) string {
	if a == nil {
		return ""
	}
	policy := map[string]any{}
	for _, key := range []string{"type", "params", "desired", "root", "state"} {
		if a[key] != nil {
			policy[key] = a[key]
		}
	}
	text := "autoscale " + settingText(policy)
	if t := a.at("trigger"); t != nil {
		text += fmt.Sprintf(" when %v for %v", t["when"], t["for"])
	} else {
		text += fmt.Sprintf(" every %v", a["interval"])
	}
	provision := a.at("actuation").at("provision")
	if time := provision.at("params")["value"]; time != nil && provision["type"] == "constant" {
		text += fmt.Sprintf(", provision %v", time)
	} else if provision != nil {
		text += ", provision " + settingText(map[string]any(provision))
	}
	if down := a.at("stabilization")["down"]; down != nil && down != "0s" {
		text += fmt.Sprintf(", scale-down window %v", down)
	}
	return text
}

// failuresText has the first failures at given times, and the means of random ones.
func failuresText(f tree, several bool) string {
	var parts []string
	events := f.list("events")
	for _, e := range events[:min(len(events), maxFailureEvents)] {
		replica := fmt.Sprint(e["replica"])
		if several {
			replica = name(fmt.Sprint(e["deployment"])) + "/" + replica
		}
		text := fmt.Sprintf("replica %s %v", replica, e["kind"])
		if e["factor"] != nil {
			text += fmt.Sprintf(" x%v", e["factor"])
		}
		text += fmt.Sprintf(" at %v", e["at"])
		if e["for"] != nil {
			text += fmt.Sprintf(" for %v", e["for"])
		}
		if e["inflight"] != nil {
			text += fmt.Sprintf(" (its requests: %v)", e["inflight"])
		}
		parts = append(parts, text)
	}
	if n := len(events) - maxFailureEvents; n > 0 {
		parts = append(parts, fmt.Sprintf("%d more", n))
	}
	if r := f.at("random"); r != nil {
		parts = append(parts, fmt.Sprintf("random MTBF %v MTTR %v (requests: %v)", r["mtbf"], r["mttr"], r["inflight"]))
	}
	if len(parts) == 0 {
		return ""
	}
	return "failures: " + strings.Join(parts, ", ")
}

package policy

import (
	"maps"

	"blis/pkg/registry"
	"blis/pkg/scale"
)

// AutoscalePresets are configurations of real auto-scalers. A file that names one gives what differs.
var AutoscalePresets = registry.Table[func() *Autoscale]{
	{Name: "kubernetes-hpa", Doc: "the Horizontal Pod Autoscaler on KV usage, with its defaults (autoscaling/v2 of " +
		"Kubernetes v1.34)", Value: kubernetesHPA},
	{Name: "keda-inflight", Doc: "KEDA on llm-d's requests in flight (llm-d guides/workload-autoscaling/keda-epp, " +
		"scaledobject.yaml)", Value: func() *Autoscale { return keda(map[string]any{"inflight": 16.0}) }},
	{Name: "keda-queue", Doc: "the same with the queue of flow control (components/trigger-queue)",
		Value: func() *Autoscale { return keda(map[string]any{"inflight": 16.0, "pending": 1.0}) }},
	{Name: "keda-saturation", Doc: "the same with the saturation of the pool (components/trigger-saturation)",
		Value: func() *Autoscale { return keda(map[string]any{"inflight": 16.0, "saturation": 0.7}) }},
	{Name: "keda-tokens", Doc: "KEDA on llm-d's prompt tokens, 1.5 s at 15,928 tokens/s, and KV usage " +
		"(guides/workload-autoscaling/keda-epp-token-aware)", Value: kedaTokens},
	{Name: "dynamo-throughput", Doc: "Dynamo's planner on load, without latency targets, for throughput " +
		"(ai-dynamo 1.6.1, planner/core/load_scaling.py, _agg_easy_decision)",
		Value: func() *Autoscale { return dynamo(1.0, 0.6) }},
	{Name: "dynamo-latency", Doc: "the same for latency", Value: func() *Autoscale { return dynamo(0.4, 0.1) }},
	{Name: "dynamo-load", Doc: "the same between limits of your own, params.up and params.down (Dynamo's " +
		"decode_scale_up_kv_rate and decode_scale_down_kv_rate, over 100)", Value: dynamoLoad},
	{Name: "dynamo-sla", Doc: "Dynamo's planner for latency targets, by predicted load (core/throughput_scaling.py " +
		"and core/load/predictors.py; without its predictors arima, the default there, and prophet)",
		Value: dynamoSLA},
}

// kubernetesHPA has the defaults of a file.
func kubernetesHPA() *Autoscale {
	return &Autoscale{Type: "target-utilization", Config: scale.DefaultConfig()}
}

// keda doubles the number of replicas in 15 s at most.
func keda(targets map[string]any) *Autoscale {
	a := kubernetesHPA()
	a.Type, a.Params = "average-value", map[string]any{"targets": targets}
	a.Limits.Up = a.Limits.Up[:1]
	return a
}

// kedaTokens adds a replica in 3 minutes at most, and removes one in 5.
func kedaTokens() *Autoscale {
	a := keda(map[string]any{"prefill_tokens": 1.5 * 15928, "kv_util": 0.8})
	a.Limits.Up = []scale.LimitConfig{{Replicas: 1, Period: "180s"}}
	a.Limits.Down = []scale.LimitConfig{{Replicas: 1, Period: "300s"}}
	return a
}

// quick looks at every interval and follows recommendations at once.
func quick(interval scale.Duration) *Autoscale {
	a := kubernetesHPA()
	a.Interval, a.Stabilization = interval, scale.Stabilization{Up: "0s", Down: "0s"}
	a.Limits.Up, a.Limits.Down = nil, nil
	return a
}

// dynamo adds and removes one replica every 5 s. While others drain it does nothing, while others start it only removes
// those, and it removes none whose load would bring the others to the upper limit. A limit that is nil has no default.
func dynamo(up, down any) *Autoscale {
	a := quick("5s")
	a.Type = "threshold"
	a.Params = map[string]any{"signal": "kv_demand", "up": up, "down": down, "across": acrossEach, "settle": true,
		"cancel_starting": true, "check_removal": true}
	return a
}

// dynamoSLA predicts each interval of 180 s from those before. Other replicas that start or drain count as with dynamo.
func dynamoSLA() *Autoscale {
	a := quick("180s")
	a.Type, a.Params = "predicted-load", map[string]any{"settle": true, "cancel_starting": true}
	return a
}

// dynamoLoad reaches its limits where a value is equal to them.
func dynamoLoad() *Autoscale {
	a := dynamo(nil, nil)
	a.Params["inclusive"] = true
	return a
}

// checkGiven checks that the parameters are given for which a preset has no default.
func (a *Autoscale) checkGiven() {
	for _, name := range sortedKeys(a.Params) {
		if a.Preset != "" && a.Params[name] == nil {
			panic(&Error{Path: "autoscale.params." + name,
				Msg: "must be given: the preset " + a.Preset + " has no default"})
		}
	}
}

// UnmarshalYAML decodes over the defaults, or over those of a preset.
func (a *Autoscale) UnmarshalYAML(decode func(any) error) error {
	type plain Autoscale
	var named Autoscale
	named.Config = scale.DefaultConfig()
	if err := decode((*plain)(&named)); err != nil {
		return err
	}
	base := kubernetesHPA()
	if named.Preset != "" {
		preset, err := AutoscalePresets.Get("auto-scaling preset", named.Preset)
		if err != nil {
			return err
		}
		base = preset()
	}
	*a = *base
	a.Params, a.Interval = nil, ""
	if err := decode((*plain)(a)); err != nil {
		return err
	}
	if a.Type == base.Type { // the parameters of another type are its own
		params := maps.Clone(base.Params)
		if params == nil {
			params = a.Params
		} else {
			maps.Copy(params, a.Params)
		}
		a.Params = params
	}
	if a.Interval == "" && a.Trigger == nil {
		a.Interval = base.Interval
	}
	return nil
}

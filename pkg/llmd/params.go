package llmd

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Plugins whose parameters have another form in llm-d than in a policy bundle: a list of conditions instead of a table,
// a nested configuration, a duration instead of seconds.
const (
	utilizationFilter = "utilization-filter"
	conditions        = "conditions"
	staleness         = "metricsStalenessThreshold"
	sessionConfig     = "sessionIdConfig"
	inflightProducer  = "inFlightLoadProducerName"
)

var (
	// sessionPlugins have parameters of bound sessions.
	sessionPlugins = []string{"session-affinity-filter", "session-affinity-scorer"}
	sessionParams  = []string{"evictionTtlSeconds", "evictionSweepSeconds"}
	// sessionIgnored say how requests name their session and replica, which they do here anyway.
	sessionIgnored = []string{"encodedEndpointHeaderConfig", "profileName"}
	// attributePlugins read attributes that plugins of llm-d's data layer define, and here signals of replicas.
	attributePlugins = []string{"endpoint-attribute-filter", "endpoint-attribute-scorer"}
)

// ReadsAttributes reports whether a plugin has no counterpart, because its attributes are others than llm-d's.
func ReadsAttributes(plugin string) bool { return slices.Contains(attributePlugins, plugin) }

// toLLMD returns the parameters of a plugin as llm-d has them.
func toLLMD(plugin string, params map[string]any) map[string]any {
	out := maps.Clone(params)
	switch {
	case plugin == utilizationFilter:
		limits := map[string]any{}
		switch t := params[conditions].(type) {
		case map[string]float64:
			for metric, limit := range t {
				limits[metric] = limit
			}
		case map[string]any:
			limits = t
		}
		list := []any{}
		for _, metric := range slices.Sorted(maps.Keys(limits)) {
			list = append(list, map[string]any{"metric": metric, "maxValue": limits[metric]})
		}
		out[conditions] = list
	case slices.Contains(sessionPlugins, plugin):
		bound := map[string]any{}
		for _, name := range sessionParams {
			if value, ok := out[name]; ok {
				bound[name] = value
				delete(out, name)
			}
		}
		if len(bound) > 0 {
			out[sessionConfig] = bound
		}
	case plugin == defaultDetector:
		if s, ok := number(params[staleness]); ok {
			out[staleness] = time.Duration(s * float64(time.Second)).String()
		}
	}
	return out
}

// fromLLMD returns the parameters of a plugin as a policy bundle has them. An error comes with the name of its
// parameter.
func fromLLMD(plugin string, params map[string]any) (out map[string]any, at string, err error) {
	out = maps.Clone(params)
	delete(out, inflightProducer) // there is one
	switch {
	case plugin == utilizationFilter:
		limits := map[string]any{}
		list, ok := params[conditions].([]any)
		for _, c := range list {
			condition, isMap := c.(map[string]any)
			metric, isText := condition["metric"].(string)
			limit, isNumber := number(condition["maxValue"])
			if ok = ok && isMap && isText && isNumber && len(condition) == 2; ok {
				limits[metric] = limit
			}
		}
		if !ok || len(limits) < len(list) {
			return nil, conditions, fmt.Errorf("must be a list of a metric and a maxValue each, with each metric once")
		}
		out[conditions] = limits
	case slices.Contains(sessionPlugins, plugin):
		for _, name := range sessionIgnored {
			delete(out, name)
		}
		bound, _ := out[sessionConfig].(map[string]any)
		delete(out, sessionConfig)
		for name, value := range bound {
			if name != "sources" {
				out[name] = value
			}
		}
	case plugin == defaultDetector && params[staleness] != nil:
		age, err := time.ParseDuration(fmt.Sprint(params[staleness]))
		if err != nil {
			return nil, staleness, fmt.Errorf("must be a duration such as 200ms, is %v", params[staleness])
		}
		out[staleness] = age.Seconds()
	}
	return out, "", nil
}

// number returns a number of a document.
func number(value any) (float64, bool) {
	if value == nil {
		return 0, false
	}
	x, err := strconv.ParseFloat(fmt.Sprint(value), 64)
	return x, err == nil
}

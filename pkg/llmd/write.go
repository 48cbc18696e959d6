package llmd

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"blis/pkg/policy"
)

// Text returns the configuration as YAML, with comments before it.
func (r *Router) Text(comments []string) string {
	w := &writer{names: map[string]int{}}
	for _, c := range comments {
		w.line(&w.head, "# %s", c)
	}
	w.line(&w.head, "apiVersion: %s", apiVersion)
	w.line(&w.head, "kind: %s", kind)
	for i := range r.Routing.Of {
		w.ofProfile(&r.Routing.Of[i])
	}
	if r.Admission != nil {
		w.plugin(r.Admission.Type, r.Admission.Params)
	}
	if r.Flow != nil {
		w.line(&w.head, "featureGates: [%s]", flowControlGate)
		w.flow(r.Flow)
	}
	return w.head.String() + "plugins:\n" + w.plugins.String() + "schedulingProfiles:\n- name: default\n  plugins:\n" +
		w.profile.String() + w.tail.String()
}

// writer collects the sections.
type writer struct {
	head, plugins, profile, tail strings.Builder
	names                        map[string]int
}

func (w *writer) line(to *strings.Builder, format string, args ...any) {
	fmt.Fprintf(to, format+"\n", args...)
}

// plugin adds a plugin and returns its name.
func (w *writer) plugin(name string, params map[string]any) string {
	kind := name
	w.line(&w.plugins, "- type: %s", kind)
	if w.names[kind]++; w.names[kind] > 1 {
		name = fmt.Sprintf("%s-%d", kind, w.names[kind])
		w.line(&w.plugins, "  name: %s", name)
	}
	if params = toLLMD(kind, params); len(params) > 0 {
		text, err := json.Marshal(params)
		if err != nil {
			panic("llmd: " + err.Error()) // parameters are numbers, texts and maps of numbers
		}
		w.line(&w.plugins, "  parameters: %s", text) // JSON is YAML
	}
	return name
}

// ofProfile adds a plugin of the profile.
func (w *writer) ofProfile(s *policy.Spec) {
	params := maps.Clone(s.Params)
	weight, isScorer := params["weight"]
	delete(params, "weight")
	name := w.plugin(s.Type, params)
	if s.Type == prefixProducer {
		return // profiles do not refer to producers
	}
	w.line(&w.profile, "  - pluginRef: %s", name)
	if isScorer {
		w.line(&w.profile, "    weight: %v", weight)
	}
}

func (w *writer) flow(f *Flow) {
	w.line(&w.tail, "flowControl:")
	if f.Capacity > 0 {
		w.line(&w.tail, "  maxRequests: %d", f.Capacity)
	}
	w.line(&w.tail, "  defaultRequestTTL: %s", time.Duration(f.TTLUS)*time.Microsecond)
	w.line(&w.tail, "  saturationDetector:")
	w.line(&w.tail, "    pluginRef: %s", w.plugin(f.Detector.Type, f.Detector.Params))
	if f.UsageLimit != nil {
		w.line(&w.tail, "  usageLimitPolicyPluginRef: %s", w.plugin(f.UsageLimit.Type, f.UsageLimit.Params))
	}
	w.line(&w.tail, "  defaultPriorityBand:")
	w.line(&w.tail, "    orderingPolicyRef: %s", w.plugin(f.Order, nil))
	w.line(&w.tail, "    fairnessPolicyRef: %s", w.plugin(f.Fairness, nil))
	w.line(&w.tail, "    maxRequests: %d", int(unlimited)) // only the limit of all bands
	w.line(&w.tail, "    maxBytes: 1Ti")
}

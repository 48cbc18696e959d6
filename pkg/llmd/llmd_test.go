package llmd

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"blis/pkg/policy"
	"blis/pkg/strictyaml"
)

// read parses the text of a configuration.
func read(t *testing.T, text string) (*Router, []string, error) {
	t.Helper()
	doc, err := strictyaml.Parse("epp.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if !IsConfig(doc) {
		t.Fatalf("no configuration:\n%s", text)
	}
	return Read(doc)
}

// otherThanDefault returns parameters that all differ from their defaults.
func otherThanDefault(params []policy.Param) map[string]any {
	all := map[string]any{}
	for _, p := range params {
		switch p.Kind {
		case policy.Flag:
			all[p.Name] = p.Default != true
		case policy.Choose:
			all[p.Name] = p.Choices[len(p.Choices)-1]
			if all[p.Name] == p.Default && len(p.Choices) > 1 {
				all[p.Name] = p.Choices[0]
			}
		case policy.Table:
			all[p.Name] = map[string]any{"waiting-queue": 7.0, "kv-cache-utilization": 0.5}
		default:
			x := p.Search[0] + 0.75*(p.Search[1]-p.Search[0])
			if x == p.Default {
				x = p.Search[1]
			}
			if p.Whole {
				x = float64(int(x))
			}
			all[p.Name] = x
		}
	}
	return all
}

// same compares specs as files have them.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(want)
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Errorf("%s: read\n%s\nwritten\n%s", what, a, b)
	}
}

// TestRoundTrip: every plugin that is simulated is written and read with all its parameters.
func TestRoundTrip(t *testing.T) {
	tested := map[string]bool{}
	entry := map[string]policy.Entry{}
	for _, e := range policy.Entries() {
		entry[e.Stage+" "+e.Name] = e
	}
	picker := policy.Spec{Type: "random-picker"}
	for name, p := range policy.LLMDPlugins() {
		r := &Router{Routing: policy.Spec{Type: routingType, Of: []policy.Spec{picker}}}
		f := &Flow{Order: defaultOrder, Fairness: "round-robin-fairness-policy", Capacity: 70, TTLUS: 1500000,
			Detector: policy.Spec{Type: "concurrency-detector", Params: map[string]any{"maxConcurrency": 3.0}}}
		part := policy.Spec{Type: name}
		switch {
		case ReadsAttributes(name):
			continue
		case p.Place == policy.InProfile:
			part.Params = otherThanDefault(entry[policy.StageLLMD+" "+name].Params)
			if len(part.Params) == 0 {
				part.Params = nil
			}
			if p.Kind == "picker" {
				r.Routing.Of = []policy.Spec{part}
			} else {
				r.Routing.Of = []policy.Spec{part, picker}
			}
			if name == prefixProducer { // producers are behind the profile
				r.Routing.Of = []policy.Spec{picker, part}
			}
		case p.Place == policy.InAdmission:
			r.Admission = &policy.Spec{Type: name, Params: otherThanDefault(entry["admission "+name].Params)}
		case p.Kind == "ordering":
			f.Order, r.Flow = name, f
		case p.Kind == "fairness" && p.Place == policy.InFlowControl:
			f.Fairness, r.Flow = name, f
		case p.Kind == "usage limit":
			if params := otherThanDefault(entry[policy.StageUsageLimit+" "+name].Params); len(params) > 0 {
				part.Params = params
			}
			f.UsageLimit, r.Flow = &part, f
		default:
			continue
		}
		tested[name] = true
		text := r.Text([]string{"A comment."})
		got, warnings, err := read(t, text)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, warnings %q, of\n%s", name, err, warnings, text)
			continue
		}
		same(t, name, got, r)
	}
	for _, detector := range []string{"utilization-detector", "concurrency-detector"} {
		f := &Flow{Order: defaultOrder, Fairness: defaultFairness, Detector: policy.Spec{Type: detector,
			Params: otherThanDefault(entry[policy.StageDetector+" "+detector].Params)}}
		r := &Router{Routing: policy.Spec{Type: routingType, Of: []policy.Spec{picker}}, Flow: f}
		got, _, err := read(t, r.Text(nil))
		if err != nil {
			t.Error(err)
		}
		same(t, detector, got, r)
	}
	if len(tested) != 20+1+8 {
		t.Errorf("%d plugins were tested: %v", len(tested), tested)
	}
}

// TestTwice: two plugins of a type have names of their own.
func TestTwice(t *testing.T) {
	filter := func(limit float64) policy.Spec {
		return policy.Spec{Type: "utilization-filter",
			Params: map[string]any{"conditions": map[string]any{"waiting-queue": limit}}}
	}
	r := &Router{Routing: policy.Spec{Type: routingType, Of: []policy.Spec{filter(9), filter(4)}}}
	got, _, err := read(t, r.Text(nil))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "two filters", got, r)
}

// TestForms: parameters have the forms that llm-d reads.
func TestForms(t *testing.T) {
	r := &Router{Routing: policy.Spec{Type: routingType, Of: []policy.Spec{
		{Type: "utilization-filter", Params: map[string]any{conditions: map[string]float64{"waiting-queue": 7,
			"kv-cache-utilization": 0.5}, "fallbackOnEmpty": true}},
		{Type: "session-affinity-scorer", Params: map[string]any{"weight": 2.0, "strategy": "session_id",
			"evictionTtlSeconds": 60.0}},
		{Type: "utilization-detector", Params: map[string]any{staleness: 0.05}}}}}
	text := r.Text(nil)
	for _, want := range []string{
		`{"conditions":[{"maxValue":0.5,"metric":"kv-cache-utilization"},{"maxValue":7,"metric":"waiting-queue"}],` +
			`"fallbackOnEmpty":true}`,
		`{"sessionIdConfig":{"evictionTtlSeconds":60},"strategy":"session_id"}`,
		`{"metricsStalenessThreshold":"50ms"}`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

const head = `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: queue-scorer
- type: random-picker
`

const tail = `schedulingProfiles:
- name: default
  plugins:
  - pluginRef: queue-scorer
  - pluginRef: random-picker
`

const gate = "featureGates: [flowControl]\n"

// TestErrors: what would change decisions and is not simulated is an error with its place.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"kind: Deployment\n": "epp.yaml:1:7: kind: must be EndpointPickerConfig",
		head + "- type: latency-slo-admitter\n" + tail: "epp.yaml:6:9: plugins[2].type: latency-slo-admitter is not " +
			"simulated: reads predictions of a trained latency model",
		head + "- type: scorer\n" + tail:       `has no plugin "scorer"`,
		head + "- type: queue-scorer\n" + tail: "two plugins have the name",
		head + tail + "  - pluginRef: queue\n": `there is no plugin "queue"; have queue-scorer, random-picker`,
		head + tail + "- name: decode\n":       "must have one profile, has 2",
		head + "- type: load-aware-scorer\n  parameters: {threshold: 0}\n" + tail +
			"  - pluginRef: load-aware-scorer\n": "epp.yaml:7:27: plugins[2].parameters.threshold: must be",
		head + "- type: utilization-filter\n  parameters: {conditions: [{metric: waiting-queue}]}\n" + tail +
			"  - pluginRef: utilization-filter\n": "plugins[2].parameters.conditions: must be a list of a metric and",
		head + "- type: endpoint-attribute-filter\n" + tail +
			"  - pluginRef: endpoint-attribute-filter\n": "reads attributes of llm-d's data layer",
		head + "- type: utilization-detector\n  parameters: {metricsStalenessThreshold: old}\n" + tail + gate +
			"flowControl: {saturationDetector: {pluginRef: utilization-detector}}\n": "must be a duration such as",
		head + "- type: max-score-picker\n  parameters: {maxNumOfEndpoints: 2}\n" + tail +
			"  - pluginRef: max-score-picker\n": "must be 1, is 2",
		head + tail + gate + "flowControl: {enableEviction: true}\n":    "enableEviction: is not simulated",
		head + tail + gate + "flowControl: {defaultRequestTTL: soon}\n": "must be a duration",
		head + tail + gate + "flowControl: {priorityBands: [{priority: 1, fairnessPolicyRef: " +
			"round-robin-fairness-policy}]}\n": "all bands must have the same",
		head + tail + gate + "flowControl: {saturationDetector: {pluginRef: queue-scorer}}\n": "unknown " +
			"saturation detector",
		head + tail + "flowcontrol: {}\n": `unknown field "flowcontrol"; did you mean "flowControl"?`,
	} {
		if _, _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q, of\n%s", err, want, text)
		}
	}
}

// TestWarnings: what has no effect is a warning, and the rest is read.
func TestWarnings(t *testing.T) {
	text := head + `- type: prefix-cache-scorer
  name: prefixes
  parameters: {prefixMatchInfoProducerName: kv}
- type: precise-prefix-cache-producer
  name: kv
- type: decode-filter
- type: openai-parser
- type: static-usage-limit-policy
` + tail + `  - pluginRef: prefixes
    weight: 2.5
  - pluginRef: decode-filter
requestHandler: {parsers: [{pluginRef: openai-parser}]}
flowControl: {maxRequests: 1k}
`
	r, warnings, err := read(t, text)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "router", r, &Router{Routing: policy.Spec{Type: routingType, Of: []policy.Spec{{Type: "queue-scorer"},
		{Type: "random-picker"}, {Type: preciseScorer, Params: map[string]any{"weight": 2.5}}}}})
	for _, want := range []string{"decode-filter has no effect", "flowControl has no effect without the feature gate",
		"static-usage-limit-policy has no effect"} {
		if !strings.Contains(fmt.Sprint(warnings), want) {
			t.Errorf("no warning %q in %q", want, warnings)
		}
	}
	r, warnings, err = read(t, text+"featureGates: [flowControl=true]\n")
	if err != nil || len(warnings) != 2 {
		t.Fatal(err, warnings)
	}
	same(t, "flow control", r.Flow, &Flow{Order: defaultOrder, Fairness: defaultFairness, Capacity: 1000,
		TTLUS: 60000000, Detector: policy.Spec{Type: defaultDetector}})
}

// TestConditions: each is a metric and a number, and no metric is there twice.
func TestConditions(t *testing.T) {
	for list, ok := range map[string]bool{"[{metric: waiting-queue, maxValue: 3}]": true, "5": false,
		"[{metric: waiting-queue, maxValue: many}]": false, "[{metric: waiting-queue, maxValue: null}]": false,
		"[{metric: 7, maxValue: 3}]": false, "[waiting-queue]": false,
		"[{metric: waiting-queue, maxValue: 3, more: 4}]":                                     false,
		"[{metric: waiting-queue, maxValue: 3}, {metric: waiting-queue, maxValue: 4}]":        false,
		"[{metric: waiting-queue, maxValue: 3}, {metric: kv-cache-utilization, maxValue: 1}]": true} {
		_, _, err := read(t, head+"- type: utilization-filter\n  parameters: {conditions: "+list+"}\n"+tail+
			"  - pluginRef: utilization-filter\n")
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "must be a list of a metric and") {
			t.Errorf("%s: error %v", list, err)
		}
	}
}

// TestDefaultsOfPlugins: a picker of one endpoint and a detector without parameters are those without any, and limits
// of bytes are a warning.
func TestDefaultsOfPlugins(t *testing.T) {
	r, warnings, err := read(t, head+"- type: max-score-picker\n  parameters: {maxNumOfEndpoints: 1}\n"+
		"- type: utilization-detector\n"+tail+"  - pluginRef: max-score-picker\n"+gate+
		"flowControl: {maxBytes: 1Gi, saturationDetector: {pluginRef: utilization-detector}}\n")
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "flowControl.maxBytes has no effect") {
		t.Fatal(err, warnings)
	}
	if picker := r.Routing.Of[2]; picker.Type != "max-score-picker" || picker.Params != nil || r.Flow.Capacity != 0 {
		t.Errorf("%+v, %+v", picker, r.Flow)
	}
	if text := r.Text(nil); strings.Contains(text, "\n  maxRequests:") {
		t.Errorf("no limit is written:\n%s", text)
	}
}

// TestQuantity: suffixes of Kubernetes.
func TestQuantity(t *testing.T) {
	for s, want := range map[string]float64{"0": 0, "7": 7, "1.5k": 1500, "2M": 2e6, "3G": 3e9, "1T": 1e12, "2Ki": 2048,
		"1Mi": 1 << 20, "1Gi": 1 << 30, "1Ti": 1 << 40, "-1": -1, "k": -1, "1m": -1} {
		if x, ok := quantity(s); ok != (want >= 0) || ok && x != want {
			t.Errorf("%s: %v, %v, want %v", s, x, ok, want)
		}
	}
}

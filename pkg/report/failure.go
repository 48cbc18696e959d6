package report

import (
	"fmt"
	"strings"

	"blis/pkg/registry"
	"blis/pkg/stream"
)

// example is something that loads, of the files that a tool reads.
type example struct{ what, text string }

// inBundle is an example of one policy.
func inBundle(stage, text string) example {
	return example{stage + " in a bundle (-p), or under policies in a cluster file,", text}
}

// examples are what to compare a file of blis-sim with that does not load, by a word that
// messages have about what is wrong. Of those that a message has the first word decides,
// but that weighted says more than routing.
var examples = registry.Table[example]{
	{Name: "admission", Value: inBundle("admission", "admission: {type: expression, admit: 'req.tier != \"sheddable\" || cluster.saturation < 1 ? \"admit\" : \"reject\"'}")},
	{Name: "priority", Value: inBundle("priority", "priority: {type: expression, priority: 'req.slo_class == \"critical\" ? 100.0 : req.priority'}")},
	{Name: "scheduler", Value: inBundle("scheduler", "scheduler: {type: priority-fcfs}")},
	{Name: "preemption", Value: inBundle("preemption", "preemption: {type: lowest-priority}")},
	{Name: "routing", Value: inBundle("routing", "routing: {type: expression, score: 'replica.prefix_match - 0.05 * replica.inflight'}")},
	{Name: "weighted", Value: inBundle("routing", "routing: {type: weighted, params: {prefix-affinity: 3, queue-depth: 2}}")},
	{Name: "version", Value: clusterExample},
	{Name: "deployment", Value: clusterExample},
	{Name: "replicas", Value: clusterExample},
}

var (
	clusterExample = example{"a cluster file (-c)", "version: 1\ndeployments:\n  - {id: main, model: meta-llama/Llama-3.1-8B-Instruct, gpu: H100-SXM-80GB, replicas: 4}"}
	bundleExample  = example{"a bundle of policies (-p)", "admission: {type: always-admit}\nrouting: {type: weighted, params: {prefix-affinity: 3, queue-depth: 2}}\nscheduler: {type: fcfs}"}
	specExample    = example{"a spec", "version: \"2\"\naggregate_rate: 10\nrequests: 100\nclients:\n  - id: a\n    rate_fraction: 1\n    arrival: {process: poisson}\n" +
		"    input_distribution: {type: constant, params: {value: 512}}\n    output_distribution: {type: constant, params: {value: 64}}"}
)

// Failure is the whole text about something that did not load: what is wrong and where,
// and an example that loads.
func Failure(err error, fault *stream.Fault) []byte {
	w := &writer{most: MaxSectionLength}
	w.line("[%s] does not load: fitness 0.0000", product)
	if fault == nil {
		w.line("[ERROR]")
		w.wrapped(err.Error())
		return w.b
	}
	w.line("[ERROR] %s", name(fault.Tool))
	where := or(fault.File, "")
	if fault.Line > 0 {
		where += fmt.Sprintf(", line %d", fault.Line)
		if fault.Col > 0 {
			where += fmt.Sprintf(", column %d", fault.Col)
		}
	}
	if where != "" {
		w.line("where: %s", where)
	}
	w.wrapped("what: " + fault.Msg)
	for _, x := range examplesFor(fault) {
		w.line("[EXAMPLE] %s that loads", x.what)
		for _, line := range strings.Split(x.text, "\n") {
			w.line("  %s", line)
		}
	}
	if fault.Tool == "blis-sim" {
		w.line("[MORE] blis-sim --list policies; blis-sim --list signals; blis-sim --print-config")
	} else {
		w.line("[MORE] blis-gen --list scenarios; blis-gen --print-spec --scenario chat")
	}
	return w.b
}

// examplesFor are the nearest to what is wrong: one, but of a file that could not be read
// nobody knows which it was to be.
func examplesFor(fault *stream.Fault) []example {
	if fault.Tool == "blis-gen" {
		return []example{specExample}
	}
	found, first := bundleExample, len(fault.Msg)
	for _, x := range examples {
		at := strings.Index(fault.Msg, x.Name)
		if at >= 0 && (at < first || x.Name == "weighted" && strings.HasPrefix(fault.Msg, "routing")) {
			found, first = x.Value, at
		}
	}
	if first == len(fault.Msg) && fault.Line == 0 {
		return []example{clusterExample, bundleExample}
	}
	return []example{found}
}

// wrapped adds a long text in lines of up to 110 characters.
func (w *writer) wrapped(text string) {
	text = short(text, 1000)
	for len(text) > 110 {
		at := strings.LastIndexByte(text[:110], ' ')
		if at <= 0 {
			at = 110
		}
		w.line("%s", strings.TrimRight(text[:at], " "))
		text = "  " + strings.TrimLeft(text[at:], " ")
	}
	w.line("%s", text)
}

package feedback

import (
	"fmt"
	"strings"

	"blis/pkg/record"
)

// example is something that loads, of the files that a tool reads.
type example struct{ what, text string }

// examples are what to compare a file with that does not load: by the word in the
// message that tells which part of it is wrong, the last for everything else.
var (
	simExamples = []struct {
		word string
		example
	}{
		{"admission", example{"admission in a bundle (-p) or under policies", "admission: {type: expression, admit: 'req.tier != \"sheddable\" || cluster.saturation < 1 ? \"admit\" : \"reject\"'}"}},
		{"priority", example{"priority in a bundle (-p) or under policies", "priority: {type: expression, priority: 'req.slo_class == \"critical\" ? 100.0 : req.priority'}"}},
		{"scheduler", example{"scheduler in a bundle (-p) or under policies", "scheduler: {type: priority-fcfs}"}},
		{"deployment", example{"a cluster file", "version: 1\ndeployments:\n  - {id: main, model: meta-llama/Llama-3.1-8B-Instruct, gpu: H100-SXM-80GB, replicas: 4}"}},
		{"routing", example{"routing in a bundle (-p) or under policies", "routing: {type: expression, score: 'replica.prefix_match - 0.05 * replica.inflight'}"}},
	}
	bundleExample = example{"a bundle of policies (-p)", "admission: {type: always-admit}\nrouting: {type: weighted, params: {prefix-affinity: 3, queue-depth: 2}}\nscheduler: {type: fcfs}"}
	genExample    = example{"a spec", "version: \"2\"\naggregate_rate: 10\nrequests: 100\nclients:\n  - id: a\n    rate_fraction: 1\n    arrival: {process: poisson}\n    input_distribution: {type: constant, params: {value: 512}}\n    output_distribution: {type: constant, params: {value: 64}}"}
)

// Failure is the whole text about something that did not load: what is wrong and where,
// and an example that loads.
func Failure(err error, fault *record.Fault) []byte {
	w := &writer{most: LongestPart}
	w.line("[blis-summary/%d] does not load: fitness 0.0000", Version)
	if fault == nil {
		w.line("[ERROR]")
		w.wrapped(err.Error())
		return w.b
	}
	w.line("[ERROR] of %s", name(fault.Tool))
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
	what, expected, has := strings.Cut(fault.Msg, "; did you mean ")
	if has {
		w.wrapped("what: " + what)
		w.wrapped("expected: " + expected)
	} else {
		w.wrapped("what and what is allowed: " + what)
	}
	x := exampleFor(fault)
	w.line("[EXAMPLE] %s that loads", x.what)
	for _, line := range strings.Split(x.text, "\n") {
		w.line("  %s", line)
	}
	if fault.Tool == "blis-sim" {
		w.line("[MORE] blis-sim --list policies; blis-sim --list signals; blis-sim --print-config")
	} else {
		w.line("[MORE] blis-gen --list scenarios; blis-gen --print-spec --scenario chat")
	}
	return w.b
}

// exampleFor is the nearest to what is wrong.
func exampleFor(fault *record.Fault) example {
	if fault.Tool == "blis-gen" {
		return genExample
	}
	for _, x := range simExamples {
		if strings.Contains(strings.ToLower(fault.Msg), x.word) {
			return x.example
		}
	}
	return bundleExample
}

// wrapped adds a long text in lines of up to 160 characters.
func (w *writer) wrapped(text string) {
	text = short(text, 4*longestName*4)
	for len(text) > 160 {
		at := strings.LastIndexByte(text[:160], ' ')
		if at <= 0 {
			at = 160
		}
		w.line("%s", strings.TrimRight(text[:at], " "))
		text = "  " + strings.TrimLeft(text[at:], " ")
	}
	w.line("%s", text)
}

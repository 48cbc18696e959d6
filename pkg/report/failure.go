package report

import (
	"errors"
	"fmt"
	"strings"

	"blis/pkg/registry"
	"blis/pkg/stream"
)

// validFile is the text of a file that loads; what names the kind of file.
type validFile struct{ what, text string }

// policyFile is one with one policy.
func policyFile(stage, text string) validFile {
	return validFile{stage + " in a bundle (-p), or under policies in a cluster file,", text}
}

// keywords select the valid file for a file of blis-sim that does not load: the keyword that comes
// first in the message decides, except that weighted is more specific than routing.
var keywords = registry.Table[validFile]{
	{Name: "admission", Value: policyFile("admission",
		"admission: {type: expression, admit: 'req.tier != \"sheddable\" || cluster.saturation < 1 ? \"admit\" :"+
			" \"reject\"'}")},
	{Name: "priority", Value: policyFile("priority",
		"priority: {type: expression, priority: 'req.slo_class == \"critical\" ? 100.0 : req.priority'}")},
	{Name: "scheduler", Value: policyFile("scheduler", "scheduler: {type: priority-fcfs}")},
	{Name: "preemption", Value: policyFile("preemption", "preemption: {type: lowest-priority}")},
	{Name: "routing", Value: policyFile("routing",
		"routing: {type: expression, score: 'replica.prefix_match - 0.05 * replica.inflight'}")},
	{Name: "weighted", Value: policyFile("routing",
		"routing: {type: weighted, params: {prefix-affinity: 3, queue-depth: 2}}")},
	{Name: "version", Value: clusterFile},
	{Name: "deployment", Value: clusterFile},
	{Name: "replicas", Value: clusterFile},
}

var (
	clusterFile = validFile{"a cluster file (-c)", `version: 1
deployments:
  - {id: main, model: meta-llama/Llama-3.1-8B-Instruct, gpu: H100-SXM-80GB, replicas: 4}`}
	bundleFile = validFile{"a bundle of policies (-p)", `admission: {type: always-admit}
routing: {type: weighted, params: {prefix-affinity: 3, queue-depth: 2}}
scheduler: {type: fcfs}`}
	specFile = validFile{"a spec", `version: "2"
aggregate_rate: 10
requests: 100
clients:
  - id: a
    rate_fraction: 1
    arrival: {process: poisson}
    input_distribution: {type: constant, params: {value: 512}}
    output_distribution: {type: constant, params: {value: 64}}`}
)

// Failure is the text about a run that does not load: what is wrong and where, and, where the error is
// one of a file of an earlier stage, an example that loads.
func Failure(err error) []byte {
	w := &writer{limit: maxSectionLength}
	w.line("[%s] does not load: fitness 0.0000", title)
	upstream, ok := errors.AsType[*stream.UpstreamError](err)
	if !ok {
		w.line("[ERROR]")
		w.wrapped(err.Error())
		return w.text
	}
	fault := &upstream.Fault
	w.line("[ERROR] %s", name(fault.Tool))
	where := name(fault.File)
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
	for _, x := range validFilesFor(fault) {
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
	return w.text
}

// validFilesFor are the nearest to what is wrong: one, or two for a file that could not be read,
// which may be either.
func validFilesFor(fault *stream.ErrorRecord) []validFile {
	if fault.Tool == "blis-gen" {
		return []validFile{specFile}
	}
	found, first := bundleFile, len(fault.Msg)
	for _, x := range keywords {
		at := strings.Index(fault.Msg, x.Name)
		if at >= 0 && (at < first || x.Name == "weighted" && strings.HasPrefix(fault.Msg, "routing")) {
			found, first = x.Value, at
		}
	}
	if first == len(fault.Msg) && fault.Line == 0 {
		return []validFile{clusterFile, bundleFile}
	}
	return []validFile{found}
}

// wrapped adds a long text in lines of up to 110 characters.
func (w *writer) wrapped(text string) {
	const width = 110
	text = short(text, 1000)
	for len(text) > width {
		at := strings.LastIndexByte(text[:width], ' ')
		if at <= 0 {
			at = width
		}
		w.line("%s", text[:at])
		text = "  " + strings.TrimLeft(text[at:], " ")
	}
	w.line("%s", text)
}

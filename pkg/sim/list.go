package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"blis/pkg/anomaly"
	"blis/pkg/cluster"
	"blis/pkg/hardware"
	"blis/pkg/latency"
	"blis/pkg/model"
	"blis/pkg/policy"
	"blis/pkg/registry"
)

// lists are the arguments of --list, each with a function that returns its rows.
var lists = registry.Table[func(*Options) ([]row, error)]{
	{Name: "policies", Doc: "policies, their parameters with ranges and defaults", Value: listPolicies},
	{Name: "signals", Doc: "signals available to policy expressions", Value: listSignals},
	{Name: "models", Doc: "built-in models", Value: listModels},
	{Name: "gpus", Doc: "known GPUs", Value: listGPUs},
	{Name: "anomalies", Doc: "anomalies and the conditions under which they are reported",
		Value: listTable("anomaly", anomaly.Detectors)},
	{Name: "presets", Doc: "engine versions", Value: listTable("preset", cluster.Presets)},
	{Name: "drafters", Doc: "methods of speculative decoding", Value: listTable("drafter", cluster.SpeculativeMethods)},
	{Name: "autoscalers", Doc: "presets of auto-scaling with their sources",
		Value: listTable("autoscaler", policy.AutoscalePresets)},
	{Name: "latencies", Doc: "latency models", Value: listTable("latency", latency.Models)},
}

// Lists names the arguments of --list, for ${lists} and ${listed} in the tags of Options.
func Lists() []string { return lists.Names() }

// row is one entry of a list: its text for people and its value for programs.
type row struct {
	text string
	json any
}

// list prints a list, as lines or as one JSON array.
func list(out io.Writer, o Options) error {
	rowsOf, err := lists.Get("list", o.List)
	if err != nil {
		return err
	}
	rows, err := rowsOf(&o)
	if err != nil {
		return err
	}
	text, values := "", []any{}
	for _, r := range rows {
		text += r.text
		values = append(values, r.json)
	}
	if o.Format == "json" {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(values)
	}
	_, err = io.WriteString(out, text)
	return err
}

// listedPolicy is an entry of --list policies --format json: the search space. Path is the name of a
// parameter for --set.
type listedPolicy struct {
	Stage        string        `json:"stage"`
	Name         string        `json:"name"`
	Doc          string        `json:"doc"`
	Pathological bool          `json:"pathological,omitempty"`
	Composed     bool          `json:"composed,omitempty"`
	Params       []listedParam `json:"params,omitempty"`
}

type listedParam struct {
	Name    string      `json:"name"`
	Path    string      `json:"path"`
	Kind    policy.Kind `json:"kind"`
	Doc     string      `json:"doc"`
	Unit    string      `json:"unit,omitempty"`
	Range   *[2]float64 `json:"range,omitempty"`
	Whole   bool        `json:"whole,omitempty"`
	Search  *[2]float64 `json:"search,omitempty"`
	Auto    bool        `json:"auto,omitempty"`
	Choices []string    `json:"choices,omitempty"`
	Keys    string      `json:"keys,omitempty"`
	Default any         `json:"default"`
}

// Spaces are what --list policies can list: the policies, or the settings of the engines of the cluster.
var Spaces = []string{"policies", "engine"}

func listPolicies(o *Options) (rows []row, err error) {
	if o.Space == "engine" {
		return listEngines(o)
	}
	for _, e := range policy.Entries() {
		at := e.Stage + ".params."
		switch e.Stage {
		case policy.StageLLMD:
			at = "routing.of.N.params." // N is the plugin's position in the profile
		case policy.StageDetector:
			at = "control_plane.flow_control.detector.params."
		case policy.StageUsageLimit:
			at = "control_plane.flow_control.usage_limit.params."
		}
		rows = append(rows, listEntry(&e, at))
	}
	return rows, nil
}

// listEngines lists the settings of the engine of each deployment; the defaults are their values in the cluster.
func listEngines(o *Options) (rows []row, err error) {
	c, err := cluster.Load(o.Cluster, o.cluster())
	if err != nil {
		return nil, err
	}
	for i := range c.Deployments {
		d := &c.Deployments[i]
		e := policy.Entry{Stage: "engine", Name: d.ID, Doc: "settings of the engine of deployment " + d.ID}
		if e.Params, err = d.EngineParams(); err != nil {
			return nil, err
		}
		rows = append(rows, listEntry(&e, "deployments."+d.ID+".engine."))
	}
	return rows, nil
}

// listEntry is the row of an entry whose parameters begin with a path.
func listEntry(e *policy.Entry, at string) row {
	mark := ""
	if e.Pathological {
		mark = " (pathological: deliberately bad)"
	}
	text := fmt.Sprintf("%-12s %-17s %s%s\n", e.Stage, e.Name, e.Doc, mark)
	p := listedPolicy{Stage: e.Stage, Name: e.Name, Doc: e.Doc, Pathological: e.Pathological, Composed: e.Composed}
	for i := range e.Params {
		q := &e.Params[i]
		if !slices.Contains(policy.Scorers.Names(), q.Name) { // they are listed themselves
			text += fmt.Sprintf("%30s %s\n", "", q.Text())
		}
		listed := listedParam{Name: q.Name, Path: at + q.Name, Kind: q.Kind, Doc: q.Doc,
			Unit: q.Unit, Whole: q.Whole, Auto: q.Auto, Choices: q.Choices, Keys: q.Keys, Default: q.Default}
		if q.Kind == policy.Number || q.Kind == policy.Table {
			listed.Range, listed.Search = &[2]float64{q.Min, q.Max}, &q.Search
		}
		p.Params = append(p.Params, listed)
	}
	return row{text, p}
}

func listSignals(*Options) (rows []row, err error) {
	for _, e := range policy.SignalEntries() {
		text := fmt.Sprintf("%-30s %-13s %s [%s]\n", e.Name, e.Type, e.Doc, strings.Join(e.Stages, " "))
		rows = append(rows, row{text, struct {
			Name   string   `json:"name"`
			Type   string   `json:"type"`
			Doc    string   `json:"doc"`
			Stages []string `json:"stages"`
		}{e.Name, string(e.Type), e.Doc, e.Stages}})
	}
	return rows, nil
}

func listModels(*Options) (rows []row, err error) {
	for _, a := range model.BuiltIns() {
		parameters, bytes := a.TotalParameters(), a.KVBytesPerToken()
		text := fmt.Sprintf("%-44s %8.2f B  %7d KV bytes/token\n", a.Name, float64(parameters)/1e9, bytes)
		rows = append(rows, row{text, struct {
			Name       string `json:"name"`
			Parameters int64  `json:"total_parameters"`
			KVBytes    int64  `json:"kv_bytes_per_token"`
		}{a.Name, parameters, bytes}})
	}
	return rows, nil
}

func listGPUs(o *Options) (rows []row, err error) {
	known, err := hardware.Open(o.Hardware...)
	if err != nil {
		return nil, err
	}
	for _, g := range known.GPUs() {
		text := fmt.Sprintf("%-22s %7.2f GiB %5.0f GB/s %5.0f TFLOPS bf16 %5.0f fp8\n", g.ID, g.MemoryGiB,
			g.MemoryGBPerS, g.PeakTFLOPS.BF16, g.PeakTFLOPS.FP8)
		rows = append(rows, row{text, g})
	}
	return rows, nil
}

// listTable lists the entries of a table. what is their kind.
func listTable[T any](what string, t registry.Table[T]) func(*Options) ([]row, error) {
	return func(*Options) (rows []row, err error) {
		for _, e := range t {
			rows = append(rows, row{fmt.Sprintf("%-12s %-16s %s\n", what, e.Name, e.Doc), struct {
				Name string `json:"name"`
				Doc  string `json:"doc"`
			}{e.Name, e.Doc}})
		}
		return rows, nil
	}
}

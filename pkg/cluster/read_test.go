package cluster

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"blis/pkg/strictyaml"

	"github.com/google/go-cmp/cmp"
)

// smallCluster sets only the required values.
const smallCluster = `version: 1
deployments:
  - id: main
    model: m
    engine:
      num_gpu_blocks_override: 100
    latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [1, 1, 1]}
`

func parseCluster(text string, sets ...string) (*Config, error) {
	return parse(text, Options{Overrides: sets})
}

func parse(text string, o Options) (*Config, error) {
	doc, err := strictyaml.Parse("c.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	return resolve(doc, ".", o)
}

// TestClusterDefaults: missing values are vLLM's defaults and the simplest policies.
func TestClusterDefaults(t *testing.T) {
	c, err := parseCluster(smallCluster)
	if err != nil {
		t.Fatal(err)
	}
	e := c.Deployments[0].Engine
	if c.Deployments[0].Replicas != 1 || e.MaxNumSeqs != 256 || e.MaxNumBatchedTokens != 2048 || e.BlockSize != 16 ||
		!e.EnableChunkedPrefill || !e.EnablePrefixCaching {
		t.Errorf("resolved to %+v", c.Deployments[0])
	}
	p := c.Policies
	if got := p.Admission.Type + p.Priority.Type + p.Routing.Type + p.Scheduler.Type +
		p.Preemption.Type; got != "always-admit"+"constant"+"round-robin"+"fcfs"+"last-in" {
		t.Errorf("policies %+v", p)
	}
}

// TestPrintedDefaultClusterParsesBack: --print-config prints an equivalent cluster file.
func TestPrintedDefaultClusterParsesBack(t *testing.T) {
	c, err := Load("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := parseCluster(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, again); diff != "" {
		t.Errorf("the default cluster (-) and its JSON (+):\n%s", diff)
	}
}

func TestInvalidClusters(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"model: m", "model: m\n    replicas: 0", "c.yaml:5:15: deployments[0].replicas: must be between 1 and"},
		{"_override: 100", "_override: 0", "c.yaml:4:12: deployments[0].model: unknown model \"m\" (blis-sim --list " +
			"models shows the built-in models); set model_config to the path of a config.json; no gpu " +
			"is set; or set num_gpu_blocks_override and the step times in latency"},
		{"_override: 100", "_override: -1", "c.yaml:6:32: deployments[0].engine.num_gpu_blocks_override: must " +
			"be between " +
			"0 and"},
		{"engine:", "engine:\n      block_size: 0", "deployments[0].engine.block_size: must be between 1 and"},
		{"engine:", "engine:\n      max_num_batched_tokens: 0",
			"deployments[0].engine.max_num_batched_tokens: must be between 1 and"},
		{"engine:", "engine:\n      max_num_seqs: -1", "max_num_seqs: must be between 1 and"},
		{"_override: 100", "_override: 100000000", "cache of 1600000000 tokens is too large"},
		{"engine:", "engine:\n      max_num_sequences: 4", `c.yaml:6:7: unknown field "max_num_sequences"; ` +
			`did you mean ` +
			`"max_num_seqs"?`},
		{"version: 1", "version: 2", "c.yaml:1:10: version: must be 1, is 2"},
		{"id: main", `id: ""`, "deployments[0].id: must be set"},
		{"model: m", `model: ""`, "deployments[0].model: must be set"},
		{"model: linear", "model: liner", `c.yaml:7:`},
		{"model: linear", "model: liner", `unknown latency model "liner"; did you mean "linear"?`},
		{"[1, 1, 1]", "[1, -1, 1]", "beta_us[1] must be between 0 and"},
		{"[1, 1, 1]", "[1, 1]", "beta_us must have 3 or 4 numbers, has 2"},
		{"version: 1", "version: 1\npolicies: {routing: {type: roundrobin}}",
			`unknown routing policy "roundrobin"; did you mean "round-robin"?`},
		{"version: 1", "version: 1\npolicies: {routing: {type: weighted, params: {queue: 1}}}",
			`unknown parameter of weighted "queue"`},
		{"version: 1", "version: 1\npolicies: {routing: {type: weighted, params: {queue-depth: -1}}}",
			"policies.routing.params.queue-depth: must be a number between 0 and"},
		{"version: 1", "version: 1\npolicies: {admission: {type: always}}", `unknown admission policy "always"`},
		{"version: 1", "version: 1\npolicies: {scheduler: {type: fcfs, params: {x: 1}}}", `fcfs has no parameters`},
		{"version: 1", "version: 1\ncontrol_plane: {routing_latency_us: -5}",
			"control_plane.routing_latency_us: must be between 0 and"},
		{"deployments:", "deployments: []\nx:", `unknown field "x"`},
		{"  - id: main", "  - {id: main, model: n, engine: {num_gpu_blocks_override: 1}, latency: {model: linear, " +
			"alpha_us: [0, 0, 0], beta_us: [1, 1, 1]}}\n  - id: main", `deployments[1].id: "main" is already used`},
	} {
		_, err := parseCluster(strings.Replace(smallCluster, c.old, c.new, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.new, err, c.want)
		}
		if fileErr := new(strictyaml.Error); err != nil && !errors.As(err, &fileErr) {
			t.Errorf("%s: %v has no position in the file", c.new, err)
		}
	}
}

func TestOverrides(t *testing.T) {
	c, err := parseCluster(smallCluster, "deployments.main.replicas=3", "routing.type=weighted",
		"routing.params.queue-depth=0.3", "deployments.main.latency.beta_us=[5, 6, 7]")
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Deployments[0]; d.Replicas != 3 || d.Latency.BetaUS[2] != 7 ||
		c.Policies.Routing.Params["queue-depth"] != 0.3 || c.Policies.Routing.Params["prefix-affinity"] != 3.0 {
		t.Errorf("set to %+v %+v", d, c.Policies.Routing)
	}
	// A different policy has its own parameters and defaults.
	c, err = Load("", Options{Overrides: []string{"routing.type=round-robin"}})
	if err != nil || c.Policies.Routing.Params != nil {
		t.Errorf("round-robin with %v: %v", c.Policies.Routing.Params, err)
	}
	c, err = parseCluster(smallCluster, "routing.type=weighted", "routing.params.queue-depth=5")
	if p := c.Policies.Routing.Params; err != nil || p["queue-depth"] != 5.0 || p["prefix-affinity"] != 3.0 {
		t.Errorf("weighted with %v: %v", p, err)
	}
	for set, want := range map[string]string{
		"deployments.man.replicas=1":  `unknown element "man"; did you mean "main"?`,
		"deployments.main.replicas=x": `must be an integer, is "x"`,
		"deployments.main.replicas=0": "--set deployments.main.replicas=0: deployments[0].replicas: must be " +
			"between 1 and " +
			"65536, is 0",
		"routing.parms.x=1": `did you mean "params"?`,
	} {
		if _, err := parseCluster(smallCluster, set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--set %s: error %v, want %q", set, err, want)
		}
	}
}

// FuzzCluster: no file crashes the reader, and latency models of accepted files build.
func FuzzCluster(f *testing.F) {
	f.Add(smallCluster)
	f.Add(string(defaultYAML))
	f.Add(`{"version": 1, "deployments": [{"id": "a"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCluster(text)
		if err != nil {
			return
		}
		for i := range c.Deployments {
			if _, err := c.Deployments[i].LatencyModel(); err != nil {
				t.Errorf("accepted, and then: %v", err)
			}
		}
	})
}

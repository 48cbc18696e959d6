package cluster

import (
	"slices"
	"strings"
	"testing"

	"blis/pkg/policy"

	"github.com/google/go-cmp/cmp"
)

// scaledCluster is a cluster that scales, with the text of its auto-scaler.
func scaledCluster(bounds, autoscale string) string {
	return `version: 1
deployments:
  - {id: main, model: m, replicas: 2, ` + bounds + `engine: {num_gpu_blocks_override: 100},
     latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [1, 1, 1]}}
policies:
  autoscale: ` + autoscale + "\n"
}

func TestAutoscaleErrors(t *testing.T) {
	const bounds = "max_replicas: 4, "
	for _, c := range []struct{ bounds, autoscale, want string }{
		{bounds, "{}", "actuation.load is not in the file: auto needs a known model; set a duration"},
		{bounds, "{actuation: {load: 1h1}}", "params.value must be a duration in whole µs, such as 90s"},
		{bounds, "{interval: 0s}", "policies.autoscale.interval: must be above 0"},
		{bounds, "{interval: 15}", `must be a duration in whole µs, such as 90s, of at most eleven days, is "15"`},
		{bounds, "{type: luck}", `unknown auto-scaling policy "luck"`},
		{bounds, "{params: {signal: luck}}", `unknown choice "luck" (have kv_util, utilization`},
		{bounds, "{params: {target: 0}}", "must be a number between"},
		{bounds, "{type: threshold, params: {up: 0.2, down: 0.3}}", "must be at most up, 0.2, is 0.3"},
		{bounds, "{limits: {up: [{replicas: 1, percent: 2, period: 1s}]}}", "up[0]: must have replicas or percent"},
		{bounds, "{limits: {up: [{replicas: 1, period: 0s}]}}", "limits.up[0].period: must be above 0"},
		{bounds, "{limits: {select: most}}", `unknown choice "most" (have max, min, disabled)`},
		{bounds, "{actuation: {load: 1s, warmup: {factor: 0.5}}}", "factor: must be between 1 and 1000, is 0.5"},
		{bounds, "{actuation: {drain: {mode: kill}}}", `unknown choice "kill" (have wait, immediate, redirect)`},
		{bounds, "{actuation: {load: {type: auto, params: {value: 1}}}}", "auto has no parameters; set load_gb_per_s"},
		{"max_replicas: 1, ", "{}", "max_replicas: must be between replicas, 2, and"},
		{"min_replicas: 3, max_replicas: 4, ", "{}", "min_replicas: must be between 0 and replicas, 2, is 3"},
		{"min_replicas: 0, " + bounds, "{actuation: {load: 1s}}", "0 needs control_plane.flow_control, where requests"},
		{bounds, "{activation: -1}", "activation: must be at least 0, is -1"},
		{bounds, "{interval: 5s, trigger: {when: 1 < 2}}", "interval: has no effect with a trigger; remove one"},
		{bounds, "{trigger: {when: 1 < 2, check_every: 0s}}", "trigger.check_every: must be above 0"},
		{"min_replicas: 1, ", "{}", "min_replicas: has no effect without max_replicas"},
	} {
		_, err := parse(scaledCluster(c.bounds, c.autoscale), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s: error %v, want %q", c.bounds, c.autoscale, err, c.want)
		}
	}
}

// fleetCluster is a cluster with two deployments of one model, with more text of each and of the auto-scaler.
func fleetCluster(first, second, autoscale string) string {
	const rest = `engine: {num_gpu_blocks_override: 100},
     latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [1, 1, 1]}}
`
	return "version: 1\ndeployments:\n  - {id: a, model: m, " + first + rest +
		"  - {id: b, model: m, " + second + rest + "policies:\n" +
		"  autoscale: {actuation: {load: 1s}, " + autoscale + "}\n"
}

func TestFleetErrors(t *testing.T) {
	const most, priced = "max_replicas: 4, ", "max_replicas: 4, cost: {per_gpu_hour: 2}, "
	for _, c := range []struct{ first, second, autoscale, want string }{
		{priced, most, "fleet: {}", "deployments[1].cost is not in the file: policies.autoscale.fleet reads " +
			"deployment.price; set cost.per_gpu_hour"},
		{priced, most + "cost: {per_gpu_hour: -1}, ", "fleet: {}",
			"cost.per_gpu_hour: must be between 0 and 1e+06, is -1"},
		{most, most, "fleet: {grow: deployment.price, shrink: '1'}", "deployments[0].cost is not in the file: "},
		{most, most, "fleet: {grow: deployment.prize}", `unknown name "deployment.prize"`},
		{priced, priced, "fleet: {grow: 'deployment.ready > 1'}", "grow"},
		{priced, priced, `fleet: {grow: 'deployment.id == "c" ? 1 : 2'}`, `unknown deployment "c"`},
		{priced, priced, "fleet: {grow: rand()}", "policies.autoscale.fleet: rand() is not available here"},
		{most, most, "interval: '', trigger: {when: rand() < 1}", "rand() is not available here"},
		{priced, priced, "fleet: {score: '1'}", `unknown field "score" (have grow, shrink)`},
		{priced, priced, "type: expression, desired: deployment.price, fleet: {}", `unknown name "deployment.price"`},
		{priced, priced, "type: predicted-load, fleet: {}", "policies.autoscale.fleet: predicted-load divides by the " +
			"capacity of one kind of replica"},
	} {
		_, err := parse(fleetCluster(c.first, c.second, c.autoscale), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s%s: error %v, want %q", c.first, c.second, c.autoscale, err, c.want)
		}
	}
}

// TestFleets: deployments of one model that scale are a fleet, with the default rules, and the prices of the
// auto-scaler where they have no others.
func TestFleets(t *testing.T) {
	read := func(text string) *Config {
		c, err := parse(text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := read(fleetCluster("max_replicas: 4, ", "max_replicas: 4, cost: {per_gpu_hour: 1}, ",
		"cost: {per_gpu_hour: 3}, fleet: {}"))
	rules, want := c.Policies.Autoscale.Fleet, policy.FleetRules{Grow: "-deployment.price", Shrink: "deployment.price"}
	if *rules != want || c.PerGPUHour(&c.Deployments[0]) != 3 || c.PerGPUHour(&c.Deployments[1]) != 1 ||
		!slices.Equal(c.Fleet(0), []int{0, 1}) || !slices.Equal(c.Fleet(1), []int{0, 1}) || !c.DividesCost() {
		t.Errorf("rules %+v, fleet %v", rules, c.Fleet(0))
	}
	for _, text := range []string{fleetCluster("max_replicas: 4, ", "", "fleet: {}"),
		fleetCluster("max_replicas: 4, ", "max_replicas: 4, ", "interval: 5s")} {
		if c := read(text); len(c.Fleet(0)) != 1 || c.DividesCost() {
			t.Errorf("%s: fleet %v", text, c.Fleet(0))
		}
	}
}

func TestAutoscaleWarnings(t *testing.T) {
	for _, c := range []struct{ bounds, autoscale, want string }{
		{"", "{}", "policies.autoscale has no effect: no deployment has a max_replicas"},
		{"max_replicas: 4, ", "{actuation: {load: 1s}, fleet: {}}", "policies.autoscale.fleet has no effect: no " +
			"model has two deployments with a max_replicas"},
		{"max_replicas: 4, ", "null", "deployments.main.max_replicas has no effect: there is no policies.autoscale"},
	} {
		var warnings []string
		warn := func(w string) { warnings = append(warnings, w) }
		_, err := parse(scaledCluster(c.bounds, c.autoscale), Options{Warn: warn})
		if all := strings.Join(warnings, "\n"); err != nil || !strings.Contains(all, c.want) {
			t.Errorf("%s%s: error %v, warnings %q, want %q", c.bounds, c.autoscale, err, all, c.want)
		}
	}
}

// TestAutoscaleDefaults: a load time of auto is the bytes of the weights at 2 GB/s, and 30 s.
func TestAutoscaleDefaults(t *testing.T) {
	c, err := parse(`version: 1
deployments:
  - {id: main, model: meta-llama/Llama-3.1-8B-Instruct, gpu: H100, replicas: 2, max_replicas: 4}
policies: {autoscale: {}}
`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &c.Deployments[0]
	plan, err := c.ScalePlan(d)
	if err != nil {
		t.Fatal(err)
	}
	want := d.Computed.WeightBytes/2000 + 30_000_000
	if got := int64(plan.Load.Mean()); *d.MinReplicas != 1 || got < want || got > want+1 || got < 38_000_000 {
		t.Errorf("at least %d replicas, %d µs to load %d bytes, want 1 and %d", *d.MinReplicas, got,
			d.Computed.WeightBytes, want)
	}
}

// An override of one parameter of the auto-scaler keeps the others, those of a preset, too. One of the type keeps what
// all types have.
func TestAutoscaleOverrides(t *testing.T) {
	averages := func(inflight, pending float64) map[string]any {
		return map[string]any{"targets": map[string]any{"inflight": inflight, "pending": pending}}
	}
	for _, c := range []struct {
		auto   string
		set    []string
		name   string
		params map[string]any
	}{
		{"{preset: keda-queue, interval: 7s, actuation: {load: 1s}}", []string{"autoscale.params.targets.inflight=3"},
			"average-value", averages(3, 1)},
		{"{type: average-value, params: {targets: {inflight: 90}}, interval: 7s, actuation: {load: 1s}}",
			[]string{"policies.autoscale.params.targets.pending=3"}, "average-value", averages(90, 3)},
		{"{type: average-value, params: {targets: {inflight: 90}}, interval: 7s, actuation: {load: 1s}}",
			[]string{"autoscale.params.target=3", "autoscale=queue-depth"}, "queue-depth",
			map[string]any{"target": 3.0}},
		{`{type: starlark, program: "def desired(deployment): return 2", interval: 7s, actuation: {load: 1s}}`,
			[]string{"autoscale=queue-depth", "autoscale.params.target=3"}, "queue-depth",
			map[string]any{"target": 3.0}},
	} {
		got, err := parseCluster(scaledCluster("max_replicas: 4, ", c.auto), c.set...)
		if err != nil {
			t.Fatal(c.set, err)
		}
		a := got.Policies.Autoscale
		delete(a.Params, "tolerance")
		if a.Type != c.name || a.Interval != "7s" || !cmp.Equal(a.Params, c.params) {
			t.Errorf("%v: %s every %s, %v", c.set, a.Type, a.Interval, a.Params)
		}
	}
}

package cluster

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/strictyaml"

	"github.com/google/go-cmp/cmp"
)

// parseSmallCluster resolves smallCluster with further fields.
func parseSmallCluster(fields string, sets ...string) (*Config, error) {
	return parseCluster(smallCluster+fields+"\n", sets...)
}

func policyJSON(t *testing.T, c *Config) string {
	t.Helper()
	text, err := json.Marshal(c.Policies)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOverridesEqualFile: overrides make the same policies as a file, in any order.
func TestOverridesEqualFile(t *testing.T) {
	for _, c := range []struct {
		file string
		sets []string
		want string
	}{
		{"", []string{"routing.params.queue-depth=0.3", "routing.type=weighted"},
			"routing: {type: weighted, params: {queue-depth: 0.3, prefix-affinity: 3, kv-utilization: 2}}"},
		{"", []string{"routing.score=replica.inflight", "routing.type=expression"},
			"routing: {type: expression, score: replica.inflight}"},
		{"", []string{"routing.use.type=random", "routing.filter=replica.ready", "routing.type=filter"},
			"routing: {type: filter, filter: replica.ready, use: {type: random}}"},
		{"", []string{"routing=weighted"}, "routing: {type: weighted}"},
		{"", []string{"routing.params.queue-depth=0.3", `policies.routing="weighted"`},
			"routing: {type: weighted, params: {queue-depth: 0.3, prefix-affinity: 3, kv-utilization: 2}}"},
		{"", []string{"routing.params.queue-depth=9", "routing={type: weighted, params: {queue-depth: 1}}"},
			"routing: {type: weighted, params: {queue-depth: 1}}"},
		{"", []string{"routing={type: weighted, params: {queue-depth: 1}}", "routing.type=random"},
			"routing: {type: random}"},
		{"", []string{"policies={routing: {type: random}}", "routing.params.load=snapshot",
			"routing.type=least-loaded"},
			"routing: {type: least-loaded, params: {load: snapshot}}"},
		{"", []string{"routing.type=weighted", "routing.params.cache_affinity_weight=1",
			"policies.routing.params.queue_depth_weight=7"}, "routing: {type: weighted, params: {prefix-affinity: 1, " +
			"queue-depth: 7, kv-utilization: 2}}"},
		{"policies: {routing: {type: filter, filter: replica.ready, use: {type: least-loaded}}}",
			[]string{"routing.use.type=random"},
			"routing: {type: filter, filter: replica.ready, use: {type: random}}"},
		{"policies: {admission: {type: chain, of: [{type: token-bucket, params: {capacity: 3}}, {type: slo-gated}]}}",
			[]string{"admission.of.0.params.limit=5", "admission.of.0.type=rate-limit"},
			"admission: {type: chain, of: [{type: rate-limit, params: {limit: 5}}, {type: slo-gated}]}"},
		{"policies: {routing: {type: tree, root: {if: req.turn > 1, then: {use: {type: power-of-two}}, else: " +
			"{use: {type: " +
			"random}}}}}", []string{"routing.root.then.use.type=round-robin"},
			"routing: {type: tree, root: {if: req.turn > 1, then: {use: {type: round-robin}}, else: {use: {type: " +
				"random}}}}"},
		{"policies: {priority: {type: tree, root: {if: req.turn > 1, then: 3, else: 1}}}",
			[]string{"priority.root.then.use.type=slo-based"},
			"priority: {type: tree, root: {if: req.turn > 1, then: {use: {type: slo-based}}, else: 1}}"},
		{"policies: {priority: {type: tree, root: {if: req.turn > 1, then: 3, else: 1}}}",
			[]string{"priority.root.else.if=req.turn < 1", "priority.root.else.then=4", "priority.root.else.else=5"},
			"priority: {type: tree, root: {if: req.turn > 1, then: 3, else: {if: req.turn < 1, then: 4, else: 5}}}"},
		{"", []string{"priority.params.map.type=5", "priority.type=tenant-priority"},
			"priority: {type: tenant-priority, params: {map: {type: 5}}}"},
	} {
		got, err := parseSmallCluster(c.file, c.sets...)
		if err != nil {
			t.Errorf("%s, %v: %v", c.file, c.sets, err)
			continue
		}
		want, err := parseSmallCluster("policies: {" + c.want + "}")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(policyJSON(t, want), policyJSON(t, got)); diff != "" {
			t.Errorf("%s, %v: in the file (-) and overridden (+):\n%s", c.file, c.sets, diff)
		}
		// The printed configuration has the same policies.
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseCluster(string(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(policyJSON(t, got), policyJSON(t, again)); diff != "" {
			t.Errorf("%s, %v: overridden (-) and parsed from its JSON (+):\n%s", c.file, c.sets, diff)
		}
	}
}

// TestOverrideInsideMissingSection: the rest of the section has its defaults.
func TestOverrideInsideMissingSection(t *testing.T) {
	c, err := parseSmallCluster("", "control_plane.flow_control.saturation=2")
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseSmallCluster("", "control_plane={routing_latency_us: 5}")
	if err != nil {
		t.Fatal(err)
	}
	if p, want := all.ControlPlane, defaultControlPlane(); p.ShadowBlocks != want.ShadowBlocks ||
		p.MaxDelays != want.MaxDelays || p.RoutingLatencyUS != 5 {
		t.Errorf("control plane %+v", p)
	}
	if want := (FlowControl{Order: "fifo", Fairness: "none", Saturation: 2}); *c.ControlPlane.FlowControl != want {
		t.Errorf("flow control %+v", *c.ControlPlane.FlowControl)
	}
}

// TestOverrideErrors: an error names the override that caused it or its position in a
// file of overrides.
func TestOverrideErrors(t *testing.T) {
	chain := "policies: {admission: {type: chain, of: [{type: rate-limit}]}}"
	file := filepath.Join(t.TempDir(), "sets.json")
	if err := os.WriteFile(file, []byte("{\n \"deployments.main.replicas\": 2,\n "+
		"\"routing.params.queue-depth\": -1,\n "+
		"\"routing.type\": \"weighted\"}"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file string
		sets []string
		want string
	}{
		{chain, []string{"admission.of.0.params.limit=-1"}, "--set admission.of.0.params.limit=-1: " +
			"admission.of[0].params.limit: must be an integer between 0 and 1e+06, is -1"},
		{chain, []string{"admission.of.0.params.limit=1.5", "routing.type=random"},
			"--set admission.of.0.params.limit=1.5: admission.of[0].params.limit: must be an integer"},
		{"", []string{"policies={routing: {type: weighted, params: {queue-depth: x}}}"},
			`--set policies={routing: {type: weighted, params: {queue-depth: x}}}: routing.params.queue-depth: ` +
				`must be a ` +
				`number between 0 and 1e+06, is "x"`},
		{"", []string{"routing.score=replica.nothing", "routing.type=expression"},
			`--set routing.score=replica.nothing: routing.score:1:1: unknown name "replica.nothing"`},
		{"", []string{"@" + file}, file + ":3:2: routing.params.queue-depth: must be a number between"},
		{"", []string{"control_plane.flow_control.order=last"},
			`--set control_plane.flow_control.order=last: control_plane.flow_control.order: unknown order "last"`},
		{"policies: {routing: {type: weighted, params: {queue-depth: -1}}}", []string{"admission.type=slo-gated"},
			"c.yaml:8:60: policies.routing.params.queue-depth: must be a number between"},
		{"policies: {routing: {type: weighted, params: {cache_affinity_weight: 1, prefix-affinity: 2}}}", nil,
			"policies.routing.params.cache_affinity_weight: is an alias of prefix-affinity, which is also given; " +
				"give only one of them"},
		{"policies: {generation: -1}", nil, "policies.generation: must be at least 0, is -1"},
		{"policies: {routing: {type: expression, score: replica.age_ms}}", nil,
			`"replica.age_ms" is only part of a name (have replica.age_ms.queue_depth, `},
		{"policies: {admission: {type: tree, root: rejct}}", nil,
			`policies.admission.root: must be admit, reject, delay, true, false or {use: {type: …}}, is "rejct"; ` +
				`did you ` +
				`mean "reject"?`},
		{"policies: {admission: {type: tree, root: 5}}", nil, `or {use: {type: …}}, is 5`},
		{"policies: {scheduler: {type: tree, root: '5'}}", nil,
			`policies.scheduler.root: must be a number or {use: {type: …}}, is "5"`},
		{"policies: {admission: {type: token-bucket, params: {per_tenant: 'yes'}}}", nil,
			`must be true or false, is "yes"`},
	} {
		_, err := parseSmallCluster(c.file, c.sets...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %v: %v\nwant %s", c.file, c.sets, err, c.want)
		}
		if fileErr := new(strictyaml.Error); err != nil && !errors.As(err, &fileErr) {
			t.Errorf("%v has no position", err)
		}
	}
}

// TestUnusedSettingsAreReported: settings without effect are warnings, others are not.
func TestUnusedSettingsAreReported(t *testing.T) {
	for _, c := range []struct {
		fields string
		want   []string
	}{
		{"", nil},
		{"control_plane: {shadow_blocks: 5, shadow_evictions: true}", []string{
			"control_plane.shadow_blocks has no effect: no policy uses the router's shadow of prefixes",
			"control_plane.shadow_evictions has no effect: no policy uses the router's shadow of prefixes"}},
		{"control_plane: {shadow_blocks: 5, shadow_evictions: true}\npolicies: {routing: {type: " +
			"prefix-affinity}}", nil},
		{"control_plane: {snapshots: {cache: periodic 1s}}", []string{"control_plane.snapshots.cache has no " +
			"effect: no " +
			"policy reads it"}},
		{"control_plane: {snapshots: {cache: periodic 1s}}\npolicies: {routing: {type: weighted, params: " +
			"{precise-prefix: " +
			"1}}}", nil},
		{"control_plane: {snapshots: {default: periodic 1s}}",
			[]string{"control_plane.snapshots.default has no effect: no policy reads a field that uses it"}},
		{"control_plane: {snapshots: {default: periodic 1s}, flow_control: {}}", nil},
		{"control_plane: {snapshots: {default: periodic 1s, queue_depth: immediate}}\npolicies: {admission: {type: " +
			"slo-gated}}", []string{"control_plane.snapshots.default has no effect: no policy reads a field that " +
			"uses it"}},
		{"control_plane: {max_delays: 3}", []string{"control_plane.max_delays has no effect: admission never delays"}},
		{"control_plane: {max_delays: 3}\npolicies: {admission: {type: rate-limit, params: {action: delay, delay_ms: " +
			"5}}}", nil},
		{"policies: {admission: {type: rate-limit, params: {delay_ms: 5}}}",
			[]string{"policies.admission.params.delay_ms has no effect: the action is reject"}},
		{"policies: {admission: {type: chain, of: [{type: rate-limit, params: {delay_ms: 5}}]}}",
			[]string{"policies.admission.of[0].params.delay_ms has no effect: the action is reject"}},
		{"policies: {admission: {type: expression, admit: req.turn > 1, params: {delay_ms: 5}}}",
			[]string{"policies.admission.params.delay_ms has no effect: the expression never delays"}},
		{"policies: {admission: {type: expression, admit: 'req.turn > 1 ? \"delay\" : \"admit\"', params: {delay_ms: " +
			"5}}}", nil},
		{"policies: {admission: {type: tree, root: reject, params: {delay_ms: 5}}}",
			[]string{"policies.admission.params.delay_ms has no effect: no leaf of the tree delays"}},
		{"policies: {admission: {type: tree, root: delay, params: {delay_ms: 5}}}", nil},
		{"policies: {priority: {type: slo-based}}", []string{"policies.priority has no effect: no routing, " +
			"scheduler, " +
			"preemption or order of flow control reads priorities"}},
		{"policies: {priority: {type: slo-based}, scheduler: {type: priority-fcfs}}", nil},
		{"policies: {priority: {type: slo-based}, preemption: {type: lowest-priority}}", nil},
		{"policies: {priority: {type: slo-based}, routing: {type: expression, score: req.priority}}", nil},
		{"policies: {priority: {type: slo-based}}\ncontrol_plane: {flow_control: {order: priority}}", nil},
		{"policies: {priority: {type: slo-based}}\ncontrol_plane: {flow_control: {order: deadline}}",
			[]string{"policies.priority has no effect: no routing, scheduler, preemption or order of flow " +
				"control reads " +
				"priorities"}},
		{"control_plane: {flow_control: {order: priority}}", []string{"control_plane.flow_control.order has no " +
			"effect: every request has priority 0; set another priority policy"}},
		{"policies: {scheduler: {type: priority-fcfs}}", []string{"policies.scheduler has no effect: every request " +
			"has priority 0; set another priority policy"}},
		{"policies: {priority: {type: deadline-aware}, scheduler: {type: expression, order: hint.slack_ms}}", nil},
		{"policies: {priority: {type: expression, priority: '1', hints: {a: req.turn, b: req.turn}}, " +
			"scheduler: {type: " +
			"expression, order: hint.a}}", []string{"policies.priority.hints.b has no effect: no scheduler or " +
			"preemption " +
			"reads hint.b"}},
		{"policies: {priority: {type: tenant-priority, params: {map: {other: 3}}}, scheduler: {type: " +
			"priority-fcfs}}", nil},
		{"policies: {priority: {type: tree, root: 3}, scheduler: {type: tree, root: {if: req.priority > 2, " +
			"then: 1, else: " +
			"{use: {type: sjf}}}}}", nil},
		{"policies: {admission: {type: predictive-slo}, priority: {type: constant}, scheduler: {type: " +
			"fcfs}}\ncontrol_plane: {shadow_evictions: true}", nil},
	} {
		fields, want := c.fields, c.want
		var got []string
		c, err := parse(smallCluster+fields+"\n", Options{Warn: func(w string) { got = append(got, w) }})
		if err != nil {
			t.Errorf("%s: %v", fields, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", fields, diff)
		}
		// The defaults in a printed configuration do not count as set.
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var again []string
		if _, err := parse(string(text), Options{Warn: func(w string) { again = append(again, w) }}); err != nil ||
			cmp.Diff(got, again) != "" {
			t.Errorf("%s, parsed from its JSON: %v, %v", fields, again, err)
		}
	}
}

package gen

import (
	"errors"
	"strings"
	"testing"

	"blis/pkg/strictyaml"
)

// goodSpec uses every basic field; each case of TestInvalidSpecs breaks one.
const goodSpec = `version: "2"
seed: 1
category: language
aggregate_rate: 10
horizon: 1000000
requests: 5
slo_classes:
  - {name: gold, tier: critical, priority: 9, targets: {ttft_ms: 100, tpot_ms: 10, e2e_ms: 1000}}
  - {name: lead, tier: sheddable}
clients:
  - id: a
    tenant_id: t
    slo_class: gold
    model: m
    rate_fraction: 0.5
    arrival: {process: gamma, cv: 2}
    input_distribution: {type: gaussian, params: {mean: 100, std_dev: 10, min: 3, max: 200}}
    output_distribution: {type: exponential, params: {mean: 50}}
    prefix_spec:
      reuse_probability: 0.5
      prefix_length: {type: constant, params: {value: 20}}
      prefix_groups:
        - {group_id: x, popularity: 2}
        - {group_id: y}
  - id: b
    rate_fraction: 0.5
    arrival: {process: poisson}
    input_distribution: {type: constant, params: {value: 100}}
    output_distribution: {type: lognormal, params: {mean: 50, std_dev: 20}}
    prefix_spec: {num_prefix_groups: 3, prefix_length: {type: constant, params: {value: 20}}}
`

func TestGoodSpecLoads(t *testing.T) {
	header, list := requests(t, goodSpec, Options{Spec: "-"})
	if len(list) != 5 || header.Seed != 1 || len(header.SLOClasses) != 1 {
		t.Errorf("%d requests under %+v", len(list), header)
	}
}

// Every invalid value is an error with a position, and nothing is written.
func TestInvalidSpecs(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`version: "2"`, `version: "1"`, `stdin:1:10: version: must be "2", is "1"`},
		{`version: "2"` + "\n", ``, `stdin: version is not in the file: must be "2", is ""`},
		{`seed: 1`, `seed: -1`, `stdin:2:7: `},
		{`seed: 1`, `sed: 1`, `stdin:2:1: unknown field "sed"; did you mean "seed"?`},
		{`language`, `langauge`, `stdin:3:11: category: unknown category "langauge"; did you mean "language"?`},
		{`rate: 10`, `rate: 0`, `stdin:4:17: aggregate_rate: must be above 0 and at most 1e+09 requests a ` +
			`second, is 0`},
		{`rate: 10`, `rate: -3`, `aggregate_rate: must be above 0`},
		{`rate: 10`, `rate: .nan`, `must be a finite number`},
		{`rate: 10`, `rate: .inf`, `must be a finite number`},
		{`rate: 10`, `rate: fast`, `stdin:4:17: `},
		{`horizon: 1000000`, `horizon: -1`, `stdin:5:10: horizon: must be between 1 and 9007199254740992 µs, is -1`},
		{`horizon: 1000000`, `horizon: 9007199254740993`, `horizon: must be between 1 and 9007199254740992`},
		{`horizon: 1000000`, `horizon: soon`, `stdin:5:10: `},
		{`requests: 5`, `requests: -5`, `stdin:6:11: requests: must be at least 1, is -5`},
		{"horizon: 1000000\nrequests: 5\n", "", `stdin: requests is not in the file: must be given (or horizon): ` +
			`otherwise the workload has no end`},
		{`name: gold`, `name: ""`, `stdin:8:12: slo_classes[0].name: must be given`},
		{`name: lead`, `name: gold`, `stdin:9:12: slo_classes[1].name: "gold" is taken by an earlier class`},
		{`tier: critical`, `tier: top`, `stdin:8:24: slo_classes[0].tier: unknown tier "top" (have critical, ` +
			`standard, sheddable)`},
		{`, tier: sheddable`, ``, `slo_classes[1].tier is not in the file: unknown tier ""`},
		{`priority: 9`, `priority: .inf`, `must be a finite number`},
		{`ttft_ms: 100`, `ttft_ms: -1`, `slo_classes[0].targets.ttft_ms: must be between 0 (none) and 1e+09, is -1`},
		{`tpot_ms: 10`, `tpot_ms: .nan`, `must be a finite number`},
		{`e2e_ms: 1000`, `e2e_ms: 2e9`, `slo_classes[0].targets.e2e_ms: must be`},
		{`e2e_ms: 1000`, `e2es_ms: 1000`, `unknown field "e2es_ms"; did you mean "e2e_ms"?`},
		{`- id: a`, `- id: ""`, `stdin:11:9: clients[0].id: must be given`},
		{`- id: b`, `- id: a`, `stdin:25:9: clients[1].id: "a" is taken by an earlier client`},
		{`slo_class: gold`, `slo_class: golden`, `stdin:13:16: clients[0].slo_class: unknown SLO class "golden"; did ` +
			`you mean "gold"? (have gold, lead, critical, `},
		{`rate_fraction: 0.5`, `rate_fraction: 0`, `stdin:15:20: clients[0].rate_fraction: must be above 0 and at ` +
			`most 1, is 0`},
		{`rate_fraction: 0.5`, `rate_fraction: 1.5`, `clients[0].rate_fraction: must be above 0 and at most 1, is 1.5`},
		{`rate_fraction: 0.5`, `rate_fraction: .nan`, `must be a finite number`},
		{`process: gamma`, `process: gama`, `stdin:16:24: clients[0].arrival.process: unknown arrival process ` +
			`"gama"; did you mean "gamma"?`},
		{`, cv: 2`, ``, `stdin:16:14: clients[0].arrival.cv is not in the file: must be given`},
		{`cv: 2`, `cv: 0`, `stdin:16:35: clients[0].arrival.cv: must be between 0.01 and 100, is 0`},
		{`process: poisson`, `process: poisson, cv: 1`, `clients[1].arrival.cv: is not a parameter of poisson`},
		{`type: gaussian`, `type: normal`, `stdin:17:32: clients[0].input_distribution.type: unknown ` +
			`distribution "normal"`},
		{`std_dev: 10`, `std_dev: -10`, `clients[0].input_distribution.params.std_dev: must be between 0 and`},
		{`min: 3`, `min: 300`, `clients[0].input_distribution.params.min: must be at most max (200), is 300`},
		{`min: 3`, `mim: 3`, `clients[0].input_distribution.params.mim: unknown parameter of gaussian "mim"; did you ` +
			`mean "min"?`},
		{`{mean: 50}`, `{mean: 0}`, `clients[0].output_distribution.params.mean: must be between 1 and`},
		{`    output_distribution: {type: exponential, params: {mean: 50}}` + "\n", ``,
			`clients[0].output_distribution.type is not in the file: unknown distribution ""`},
		{`reuse_probability: 0.5`, `reuse_probability: 1.5`,
			`stdin:20:26: clients[0].prefix_spec.reuse_probability: must be between 0 and 1, is 1.5`},
		{`reuse_probability: 0.5`, `reuse_probability: .nan`, `must be a finite number`},
		{`reuse_probability: 0.5`, `reuse_probabilitys: 0.5`,
			`stdin:20:7: unknown field "reuse_probabilitys"; did you mean "reuse_probability"?`},
		{`value: 20`, `value: 0`, `clients[0].prefix_spec.prefix_length.params.value: must be between 1`},
		{`group_id: y`, `group_id: x`, `clients[0].prefix_spec.prefix_groups[1].group_id: "x" is taken by an ` +
			`earlier group`},
		{`group_id: y`, `popularity: 1`, `clients[0].prefix_spec.prefix_groups[1].group_id is not in the file: ` +
			`must be given`},
		{`popularity: 2`, `popularity: 0`, `clients[0].prefix_spec.prefix_groups[0].popularity: must be above 0`},
		{`popularity: 2`, `popularity: .inf`, `must be a finite number`},
		{`reuse_probability: 0.5`, `num_prefix_groups: 2`,
			`clients[0].prefix_spec.num_prefix_groups: cannot be combined with prefix_groups`},
		{`num_prefix_groups: 3`, `num_prefix_groups: 0`,
			`clients[1].prefix_spec.num_prefix_groups: must be between 1 and 1048576 without prefix_groups, is 0`},
		{`num_prefix_groups: 3`, `num_prefix_groups: -1`,
			`clients[1].prefix_spec.num_prefix_groups: must be between 1`},
		{goodSpec, ``, `stdin: is empty`},
		{goodSpec, `version: "2"`, `stdin: clients is not in the file: must name at least one client`},
		{goodSpec, `version: "2`, `stdin:1:`},
		{goodSpec, `[]`, `stdin:1:`},
	} {
		spec := strings.Replace(goodSpec, c.old, c.new, 1)
		if spec == goodSpec {
			t.Fatalf("no %q in the good spec", c.old)
		}
		stream, err := generate(spec, Options{Spec: "-"})
		var bad *strictyaml.Error
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.new, err, c.want)
		}
		if stream != "" {
			t.Errorf("%s: wrote %q", c.new, stream)
		}
	}
}

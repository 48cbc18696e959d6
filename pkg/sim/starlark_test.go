package sim

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// pairs are settings of policies as CEL expressions and as Starlark programs that must decide alike.
var pairs = [][2]string{
	{`admission={type: expression, admit: 'tenant.active < 6 || req.turn > 0 ? "admit" : "delay"'}`,
		`admission={type: starlark, program: "def admit(tenant, req):\n  if tenant.active < 6 or req.turn > 0:\n` +
			`    return \"admit\"\n  return \"delay\""}`},
	{`priority={type: expression, priority: "req.age_ms - req.input_tokens / 10", hints: {n: cluster.inflight}}`,
		`priority={type: starlark, program: "def priority(req): return req.age_ms - req.input_tokens / 10\n` +
			`def hint_n(cluster): return cluster.inflight"}`},
	{`routing={type: expression, filter: replica.kv_util < 0.8, score: replica.prefix_match - replica.queue_depth / 8}`,
		`routing={type: starlark, program: "def filter(replica): return replica.kv_util < 0.8\n` +
			`def score(replica): return replica.prefix_match - replica.queue_depth / 8"}`},
	{`scheduler={type: expression, order: "req.input_tokens - 0.3 * hint.n"}`,
		`scheduler={type: starlark, program: "def order(req, hint): return req.input_tokens - 0.3 * hint.n"}`},
	{`preemption={type: expression, victim: seq.blocks / (1 + seq.generated_tokens)}`,
		`preemption={type: starlark, program: "def victim(seq): return seq.blocks / (1 + seq.generated_tokens)"}`},
}

// ruleText is what differs between the metrics of an expression and of a program.
var ruleText = regexp.MustCompile(`"rule":"(\\.|[^"\\])*"| evaluations: (\\.|[^"\\])*"`)

// TestStarlarkRunsEqualCEL: on random workloads and clusters, runs with programs have the bytes of runs with the same
// expressions, but for the configuration in the header, the digest at the end and the texts of rules.
func TestStarlarkRunsEqualCEL(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	for i := range 12 {
		var text strings.Builder
		at := 0
		for k := range 150 {
			at += r.IntN(20_000)
			fmt.Fprintf(&text, `{"kind":"request","id":"r%d","arrival_us":%d,"input_tokens":%d,"output_tokens":%d,`+
				`"tenant":"t%d","prompt":[{"id":"p%d","tokens":160}]}`+"\n", k, at, 200+r.IntN(2000), 1+r.IntN(200),
				r.IntN(3), r.IntN(4))
		}
		shared := []string{fmt.Sprintf("deployments.main.replicas=%d", 1+r.IntN(4)),
			fmt.Sprintf("deployments.main.engine.num_gpu_blocks_override=%d", 180+r.IntN(400))}
		var streams [2]string
		for form := range streams {
			o := Options{Trace: "full", Plain: true, Version: stream.Version, Seed: uint64(i), Check: true, Set: shared}
			for _, p := range pairs {
				o.Set = append(o.Set[:len(o.Set):len(o.Set)], p[form])
			}
			var out bytes.Buffer
			if err := Run(context.Background(), strings.NewReader(text.String()), &out, o); err != nil {
				t.Fatal(err)
			}
			lines := strings.SplitAfter(out.String(), "\n")
			streams[form] = ruleText.ReplaceAllString(strings.Join(lines[1:len(lines)-2], ""), `"rule":""`)
		}
		if n := strings.Count(streams[0], "\n"); streams[0] != streams[1] || n < 500 {
			a, b := strings.Split(streams[0], "\n"), strings.Split(streams[1], "\n")
			k := 0
			for k < min(len(a), len(b))-1 && a[k] == b[k] {
				k++
			}
			t.Errorf("run %d: of %d lines, %d is\n%s\nwith programs and\n%s\nwith expressions", i, n, k, b[k], a[k])
		}
	}
}

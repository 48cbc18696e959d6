package sim

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// TestScalingChoices: of two deployments, a at 4 and b at 1, one grows and shrinks from 2 replicas to 4 and back. The
// cheapest, b, gets one, up to its maximum, and then a, which is the dearest, so that it loses its own first. b loses
// the other: a is at its minimum.
func TestScalingChoices(t *testing.T) {
	deployment := func(id string, most, price int) string {
		return fmt.Sprintf(`  - {id: %s, model: m, replicas: 1, max_replicas: %d, cost: {per_gpu_hour: %d},
     engine: {num_gpu_blocks_override: 400}, latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [10000, 10, 1000]}}
`, id, most, price)
	}
	c, err := cluster.Parse("c", []byte("version: 1\ndeployments:\n"+deployment("a", 3, 4)+deployment("b", 2, 1)+
		`policies:
  autoscale: {type: expression, desired: "state.n >= 1 && state.n < 4 ? 4 : 1", fleet: {},
    state: {n: {init: 0, update: state.n + 1}}, interval: 1s, stabilization: {down: 0s},
    limits: {down: []}, actuation: {provision: 200ms, load: 300ms, warmup: {duration: 0s}}}
`), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	must(runLoaded(context.Background(), c, scheduledWorkload(), &out, Options{Trace: "decisions", Plain: true}))
	r := stream.NewReader(&out)
	defer r.Close()
	var looks map[string]stream.Scaling
	var got []stream.ScalingChoice
	for r.Next() {
		switch r.Kind() {
		case stream.KindScaling:
			var x stream.Scaling
			must(r.Decode(&x))
			if looks == nil {
				looks = map[string]stream.Scaling{}
			}
			looks[x.ID] = x
		case stream.KindScalingChoice:
			var x stream.ScalingChoice
			must(r.Decode(&x))
			if l := looks[x.Decision]; l.AtUS != x.AtUS || l.Deployment != "a+b" || l.Current == l.Desired {
				t.Errorf("%+v belongs to %+v", x, l)
			}
			x.Decision = ""
			got = append(got, x)
		}
	}
	choice := func(atS int64, to, change, reason string, considered ...stream.ScalingCandidate) stream.ScalingChoice {
		return stream.ScalingChoice{Kind: stream.KindScalingChoice, AtUS: stream.Micros(atS * 1e6), Deployment: to,
			Change: change, Reason: reason, Considered: considered}
	}
	of := func(id string, replicas int64, score float64) stream.ScalingCandidate {
		return stream.ScalingCandidate{Deployment: id, Replicas: replicas, Score: &score}
	}
	want := []stream.ScalingChoice{
		choice(2, "b", "add", "highest -deployment.price", of("a", 1, -4), of("b", 1, -1)),
		choice(2, "a", "add", "no other may change", of("a", 1, -4)),
		choice(5, "a", "remove", "highest deployment.price", of("a", 2, 4), of("b", 2, 1)),
		choice(5, "b", "remove", "no other may change", of("b", 2, 1))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

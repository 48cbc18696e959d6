package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blis/pkg/gen"
	"blis/pkg/sim"
	"blis/pkg/stream"
)

// Over decisions from the whole of a contended trace the estimated regret ranks
// alternatives as playing them does. (Those of the largest estimates alone are a
// part of the range, in which ranks agree less.)
func TestEstimatedRegretRanksAsExact(t *testing.T) {
	if testing.Short() {
		t.Skip("plays many runs; run without -short")
	}
	trace := filepath.Join(root, "../shared/data/traces/mooncake_conversation.jsonl")
	if _, err := os.Stat(trace); err != nil {
		t.Skip("needs the trace, which is not here")
	}
	var imported gen.Import
	must(t, imported.UnmarshalText([]byte("mooncake:"+trace)))
	var workload, run bytes.Buffer
	must(t, gen.Run(t.Context(), nil, &workload, gen.Options{Import: []gen.Import{imported}, Limit: 2000, TimeScale: 0.15}))
	cluster := filepath.Join(t.TempDir(), "cluster.yaml")
	must(t, os.WriteFile(cluster, []byte("version: 1\ndeployments: [{id: main, model: meta-llama/Llama-3.1-8B-Instruct, gpu: H100-SXM-80GB, replicas: 16}]\n"+
		"policies: {routing: {type: weighted, params: {prefix-affinity: 3, queue-depth: 2}}}\n"), 0o666))
	var ids []string
	for n := 7; n < 2000; n += 50 {
		ids = append(ids, fmt.Sprintf("dec-%06d", n))
	}
	o := sim.Options{Cluster: cluster, Trace: "decisions"}
	must(t, o.Counterfactual.UnmarshalText([]byte(strings.Join(ids, ","))))
	must(t, sim.Run(t.Context(), &workload, &run, o))

	estimated := map[string]float64{} // by decision and replica, what the choice loses
	var estimates, exact []float64
	r := stream.NewReader(&run)
	for r.Next() {
		if r.Kind() != stream.KindRegret {
			continue
		}
		var g stream.Regret
		must(t, r.Decode(&g))
		if g.Method == stream.MethodEstimated {
			chosen := g.Alternatives[slices.IndexFunc(g.Alternatives, func(a stream.Alternative) bool { return a.Chosen })]
			for _, a := range g.Alternatives {
				estimated[fmt.Sprint(g.Decision, a.Replica)] = *chosen.E2EMS - *a.E2EMS
			}
			continue
		}
		for _, a := range g.Alternatives {
			estimates, exact = append(estimates, estimated[fmt.Sprint(g.Decision, a.Replica)]), append(exact, a.Own.E2EMS)
		}
	}
	if err := r.Err(); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	if len(exact) != 3*len(ids) {
		t.Fatalf("%d alternatives were played of %d decisions", len(exact), len(ids))
	}
	rho := spearman(estimates, exact)
	t.Logf("Spearman %.3f over %d alternatives", rho, len(exact))
	if rho < 0.8 {
		t.Errorf("Spearman %.3f, want 0.8", rho)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// spearman is the correlation of the ranks of pairs.
func spearman(a, b []float64) float64 {
	x, y := ranks(a), ranks(b)
	mean := float64(len(x)-1) / 2
	var xy, xx, yy float64
	for i := range x {
		xy += (x[i] - mean) * (y[i] - mean)
		xx += (x[i] - mean) * (x[i] - mean)
		yy += (y[i] - mean) * (y[i] - mean)
	}
	return xy / math.Sqrt(xx*yy)
}

// ranks are places in order, from 0; equals share the mean of theirs.
func ranks(v []float64) []float64 {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, k int) int { return cmp.Compare(v[i], v[k]) })
	rank := make([]float64, len(v))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && v[order[to]] == v[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			rank[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return rank
}

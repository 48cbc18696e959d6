package metrics

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blis/pkg/stat"
	"blis/pkg/stream"
)

// randomRun adds n random requests, with sessions and transfers, and returns the TPOTs of the completed ones.
func randomRun(a *Accumulator, n int) (tpots []float64) {
	random := rand.New(rand.NewPCG(7, 1))
	classes, tenants := []string{"", "critical", "standard", "batch", "unheard-of"}, []string{"", "t1", "t2", "t3"}
	for i := range n {
		at := stream.Micros(1000 * i)
		o := stream.Outcome{ID: "r", State: stream.StateCompleted, ArrivalUS: at, AdmittedUS: at, RoutedUS: at,
			EnqueuedUS: at, ScheduledUS: at + stream.Micros(random.IntN(3)*random.IntN(900)),
			FirstTokenUS: stream.Never, CompletedUS: stream.Never, EndedUS: stream.Never,
			SLOClass: classes[random.IntN(len(classes))],
			Tenant:   tenants[random.IntN(1+4*i/n)], Model: "m", InputTokens: 9, OutputTokens: 1 + random.Int64N(30)}
		if random.IntN(50) > 0 {
			o.FirstTokenUS = o.ScheduledUS + stream.Micros(random.IntN(900))
		}
		if random.IntN(20) > 0 && !o.FirstTokenUS.IsZero() {
			o.CompletedUS = o.FirstTokenUS + stream.Micros(random.IntN(2000))
			if o.OutputTokens > 1 {
				tpots = append(tpots, stream.TPOT(int64(o.CompletedUS-o.FirstTokenUS), o.OutputTokens))
			}
		} else {
			o.State, o.EndedUS = stream.StateTimedOut, at+5000
		}
		a.Add(&o)
		a.AddSession(&stream.SessionOutcome{State: stream.StateCompleted, ArrivalUS: at,
			CompletedUS: at + stream.Micros(random.IntN(1e6)), CriticalUS: random.Int64N(1e6),
			Offered: random.Int64N(9), Tools: random.Int64N(2), ToolUS: random.Int64N(1e5),
			Iterations: random.Int64N(3)})
		a.AddTransfer(random.Int64N(5000), 1, 1)
	}
	a.AddReplica(ReplicaTotals{Deployment: "d", Pool: PrefillPool})
	return tpots
}

// TestSpilledEqualsMemory: with temporary files every number has the same bits, and few rows are in memory.
func TestSpilledEqualsMemory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	inMemory := New(testClasses)
	n := 5*rowsPerChunk + 100
	tpots := randomRun(inMemory, n)
	raw := inMemory.Raw()
	want, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(tpots)
	if raw.TPOT.Count != int64(len(tpots)) || raw.TPOT.Mean != stat.Mean(tpots) ||
		raw.TPOT.P95 != stat.QuantileFloat(tpots, 95) {
		t.Errorf("TPOT is %+v, want %d values of mean %v and p95 %v", raw.TPOT, len(tpots), stat.Mean(tpots),
			stat.QuantileFloat(tpots, 95))
	}
	if raw.Targeted == nil || raw.Sessions.Tool == nil || raw.PD.Transfer == nil || len(raw.Tenants) != 3 {
		t.Fatalf("the run lacks something: %s", want)
	}
	for _, limit := range []int{1, rowsPerChunk, 3 * rowsPerChunk} {
		a := New(testClasses)
		a.Spill(limit)
		randomRun(a, n)
		if rows := len(a.rows) * rowsPerChunk; rows > max(limit, rowsPerChunk) || cap(a.sessions.e2e.values) > 2*limit {
			t.Errorf("limit %d: %d rows and %d sessions are in memory", limit, rows, cap(a.sessions.e2e.values))
		}
		for range 2 {
			got, err := json.Marshal(a.Raw())
			if err != nil || a.Err() != nil {
				t.Fatal(err, a.Err())
			}
			if string(got) != string(want) {
				t.Errorf("limit %d:\n%s\nwant\n%s", limit, got, want)
			}
		}
		a.Close()
	}
}

func TestSpillReportsErrors(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	a := New(nil)
	a.Spill(rowsPerChunk)
	randomRun(a, rowsPerChunk)
	if a.Err() != nil {
		t.Errorf("within the limit: %v", a.Err())
	}
	randomRun(a, 2*rowsPerChunk)
	a.Raw()
	if err := a.Err(); err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("error is %v", err)
	}
}

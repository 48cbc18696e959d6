package latency

import (
	"testing"

	"blis/pkg/des"
)

// TestEqualRanks: ranks with equal batches take as long as one engine that divides the batch of all over them.
func TestEqualRanks(t *testing.T) {
	work, machine := moeModel(), unitMachine()
	machine.DataParallel, machine.Link, machine.Efficiency.CollectiveUS = 4, 1e9, 3
	m, err := newRoofline(Coefficients{Alpha: []float64{0, 0, 0}, Replica: &Replica{Work: work, Machine: machine}})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []Batch{
		{Decode: 8, Context: 4000, LongestContext: 500},
		{Prefill: 300, Chunks: 1, PriorContext: 100, Pairs: 75150},
		{Prefill: 64, Chunks: 2, Pairs: 1100, Decode: 16, Context: 9000, LongestContext: 900},
	} {
		ranks := []Batch{b, b, b, b}
		JoinRanks(ranks)
		all := Batch{Prefill: 4 * b.Prefill, Decode: 4 * b.Decode, Context: 4 * b.Context, Chunks: 4 * b.Chunks,
			LongestContext: b.LongestContext, PriorContext: 4 * b.PriorContext, Pairs: 4 * b.Pairs}
		if got, want := m.Step(ranks[0]), m.Step(all); got != want {
			t.Errorf("%+v: a joint step takes %d µs, of one engine %d", b, got, want)
		}
	}
}

// TestUnequalRanks: what one rank has more than the others all wait for, also in layers that share nothing, and a rank
// whose others have nothing is as fast as alone.
func TestUnequalRanks(t *testing.T) {
	work, machine := moeModel(), unitMachine()
	machine.DataParallel, machine.Link, machine.Efficiency.CollectiveUS = 2, 1e9, 3
	m, err := newRoofline(Coefficients{Alpha: []float64{0, 0, 0}, Replica: &Replica{Work: work, Machine: machine}})
	if err != nil {
		t.Fatal(err)
	}
	slowest := func(a, b Batch) (us des.Time) {
		ranks := []Batch{a, b}
		JoinRanks(ranks)
		return max(m.Step(ranks[0]), m.Step(ranks[1]))
	}
	half := Batch{Decode: 500, Context: 1e6, LongestContext: 2000}
	whole, dummy := Batch{Decode: 999, Context: 2e6, LongestContext: 2000}, Batch{Decode: 1}
	if even, uneven := slowest(half, half), slowest(whole, dummy); 10*uneven < 13*even {
		t.Errorf("1000 sequences take %d µs divided evenly, %d on one rank", even, uneven)
	}
	if alone, joint := OneRank(m).Step(whole), slowest(whole, Batch{}); alone != joint {
		t.Errorf("a rank takes %d µs alone, %d with one without tokens", alone, joint)
	}
}

// TestRanksShareAGraph: ranks run the CUDA graph of the widest one, or none if any of them has none, and experts
// compute the padding, too.
func TestRanksShareAGraph(t *testing.T) {
	line := func(us ...float64) Curve { return Curve{At: []int64{1, 1024}, US: us} }
	grid := Grid{Sequences: []int64{1, 2}, Context: []int64{0, 1}, US: []float64{0, 0, 0, 0}}
	m, err := newOperators(Coefficients{Alpha: []float64{0, 0, 0}, Operators: &Operators{Tokens: line(1000, 2023),
		Experts: line(10, 1033), Sequences: line(0, 0), Decode: grid, Prefill: ChunkAttention{Tokens: line(0, 0)},
		Host: Host{Captured: 64, EagerUS: 9000, EagerChunksUS: 9000, ChunkFactor: 1}, Groups: 2, Ranks: 2}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		ranks []Batch
		want  []des.Time
	}{
		// Tokens take 999 + n, experts 9 + n.
		{"both as wide as a graph", []Batch{{Decode: 8}, {Decode: 8}}, []des.Time{1007 + 25, 1007 + 25}},
		{"one is narrower", []Batch{{Decode: 30}, {Decode: 1}}, []des.Time{1031 + 73, 1031 + 73}},
		{"one has no graph", []Batch{{Decode: 65}, {Decode: 1}}, []des.Time{9000, 9000}},
		{"one has a chunk without a graph", []Batch{{Prefill: 200, Chunks: 1}, {Decode: 2}},
			[]des.Time{1199 + 211 + 9000, 9000}},
	} {
		JoinRanks(c.ranks)
		for i, b := range c.ranks {
			if got := m.Step(b); got != c.want[i] {
				t.Errorf("%s: rank %d takes %d µs, want %d", c.name, i, got, c.want[i])
			}
		}
	}
}

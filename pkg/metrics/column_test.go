package metrics

import (
	"errors"
	"slices"
	"testing"

	"blis/pkg/stat"
	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Metrics are the same numbers whether values stay in memory or go to a file, at any number of parts.
func TestSpilledValuesAreTheSame(t *testing.T) {
	for chunks := 1; chunks <= 3; chunks++ {
		for _, n := range []int{1, 8192, 8193, 20_000, 70_000} {
			inMemory, spilled := New(testClasses), New(testClasses)
			spilled.spill = &spillFile{chunks: chunks}
			for i, o := range manyRequests(n) {
				inMemory.Add(&o)
				spilled.Add(&o)
				s := stream.SessionOutcome{State: stream.StateCompleted, ArrivalUS: o.ArrivalUS,
					CompletedUS: o.ArrivalUS + stream.Micros(i*7919%1000), Tools: int64(i % 3), ToolUS: int64(i % 17)}
				inMemory.AddSession(&s)
				spilled.AddSession(&s)
			}
			if diff := cmp.Diff(inMemory.Raw(), spilled.Raw()); diff != "" || spilled.Err() != nil {
				t.Errorf("%d requests, %d chunks: %v\n%s", n, chunks, spilled.Err(), diff)
			}
			if parts := len(spilled.columns[0].runs); n == 70_000 && parts < 2 {
				t.Errorf("%d requests have only %d parts in the file", n, parts)
			}
		}
	}
}

func TestSortedColumn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &spillFile{chunks: 1}
		var c column
		var want []uint64
		for range rapid.IntRange(0, 3).Draw(t, "parts") {
			n := rapid.IntRange(1, samplesPerChunk).Draw(t, "n")
			step := rapid.Uint64Range(0, 1<<40).Draw(t, "step")
			for i := range n {
				key := uint64(i) * step % 1_000_003
				c.add(f, key, uint32(i%5))
				want = append(want, key)
			}
		}
		slices.Sort(want)
		var got []uint64
		for x := range c.sorted(f) {
			got = append(got, x.Key)
		}
		if !slices.Equal(got, want) || f.err != nil {
			t.Fatalf("%d values, want %d: %v", len(got), len(want), f.err)
		}
	})
}

// A full disk is an error.
func TestSpillErrorIsReported(t *testing.T) {
	a := New(testClasses)
	a.spill = &spillFile{chunks: 1, err: errors.New("no space left on device")}
	for _, o := range manyRequests(20_000) {
		a.Add(&o)
	}
	a.Raw()
	if err := a.Err(); err == nil || err.Error() != "temporary file of latencies (TMPDIR): no space left on device" {
		t.Error(err)
	}
}

func TestHeapReturnsTheSmallest(t *testing.T) {
	f := &spillFile{}
	var h runHeap
	for part := range uint64(9) {
		var sorted []stat.Keyed
		for i := range uint64(50) {
			sorted = append(sorted, stat.Keyed{Key: i*i*(part+1)%64 + i*64})
		}
		h.push(newRun(f, f.write(sorted)))
	}
	last, n := uint64(0), 0
	for ; len(h) > 0; n++ {
		x := h.next().Key
		if x < last {
			t.Fatalf("%d after %d", x, last)
		}
		last = x
	}
	if n != 450 || f.err != nil {
		t.Errorf("%d values: %v", n, f.err)
	}
}

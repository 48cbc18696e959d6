package anomaly_test

import (
	"fmt"
	"testing"

	"blis/pkg/anomaly"
)

// load ends n loads of 30 blocks each to replica 2, one a second, of which the first have this many blocks that were
// stored shortly before.
func (s *stage) load(n, first int, again int64) {
	for i := range n {
		e := &anomaly.Event{Kind: anomaly.Loaded, At: int64(i) * 1000 * ms, Replica: 2,
			Request: &anomaly.Request{ID: fmt.Sprint("r", i)}, Blocks: 30}
		if i < first {
			e.Again = again
		}
		s.detect(e)
	}
	s.Close(int64(n) * 1000 * ms)
}

// TestCacheThrashing: 5 of 16 loads have 20 blocks each that were stored shortly before: 100 of 480. With 99 of them,
// with less than a fifth, or with loads that are half a minute apart it is no episode.
func TestCacheThrashing(t *testing.T) {
	s := newStage()
	s.load(16, 5, 20)
	s.expect(t, anomaly.Episode{Type: "cache_thrashing", Start: 0, End: 4000 * ms, Severity: 100.0 / 480, Count: 5,
		Requests: names("r", 5), Replica: 2, Text: "100 of 480 blocks loaded from the memory of the host (20.8 %) " +
			"were stored there at most 10 s before, or their request had left"})
	for _, c := range []struct {
		first int
		again int64
	}{{3, 30}, {0, 0}} {
		s := newStage()
		s.load(16, c.first, c.again)
		s.expect(t)
	}
	few := newStage()
	for i := range int64(20) { // 5 blocks of 30 each
		few.detect(&anomaly.Event{Kind: anomaly.Loaded, At: i * 100 * ms, Request: &anomaly.Request{ID: "x"},
			Blocks: 30, Again: 5})
	}
	few.Close(3000 * ms)
	few.expect(t)
	rare := newStage()
	for i := range int64(20) {
		rare.detect(&anomaly.Event{Kind: anomaly.Loaded, At: i * 31000 * ms, Request: &anomaly.Request{ID: "x"},
			Blocks: 90, Again: 90})
	}
	rare.Close(3000000 * ms)
	rare.expect(t)
}

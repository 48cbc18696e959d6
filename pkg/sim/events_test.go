package sim

import (
	"bytes"
	"fmt"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// TestStaleEventsAreCounted: the count of stale events is exact, also when they are removed at the
// same instant as one is added: by requests that leave before their deadlines, and by requests whose
// deadline comes on their way to a replica.
func TestStaleEventsAreCounted(t *testing.T) {
	for _, plane := range []string{
		"control_plane.admission_latency_us=5000",
		"control_plane={admission_latency_us: 5000, flow_control: {ttl_us: 900000000}}",
	} {
		c, err := cluster.Load("", cluster.Options{Overrides: []string{plane,
			"deployments.main.latency={model: linear, alpha_us: [4000, 0, 0], beta_us: [5000, 10, 10]}"}})
		must(err)
		r := stream.NewReader(bytes.NewReader(workloadWithDeadlines(6000)))
		defer r.Close()
		arrivals, header, err := openArrivals(r)
		must(err)
		s, err := newSimulation(c, header.SLOClasses, mustSpecs(c), &Options{})
		must(err)
		s.feed = arrivals
		s.observers.add(&metricsSink{Accumulator: metrics.New(nil)})
		must(s.readNext())
		maxStale := 0
		check := func() error {
			stale := 0
			for e := range s.events.queue.All() {
				switch e.Kind() {
				case stepEnd, flowDrain, sessionStart:
				default:
					if s.request(e.Slot).position != e.Seq() {
						stale++
					}
				}
			}
			maxStale = max(maxStale, stale)
			if s.events.stale != stale {
				return fmt.Errorf("%d stale events are counted at %d, and there are %d", s.events.stale, s.now, stale)
			}
			return nil
		}
		if err := s.run(check); err != nil {
			t.Error(err)
		}
		if err := check(); err != nil {
			t.Error(err)
		}
		if maxStale < 500 {
			t.Errorf("at most %d events were stale", maxStale)
		}
	}
}

// workloadWithDeadlines has n requests, every second of which has a deadline before it reaches its
// replica.
func workloadWithDeadlines(n int64) []byte {
	var out bytes.Buffer
	w := stream.NewWriter(&out, true)
	must(w.Header(&stream.Header{Stream: stream.StreamWorkload}))
	for i := range n {
		at := 700 * i
		after := int64(600e6)
		if i%2 == 0 { // in admission, or in the delay before the queue
			after = []int64{2000, 7000}[i/2%2]
		}
		must(w.Request(&stream.Request{ID: fmt.Sprint("r", i), ArrivalUS: stream.Micros(at), InputTokens: 16,
			OutputTokens: 1, DeadlineUS: stream.Micros(at + after)}))
	}
	must(w.End(&stream.End{}))
	must(w.Close())
	return out.Bytes()
}

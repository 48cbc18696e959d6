package attribution

import (
	"math"
	"testing"

	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// The work that overtook a request equals a plain sum, and so do the prompt tokens computed while it waited.
func TestEvidenceEqualsPlainSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawRun(t)
		a.stats.heavyTenant = a.heavyTenant()
		a.derive()
		a.computeStats()
		a.measureReplicas()
		for i, r := range a.requests.all() {
			if r.enqueued() == never || r.replica == missing {
				continue
			}
			overtaken, atMost, prompts := int64(0), int64(0), 0.0
			for k, o := range a.requests.all() {
				if k == i || o.replica != r.replica || o.enqueued() == never || o.scheduled() == never {
					continue
				}
				prompts += promptsWithin(o, r.enqueued(), r.firstTokenOrEnd())
				if a.priority(o) > a.priority(r) {
					continue
				}
				if o.enqueued() > r.enqueued() && o.scheduled() < r.leftQueue() {
					overtaken += o.work()
				}
				if o.enqueued() >= r.enqueued() && o.scheduled() <= r.leftQueue() {
					atMost += o.work() // of the same instant, the stream decides
				}
			}
			e := &r.evidence
			if e.overtaken < overtaken || e.overtaken > atMost {
				t.Fatalf("request %d: overtaken by %d tokens, counted %d to %d", i, e.overtaken, overtaken, atMost)
			}
			if math.Abs(e.promptsAhead-prompts) > 1e-6*(1+prompts) {
				t.Fatalf("request %d: %g prompt tokens ahead, added up %g", i, e.promptsAhead, prompts)
			}
		}
	})
}

// promptsWithin are the prompt tokens of o that were computed from one instant to another.
func promptsWithin(o *request, from, until stream.Micros) float64 {
	begin, end := o.scheduled(), o.firstTokenOrEnd()
	overlap := min(end, until) - max(begin, from)
	if end <= begin || overlap <= 0 {
		return 0
	}
	return float64(o.tokens.input-o.tokens.cached) * float64(overlap) / float64(end-begin)
}

// Ten requests a second for 10 s, and 40 more at the end: the last 2 s hold 60 of 140.
func TestPeaks(t *testing.T) {
	a := New(header(1))
	for i := range 100 {
		o := unroutedRequest(string(rune('a'+i)), stream.Micros(i)*100_000)
		a.Outcome(&o, false)
	}
	for i := range 40 {
		o := unroutedRequest(string(rune('A'+1000+i)), 9_900_000)
		a.Outcome(&o, false)
	}
	a.derive()
	a.measurePeaks()
	if got, want := a.requests.at(139).evidence.peak, 30/(140/9.9); math.Abs(got-want) > 1e-3 {
		t.Errorf("peak is %g, want %g", got, want)
	}
	if got, want := a.requests.at(50).evidence.peak, 10/(140/9.9); math.Abs(got-want) > 1e-3 {
		t.Errorf("before it is %g, want %g", got, want)
	}
}

package recording

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// repeating is a run with the given prompt lengths.
func repeating(lengths []int64) *Run {
	r := &Run{Clock: clientClock, Arrivals: true}
	for i, l := range lengths {
		c := newRequest()
		c.complete(10)
		o := c.Outcome
		o.ID, o.InputTokens = fmt.Sprint(i), l
		o.ArrivalUS, o.FirstTokenUS, o.CompletedUS = stream.Micros(i*1000), stream.Micros(i*1000+500),
			stream.Micros(i*1000+9500)
		o.EnqueuedUS, o.ScheduledUS, o.EndedUS = stream.Never, stream.Never, stream.Never
		r.Outcomes = append(r.Outcomes, o)
	}
	return r
}

// A period in varying lengths is found despite outliers. Independent lengths, a constant, a few in
// turn, slow changes and a short trace show none. The seeds are fixed: three periods of 12 with five
// outliers among the inner ones may have too few equal pairs, about one time in 5,000.
func TestPeriod(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := 12 + int(seed/2)
		n := p*3 + rng.IntN(300)*int(seed%2)
		pool := make([]int64, p)
		for i := range pool {
			pool[i] = 500 + rng.Int64N(60)
		}
		lengths, free := make([]int64, n), make([]int64, n)
		for i := range lengths {
			lengths[i], free[i] = pool[i%p], 500+rng.Int64N(60)
			if rng.Float64() < 0.05 {
				lengths[i] = 1 + rng.Int64N(2000)
			}
		}
		if got, share := repeating(lengths).Period(); got != p || share < 0.5 {
			t.Errorf("%d requests with a period of %d: found %d, %.2f", n, p, got, share)
		}
		if got, share := repeating(free).Period(); got != 0 {
			t.Errorf("%d independent requests: a period of %d, %.2f", n, got, share)
		}
	}
	for name, length := range map[string]func(i int) int64{
		"constant":     func(int) int64 { return 512 },
		"two in turn":  func(i int) int64 { return int64(100 + 400*(i%2)) },
		"four in turn": func(i int) int64 { return int64(100 + 100*(i%4)) },
		"blocks":       func(i int) int64 { return int64(100 + i/50) },
		"rising":       func(i int) int64 { return int64(100 + i) },
	} {
		var lengths []int64
		for i := range 1000 {
			lengths = append(lengths, length(i))
		}
		if got, share := repeating(lengths).Period(); got != 0 {
			t.Errorf("%s: a period of %d, %.2f", name, got, share)
		}
	}
	if got, _ := repeating([]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}).Period(); got != 0 {
		t.Errorf("ten pairs show a period of %d", got)
	}
	if got, _ := (&Run{}).Period(); got != 0 {
		t.Errorf("nothing shows a period of %d", got)
	}
}

// With a period prompts repeat. Requests that overtook each other keep their prompts, and an
// unmatched length is a unique prompt.
func TestPromptsRepeatWithPeriod(t *testing.T) {
	var lengths []int64
	for i := range 80 {
		lengths = append(lengths, int64(100+i%20))
	}
	lengths[25], lengths[26] = lengths[26], lengths[25] // 105 and 106
	lengths[50] = 900
	list := repeating(lengths).Requests(20)
	for i, q := range list {
		want := fmt.Sprintf("prompt-%d", lengths[i]-100)
		switch {
		case i == 50:
			if len(q.Prompt) != 0 {
				t.Errorf("request 50 begins with %v", q.Prompt)
			}
		case len(q.Prompt) != 1 || q.Prompt[0].ID != want || q.Prompt[0].Tokens != lengths[i]:
			t.Errorf("request %d of %d tokens begins with %v, want %s", i, lengths[i], q.Prompt, want)
		}
	}
	if list = repeating(lengths).Requests(0); len(list[3].Prompt) != 0 {
		t.Errorf("without a period: %v", list[3].Prompt)
	}
}

// Requests that failed without output or have unknown lengths are not replayed. A run
// without arrivals and scheduling times has no arrival times.
func TestRequests(t *testing.T) {
	r := repeating([]int64{10, 20, 30, 40})
	r.Outcomes[0].State, r.Outcomes[0].OutputTokens = stream.StateFailed, 0
	r.Outcomes[1].State, r.Outcomes[1].OutputTokens = stream.StateFailed, 7
	r.Outcomes[2].InputTokens = 0
	list := r.Requests(0)
	if !r.HasArrivalTimes() || len(list) != 2 || list[0].ID != "1" || list[0].OutputTokens != 7 || list[1].ID != "3" ||
		list[1].DeadlineUS != stream.Never {
		t.Errorf("%v", list)
	}
	r.Arrivals = false
	if r.HasArrivalTimes() {
		t.Error("without arrivals and scheduling times: HasArrivalTimes is true")
	}
	for i := range r.Outcomes {
		r.Outcomes[i].ScheduledUS = r.Outcomes[i].ArrivalUS
	}
	if !r.HasArrivalTimes() {
		t.Error("with the start of prefill: HasArrivalTimes is false")
	}
}

// paced is a run of n requests of 100 tokens; the time per token doubles half way.
func paced(n int) *Run {
	r := &Run{Clock: clientClock, Arrivals: true}
	for i := range n {
		c := newRequest()
		c.complete(100)
		gap := 10_000.0
		if i > n/2 {
			gap = 20_000
		}
		c.at = float64(i) * 100_000
		c.first = c.at + 50_000
		c.last = c.first + 99*gap
		c.InputTokens = 10
		o := c.Outcome
		o.ID, o.ArrivalUS, o.FirstTokenUS, o.CompletedUS = fmt.Sprint(i), stream.Micros(c.at), stream.Micros(c.first),
			stream.Micros(c.last)
		o.EnqueuedUS, o.ScheduledUS, o.EndedUS = stream.Never, stream.Never, stream.Never
		r.Outcomes = append(r.Outcomes, o)
	}
	return r
}

// Consistent counts are not reported although the rate changes and outputs end early or stall.
// Counts of retokenized text are reported.
func TestOutputCounts(t *testing.T) {
	r := paced(1000)
	for i := 0; i < 1000; i += 3 { // short outputs
		o := &r.Outcomes[i]
		o.OutputTokens, o.CompletedUS = 5, o.FirstTokenUS+4*(o.CompletedUS-o.FirstTokenUS)/99
	}
	r.Outcomes[7].CompletedUS += 5_000_000 // a stall
	if warning := r.OutputCounts(); warning != "" {
		t.Errorf("good counts: %s", warning)
	}
	r = paced(1000)
	for i := 0; i < 1000; i += 100 {
		r.Outcomes[i].OutputTokens = 4
	}
	r.Outcomes[5].OutputTokens = 0
	warning := r.OutputCounts()
	// Up to request 500 a token takes 10 ms: 6 of these have 4 tokens, 990/3 = 330 ms, and one has
	// none. After that 20 ms, and 4 of these 660 ms. Over the 999 that have a TPOT: (494·10 +
	// 495·20 + 6·330 + 4·660)/999 = 19.5, and the 500th is 20.
	for _, want := range []string{"11 of 1000 requests (0: 4 tokens in 990 ms after the first; mean TPOT 19.5 ms, " +
		"median 20.0)", "the others have about 100: "} {
		if !strings.Contains(warning, want) {
			t.Errorf("says %q, want %q in it", warning, want)
		}
	}
	if n := r.CommonOutput(); n != 100 {
		t.Errorf("the common number of output tokens is %d, want 100", n)
	}
	repaired := r.RepairOutputTokens()
	if len(repaired) != 2 || repaired[0] != warning ||
		repaired[1] != "every request is taken to have 100 output tokens" ||
		r.Outcomes[5].OutputTokens != 100 || r.Outcomes[200].OutputTokens != 100 {
		t.Errorf("repaired: %q", repaired)
	}
	if again := r.RepairOutputTokens(); again != nil || r.CommonOutput() != 0 {
		t.Errorf("repaired counts are wrong: %q", again)
	}
	if warning := r.OutputCounts(); warning != "" {
		t.Errorf("with the counts set: %s", warning)
	}
	for i := range r.Outcomes { // two events per token, for some
		if i%5 == 0 {
			r.Outcomes[i].OutputTokens = 800
		}
	}
	if warning := r.OutputCounts(); !strings.Contains(warning, "200 of 1000 requests") {
		t.Errorf("counts that are too large: %q", warning)
	}
	for i := range r.Outcomes { // outputs of several lengths, and wrong counts
		o := &r.Outcomes[i]
		if o.OutputTokens = 100; i%2 == 0 {
			o.OutputTokens, o.CompletedUS = 50, o.FirstTokenUS+49*(o.CompletedUS-o.FirstTokenUS)/99
		}
		if i%50 == 1 {
			o.OutputTokens = 4
		}
	}
	if r.OutputCounts() == "" || r.CommonOutput() != 0 {
		t.Errorf("outputs of several lengths: %q, and %d for all", r.OutputCounts(), r.CommonOutput())
	}
	if repaired := r.RepairOutputTokens(); len(repaired) != 1 || r.Outcomes[1].OutputTokens != 4 {
		t.Errorf("outputs of several lengths are repaired: %q", repaired)
	}
	// Outputs of two tokens, every fifth of which waits for a prefill.
	r = paced(1000)
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		o.OutputTokens, o.CompletedUS = 2, o.FirstTokenUS+8_000
		if i%5 == 0 {
			o.CompletedUS += 50_000
		}
	}
	if warning := r.OutputCounts(); warning != "" {
		t.Errorf("outputs of two tokens: %s", warning)
	}
	if warning := (&Run{}).OutputCounts(); warning != "" {
		t.Errorf("nothing: %s", warning)
	}
}

// A run written as a stream reads back the same.
func TestWriteReadRoundTrip(t *testing.T) {
	for name, sample := range samples(t) {
		r, err := Read(context.Background(), text(sample), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range r.Runs {
			if strings.Contains(strings.Join(run.Warnings, ""), "without a first token time") {
				continue // not valid in a stream, see below
			}
			for _, plain := range []bool{true, false} {
				var out bytes.Buffer
				if err := Write(&out, run, "tool", "1", plain); err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				again, err := Read(context.Background(), textio.Input{Name: "in", Stream: &out}, "")
				if err != nil || again.Format != "blis" {
					t.Fatalf("%s: %v", name, err)
				}
				got := again.Runs[0]
				if got.Clock != run.Clock || got.Arrivals != run.Arrivals || got.Model != run.Model ||
					got.Engine != run.Engine || got.TargetRPS != run.TargetRPS || got.Replicas != run.Replicas {
					t.Errorf("%s: %+v is read as %+v", name, run, got)
				}
				for i := range run.Outcomes {
					want := run.Outcomes[i]
					if o := got.Outcomes[i]; len(o.ITLUS) == 0 {
						o.ITLUS, want.ITLUS = nil, nil
						if !reflect.DeepEqual(o, want) {
							t.Errorf("%s: %+v is read as %+v", name, want, o)
						}
					} else if !reflect.DeepEqual(o, want) {
						t.Errorf("%s: %+v is read as %+v", name, want, o)
					}
				}
			}
		}
	}
	r := repeating([]int64{10})
	r.Outcomes[0].FirstTokenUS = stream.Never
	if err := Write(&bytes.Buffer{}, r, "tool", "1", true); err == nil ||
		!strings.Contains(err.Error(), "request 0 completed without a first token time") {
		t.Errorf("a request that was not streamed: %v", err)
	}
}

// TestOneOutcomeHasArrivalTimes: one request with the start of its prefill is enough, and no request is not.
func TestOneOutcomeHasArrivalTimes(t *testing.T) {
	r := repeating([]int64{10})
	r.Arrivals = false
	r.Outcomes[0].ScheduledUS = 5
	if !r.HasArrivalTimes() {
		t.Error("one request: HasArrivalTimes is false")
	}
	if r.Outcomes = nil; r.HasArrivalTimes() {
		t.Error("no request: HasArrivalTimes is true")
	}
}

// TestIsForeign: files of other programs are, runs are not, and neither is what is no file: reading a FIFO would wait.
func TestIsForeign(t *testing.T) {
	dir := folder(t, map[string]string{"run.jsonl": `{"kind":"header","stream":"run","stream_version":2,"tool":"x",` +
		`"version":"1","seed":0}` + "\n", "table.csv": "a,b\n1,2\n"})
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	go os.WriteFile(fifo, []byte("a,b\n1,2\n"), 0) // waits for a reader
	for name, want := range map[string]bool{"run.jsonl": false, "table.csv": true, "table.csv#x": true, "none": false,
		"fifo": false, "": false} {
		if got := IsForeign(filepath.Join(dir, name)); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

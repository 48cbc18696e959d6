package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	"blis/pkg/anomaly"
	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// recorderCluster has two deployments and three replicas.
func recorderCluster() *simulation {
	return &simulation{deployments: []deployment{{id: "a"}, {id: "b"}},
		replicas: []replica{{deployment: 0}, {deployment: 1}, {deployment: 1, index: 1}}}
}

// TestRecorderWritesInOrder compares what a recorder writes with the same records and events processed one by one.
// What was recorded is overwritten at once, as a run does.
func TestRecorderWritesInOrder(t *testing.T) {
	anomalies := 0
	rapid.Check(t, func(t *rapid.T) {
		s := recorderCluster()
		var got, want bytes.Buffer
		w, direct := stream.NewWriter(&got, true), stream.NewWriter(&want, true)
		records, log := newRecorder(s, w), newAnomalyLog(s)
		places := []place{{"a", 0}, {"b", 0}, {"b", 1}}
		var out stream.Outcome
		var request anomaly.Request
		n := rapid.IntRange(0, 3*fullEntries).Draw(t, "entries")
		violating := rapid.Bool().Draw(t, "violating")
		at := int64(0)
		for i := range n {
			at += int64(i%3) * 1000
			id := fmt.Sprintf("r%d", i)
			switch rapid.IntRange(0, 9).Draw(t, "entry") {
			case 0:
				d := stream.Decision{ID: id, Stage: stream.StageRouting, Request: id, Score: float64(i) / 3}
				d.Considered = records.candidates(rapid.IntRange(0, 200).Draw(t, "candidates"))
				for k := range d.Considered {
					d.Considered[k] = stream.NewCandidate("b", stream.Index(k))
					d.Considered[k].Terms = records.terms(2)
					d.Considered[k].Terms[0], d.Considered[k].Terms[1] = float64(k), float64(i)
				}
				must(direct.Decision(&d))
				must(records.Decision(&d))
			case 1, 2:
				out = stream.Outcome{ID: id, State: stream.StateCompleted, ArrivalUS: stream.Micros(at)}
				must(direct.Outcome(&out))
				must(records.Outcome(&out))
				out.ID = "overwritten"
			case 3:
				x := stream.Series{Kind: stream.KindSeries, Deployment: id}
				must(direct.Any(&x))
				must(records.Any(&x))
				x.Deployment = "overwritten"
			case 4:
				x := stream.Step{Deployment: id, Batch: records.list()}
				for k := range rapid.IntRange(0, 500).Draw(t, "batch") {
					x.Batch = append(x.Batch, stream.BatchEntry{Request: id, Tokens: int64(k)})
				}
				must(direct.Step(&x))
				must(records.Step(&x))
				x.Deployment = "overwritten"
			case 5:
				ms := float64(i)
				x := stream.Regret{Kind: stream.KindRegret, Decision: id, HindsightMS: &ms}
				must(direct.Regret(&x))
				must(records.Regret(&x))
				ms = -1
			case 6:
				must(log.write(direct, places))
				must(records.add(anomaliesEntry))
			default:
				request = anomaly.Request{ID: id, Class: "c", Completed: true, HasTargets: violating}
				e := anomaly.Event{Kind: anomaly.Finished, At: at, Replica: int32(i % 3), Tag: int32(i),
					Request: &request}
				if i%5 == 0 {
					e.Kind = anomaly.Preempted
				}
				log.detect(&e)
				records.event(s, e)
				request = anomaly.Request{ID: "overwritten"}
			}
		}
		records.event(s, anomaly.Event{Kind: anomaly.Closed, At: at})
		log.detect(&anomaly.Event{Kind: anomaly.Closed, At: at})
		must(log.write(direct, places))
		must(records.add(anomaliesEntry))
		must(records.close())
		must(records.close())
		must(w.End(&stream.End{}))
		must(direct.End(&stream.End{}))
		must(w.Close())
		must(direct.Close())
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Fatalf("%d entries: %d bytes, want %d", n, got.Len(), want.Len())
		}
		if fmt.Sprint(records.anomalies.types) != fmt.Sprint(log.types) {
			t.Fatalf("anomalies %v, want %v", records.anomalies.types, log.types)
		}
		anomalies += len(log.types)
	})
	if anomalies < 20 {
		t.Errorf("%d anomalies, which is too few", anomalies)
	}
}

// TestRecorderErrors: an error of the goroutine is returned by a later record, by all after it, and when the recorder
// is closed.
func TestRecorderErrors(t *testing.T) {
	full := errors.New("no space left on device")
	for name, c := range map[string]struct {
		out  failingWriter
		send func(r *recorder) error
		want string
	}{
		"the output fails": {failingWriter{full}, func(r *recorder) error {
			return r.Outcome(&stream.Outcome{ID: "r", State: stream.StateCompleted})
		}, full.Error()},
		"a record is invalid": {failingWriter{}, func(r *recorder) error {
			return r.Decision(&stream.Decision{ID: "d", Score: math.Inf(1)})
		}, `decision "d": score is`},
	} {
		w := stream.NewWriter(c.out, true)
		r := newRecorder(recorderCluster(), w)
		var err error
		for range 100_000 {
			if err = c.send(r); err != nil {
				break
			}
		}
		if err == nil {
			t.Errorf("%s: no error after 100,000 records", name)
			continue
		}
		if again, closed := c.send(r), r.close(); again != err || closed != err {
			t.Errorf("%s: %v, then %v and %v", name, err, again, closed)
		}
		w.Close()
	}
}

// failingWriter writes nothing. Without an error it claims that it did.
type failingWriter struct{ err error }

func (w failingWriter) Write(p []byte) (int, error) { return len(p), w.err }

// TestFirstErrorWins: where records could not be written and the workload is damaged later, the error is the former,
// although it may be known later.
func TestFirstErrorWins(t *testing.T) {
	full := errors.New("no space left on device")
	written, damaged := 0, 0
	for n := 100; n < 1500; n += 25 {
		var workload bytes.Buffer
		for i := range n {
			fmt.Fprintf(&workload, `{"kind":"request","id":"r%d","arrival_us":%d,"input_tokens":100,`+
				`"output_tokens":5}`+"\n", i, 10_000*i)
		}
		workload.WriteString(`{"kind":`)
		var out bytes.Buffer
		run := func(to io.Writer) error {
			return Run(t.Context(), bytes.NewReader(workload.Bytes()), to, Options{Trace: "decisions", Plain: true})
		}
		damage := run(&out)
		switch err := run(failingWriter{full}); {
		case out.Len() > 520<<10: // the Writer knows after two batches of 256 KiB
			if written++; !errors.Is(err, full) {
				t.Errorf("%d requests, %d bytes: %v, want %v", n, out.Len(), err, full)
			}
		case out.Len() < 512<<10:
			if damaged++; err == nil || damage == nil || err.Error() != damage.Error() {
				t.Errorf("%d requests, %d bytes: %v, want %v", n, out.Len(), err, damage)
			}
		}
	}
	if written < 10 || damaged < 10 {
		t.Errorf("%d and %d cases, which is too few", written, damaged)
	}
}

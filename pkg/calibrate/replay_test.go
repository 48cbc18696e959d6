package calibrate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/hardware"
	"blis/pkg/recording"
	"blis/pkg/stream"
)

// shortRun is a run of n requests, one each second, of 10 tokens in and out.
func shortRun(n int) *replay {
	r := &replay{engine: engine{replicas: 1}}
	for i := range n {
		r.requests = append(r.requests, stream.Request{ID: fmt.Sprint(i), ArrivalUS: stream.Micros(1e6 * i),
			InputTokens: 10, OutputTokens: 10})
		r.measured, r.fitted = append(r.measured, timing{1e4, 1e5, 0}), append(r.fitted, true)
	}
	return r
}

// TestShortRunsHaveBlocks: a run of 48 requests has eight blocks of six, one of 12 two of five
// and a smaller one, and a long one blocks of fifty.
func TestShortRunsHaveBlocks(t *testing.T) {
	for _, c := range []struct{ requests, blocks, first int }{
		{48, 8, 6}, {12, 3, 5}, {11, 2, 5}, {3, 1, 3}, {400, 8, 50}, {1000, 20, 50},
	} {
		r := shortRun(c.requests)
		r.makeBlocks()
		if len(r.blocks) != c.blocks || len(r.blocks[0]) != c.first {
			t.Errorf("%d requests: %d blocks, the first of %d; want %d of %d",
				c.requests, len(r.blocks), len(r.blocks[0]), c.blocks, c.first)
		}
	}
}

// TestFewRequests: 12 requests are an error, 48 a warning, 400 enough.
func TestFewRequests(t *testing.T) {
	for _, c := range []struct {
		requests int
		fails    bool
		warnings int
	}{{12, true, 0}, {48, false, 1}, {400, false, 0}} {
		s := &setup{}
		err := s.checkEnough([]*replay{shortRun(c.requests)})
		if (err != nil) != c.fails || len(s.warnings) != c.warnings {
			t.Errorf("%d requests: %v, warnings %v", c.requests, err, s.warnings)
		}
	}
	s := &setup{}
	err := s.checkEnough([]*replay{shortRun(5), shortRun(5), shortRun(5), shortRun(5)})
	if err == nil || !strings.Contains(err.Error(), "10 of them in one run") {
		t.Errorf("four runs of one block: %v", err)
	}
}

// TestStagesAreHeldOut: of ten requests, one per second, in stages to 5 s and 8 s, the second
// stage extends to the last arrival, however it is held out.
func TestStagesAreHeldOut(t *testing.T) {
	staged := func() *setup {
		r := shortRun(10)
		r.name = "r"
		r.stages = []recording.Stage{{Name: "low", ToUS: 5e6}, {Name: "high", FromUS: 5e6, ToUS: 8e6}}
		return &setup{replays: []*replay{r, shortRun(10)}}
	}
	s := staged()
	parts, err := s.holdOutStage("high")
	if err != nil || len(parts) != 1 || !slices.Equal(parts[0].selected, s.replays[0].arrivalsBetween(5e6, 10e6)) ||
		parts[0].name != "r stage high (1.25 requests/s)" {
		t.Fatalf("%+v, %v", parts, err)
	}
	for i, used := range s.replays[0].fitted {
		if used == parts[0].selected[i] || !s.replays[1].fitted[i] {
			t.Errorf("request %d: fitted %v and %v", i, used, s.replays[1].fitted[i])
		}
	}
	if all := s.allStages(); len(all) != 3 || !slices.Equal(all[1].selected, parts[0].selected) {
		t.Errorf("%+v", all)
	}
	s = staged()
	last := s.replays[0].arrivalsBetween(8e6, 10e6)
	if ends := s.holdOutEnds(0.4); len(ends) != 3 || !slices.Equal(ends[1].selected, last) {
		t.Errorf("%+v", ends)
	}
	for _, name := range []string{"", "middle"} {
		if parts, err := staged().holdOutStage(name); err == nil || parts != nil {
			t.Errorf("stage %q: %+v", name, parts)
		}
	}
}

// TestOtherSetupsAreIgnoredInOrder: warnings about runs and steps of other setups are in the
// order of their names, after earlier warnings.
func TestOtherSetupsAreIgnoredInOrder(t *testing.T) {
	known, err := hardware.Open()
	if err != nil {
		t.Fatal(err)
	}
	s := &setup{hardware: known, deployment: &cluster.Deployment{Model: "a/model"},
		key: hardware.Key{Model: "a/model", GPU: "H100-SXM", TensorParallelSize: 1}}
	s.warnf("z: first")
	want := []string{"z: first", "r: ignored runs of an unnamed model on an unnamed GPU, tensor parallelism 4: 1"}
	r := &recording.Recording{Path: "r"}
	for tp := 8; tp > 1; tp-- {
		r.Steps = append(r.Steps, recording.Step{TensorParallel: tp}, recording.Step{TensorParallel: tp})
	}
	for tp := 2; tp <= 8; tp++ {
		want = append(want, fmt.Sprintf("r: ignored steps of an unnamed model on an unnamed GPU, "+
			"tensor parallelism %d: 2", tp))
	}
	r.Runs = append(r.Runs, &recording.Run{TensorParallel: 4})
	if err := s.add(r); err != nil || !slices.Equal(s.warnings, want) {
		t.Errorf("%q, %v", s.warnings, err)
	}
}

// TestWrongCountsOfEqualOutputs: if some output token counts contradict the times and the others are equal, each
// request is replayed with as many tokens as those, and a warning says so.
func TestWrongCountsOfEqualOutputs(t *testing.T) {
	run := &recording.Run{Arrivals: true}
	for i := range 500 {
		at := stream.Micros(i) * 100_000
		o := stream.Outcome{ID: fmt.Sprint(i), State: stream.StateCompleted, InputTokens: 10, OutputTokens: 100,
			ArrivalUS: at, EnqueuedUS: stream.Never, ScheduledUS: stream.Never, FirstTokenUS: at + 50_000,
			CompletedUS: at + 1_040_000, EndedUS: stream.Never}
		if i%50 == 7 {
			o.OutputTokens = 4
		}
		run.Outcomes = append(run.Outcomes, o)
	}
	s, r := &setup{options: &Options{}}, &replay{name: "run", hasArrivals: true}
	s.readRequests(r, run)
	for _, q := range r.requests {
		if q.OutputTokens != 100 {
			t.Fatalf("request %s has %d output tokens, want 100", q.ID, q.OutputTokens)
		}
	}
	if len(r.requests) != 500 || !strings.Contains(strings.Join(s.warnings, "\n"),
		"run: every request is taken to have 100 output tokens") {
		t.Errorf("%d requests, warnings %q", len(r.requests), s.warnings)
	}
}

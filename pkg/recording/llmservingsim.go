package recording

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"blis/pkg/textio"
)

// engineLine is a line of what LLMServingSim's benchmark of vLLM writes
// (github.com/casys-kaist/LLMServingSim, bench: requests.jsonl). arrival_time is s
// since 1970, the others are s on the engine's own clock, which began at some
// other time. Nil is absent.
type engineLine struct {
	ID        string   `json:"request_id"`
	Input     *int64   `json:"input_toks"`
	Output    *int64   `json:"output_toks"`
	Arrival   *float64 `json:"arrival_time"`
	Queued    *float64 `json:"queued_ts"`
	Scheduled *float64 `json:"scheduled_ts"`
	First     *float64 `json:"first_token_ts"`
	Last      *float64 `json:"last_token_ts"`
}

// engineMeta is what matters of meta.json beside it.
type engineMeta struct {
	Model   string `json:"model"`
	Version string `json:"vllm_version"`
	Engine  struct {
		TensorParallel int `json:"tensor_parallel_size"`
	} `json:"engine_kwargs"`
}

func isLLMServingSim(h *head) bool { return !h.list && h.any("queued_ts", "first_token_ts") }

// readLLMServingSim reads such lines. The two clocks are joined so that the
// request that was queued soonest after its arrival was queued at once: what it
// takes to get to the engine is not known, only how much more than the least.
func readLLMServingSim(f *file, r *Recording) error {
	var calls []call
	least := math.Inf(1)
	err := eachLine(f, func(l *textio.Lines, line *engineLine) error {
		c, err := line.call(l)
		if err != nil {
			return err
		}
		least = min(least, c.queued-c.at)
		calls = append(calls, c)
		return nil
	})
	if err != nil {
		return err
	}
	run := &Run{Clock: ServerClock, Arrivals: true, Engine: "vllm"}
	for i := range calls {
		c := &calls[i]
		c.queued, c.scheduled, c.first, c.last = c.queued-least, c.scheduled-least, c.first-least, c.last-least
	}
	run.warnf("arrivals and the engine's times are of two clocks, which are joined where a request was queued soonest: the overhead before the queue is known only beyond its least")
	if err := run.setUpBeside(f.path); err != nil {
		return err
	}
	r.Runs = []*Run{run}
	return outcomes(&textio.Place{Name: f.Name}, calls, run)
}

// call is the request of a line, on its two clocks.
func (e *engineLine) call(l *textio.Lines) (call, error) {
	c := newCall()
	if err := l.Need(textio.Absent("input_toks", e.Input == nil), textio.Absent("output_toks", e.Output == nil), textio.Absent("arrival_time", e.Arrival == nil),
		textio.Absent("queued_ts", e.Queued == nil), textio.Absent("scheduled_ts", e.Scheduled == nil), textio.Absent("first_token_ts", e.First == nil),
		textio.Absent("last_token_ts", e.Last == nil)); err != nil {
		return c, err
	}
	c.ID, c.InputTokens = e.ID, *e.Input
	c.complete(*e.Output)
	c.queued, c.scheduled, c.first, c.last = *e.Queued*1e6, *e.Scheduled*1e6, *e.First*1e6, *e.Last*1e6
	c.at = c.queued // the engine's order of times, on its own clock
	if err := c.check(&l.Place, words{"input_toks", "output_toks", "first_token_ts", "last_token_ts"}); err != nil {
		return c, err
	}
	if c.scheduled < c.queued || c.first < c.scheduled {
		return c, l.Errorf("queued_ts, scheduled_ts and first_token_ts must follow each other, are %f, %f, %f", *e.Queued, *e.Scheduled, *e.First)
	}
	c.at = *e.Arrival * 1e6
	return c, l.Time("arrival_time", *e.Arrival, "s")
}

// setUpBeside takes what meta.json beside path says of the setup, if it is there.
func (r *Run) setUpBeside(path string) error {
	if path == "" {
		return nil
	}
	name := filepath.Join(filepath.Dir(path), "meta.json")
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var meta engineMeta
	if err := json.Unmarshal(text, &meta); err != nil {
		return (&textio.Place{Name: name}).Errorf("%s", textio.JSONFault(err))
	}
	r.Model, r.TensorParallel = meta.Model, meta.Engine.TensorParallel
	if meta.Version != "" {
		r.Engine = "vllm " + meta.Version
	}
	return nil
}

package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"blis/pkg/limits"
	"blis/pkg/textio"
)

// engineLine is a line of LLMServingSim's vLLM benchmark (github.com/casys-kaist/LLMServingSim,
// bench: requests.jsonl). arrival_time is s since 1970; the others are s on the engine's own clock,
// which has a different origin. The pointers must be given.
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

// engineMeta holds the relevant fields of meta.json in the same folder.
type engineMeta struct {
	Model   string `json:"model"`
	Version string `json:"vllm_version"`
	Engine  struct {
		TensorParallel int   `json:"tensor_parallel_size"`
		DataParallel   *int  `json:"data_parallel_size"`
		ExpertParallel *bool `json:"enable_expert_parallel"`
		ModelLen       *int  `json:"max_model_len"`
		BatchedTokens  *int  `json:"max_num_batched_tokens"`
		Seqs           *int  `json:"max_num_seqs"`
	} `json:"engine_kwargs"`
	KVCache struct {
		Blocks *int `json:"num_gpu_blocks"`
	} `json:"kv_cache"`
}

// settings are those that are given, by their names in a cluster file.
func (m *engineMeta) settings() (given []string) {
	e := &m.Engine
	for _, s := range []struct {
		name  string
		value *int
	}{
		{"data_parallel_size", e.DataParallel}, {"max_model_len", e.ModelLen},
		{"max_num_batched_tokens", e.BatchedTokens}, {"max_num_seqs", e.Seqs},
		{"num_gpu_blocks_override", m.KVCache.Blocks},
	} {
		if s.value != nil {
			given = append(given, fmt.Sprintf("%s=%d", s.name, *s.value))
		}
	}
	if e.ExpertParallel != nil {
		given = append(given, fmt.Sprintf("enable_expert_parallel=%v", *e.ExpertParallel))
	}
	return given
}

func isLLMServingSim(h *head) bool { return !h.list && h.any("queued_ts", "first_token_ts") }

// readLLMServingSim reads engine lines. The two clocks are aligned so that the shortest delay from
// arrival to queue is 0, because the true delay is unknown.
func readLLMServingSim(f *file, r *Recording) error {
	var requests []request
	minDelay := math.Inf(1)
	l := textio.NewLines(f.Name, f)
	err := forEach(l.ReadLenient, func(line *engineLine) error {
		c, err := line.request(l)
		if err != nil {
			return err
		}
		minDelay = min(minDelay, c.queued-c.at)
		requests = append(requests, c)
		return nil
	})
	if err != nil {
		return err
	}
	run := &Run{Clock: ServerClock, Arrivals: true, Engine: "vllm"}
	for i := range requests {
		c := &requests[i]
		for _, t := range []*float64{&c.queued, &c.scheduled, &c.first, &c.last} {
			*t -= minDelay
		}
	}
	run.warnf("arrivals and engine times are on two clocks, aligned at the shortest delay to the queue: overhead " +
		"before the queue is known only relative to its minimum")
	if err := run.applyMetaFile(f.path); err != nil {
		return err
	}
	return r.add(run, requests)
}

// request converts a line, on its two clocks.
func (e *engineLine) request(l *textio.Lines) (request, error) {
	c := newRequest()
	c.ID, c.InputTokens = e.ID, *e.Input
	c.complete(*e.Output)
	c.queued, c.scheduled, c.first, c.last = *e.Queued*1e6, *e.Scheduled*1e6, *e.First*1e6, *e.Last*1e6
	c.at = c.queued // validate the engine's times on its own clock
	if err := c.check(&l.Position, fieldNames{"input_toks", "output_toks", "first_token_ts",
		"last_token_ts"}); err != nil {
		return c, err
	}
	if c.scheduled < c.queued || c.first < c.scheduled {
		return c, l.Errorf("queued_ts, scheduled_ts and first_token_ts must follow each other, are %f, %f, %f",
			*e.Queued, *e.Scheduled, *e.First)
	}
	c.at = *e.Arrival * 1e6
	return c, l.Time("arrival_time", *e.Arrival, "s")
}

// applyMetaFile sets the setup from meta.json next to path, if it exists.
func (r *Run) applyMetaFile(path string) error {
	if path == "" {
		return nil
	}
	name := filepath.Join(filepath.Dir(path), "meta.json")
	text, err := limits.ReadFile(name, limits.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var meta engineMeta
	if err := json.Unmarshal(text, &meta); err != nil {
		return (&textio.Position{Name: name}).Errorf("%s", textio.JSONMessage(err))
	}
	r.Model, r.TensorParallel, r.Settings = meta.Model, meta.Engine.TensorParallel, meta.settings()
	if meta.Version != "" {
		r.Engine = "vllm " + meta.Version
	}
	return nil
}

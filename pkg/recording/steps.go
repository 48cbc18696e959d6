package recording

import (
	"math"
	"strings"

	"blis/pkg/textio"
)

// stepTimes are the columns of step durations.
var stepTimes = []timeColumn{{"step_us", 1}, {"step_us_gpu_only", 1}, {"step_ms", 1e3}}

const stepColumns = "prefill_tokens, decode_tokens, step_us or step_us_gpu_only or step_ms; optional context_tokens " +
	"or decode_kv_each or context_tokens_mean_per_seq, prefill_kv_before, model, gpu, tp, note"

func isSteps(h *head) bool {
	return h.has("prefill_tokens", "decode_tokens") && h.any(names(stepTimes)...)
}

// stepTable reads a table of measured steps.
type stepTable struct {
	*textio.Table
	prefill, decode, duration, context, meanContext, prefillContext int
	model, gpu, tp, engine, note                                    int
	us                                                              float64
}

// readSteps reads a table of steps. The context of decode sequences is a total (context_tokens) or
// a mean (decode_kv_each, context_tokens_mean_per_seq).
func readSteps(f *file, r *Recording) error {
	s, err := textio.NewTable(f.Name, f, stepColumns)
	if err != nil {
		return err
	}
	t := &stepTable{Table: s, context: s.Column("context_tokens"), meanContext: s.Column("decode_kv_each",
		"context_tokens_mean_per_seq"), prefillContext: s.Column("prefill_kv_before"),
		model: s.Column("model"), gpu: s.Column("gpu"), tp: s.Column("tp"), engine: s.Column("vllm_version"),
		note: s.Column("note")}
	if err := s.RequireColumns(textio.Ref("prefill_tokens", &t.prefill),
		textio.Ref("decode_tokens", &t.decode)); err != nil {
		return err
	}
	if t.duration, err = s.RequireColumn(names(stepTimes)...); err != nil {
		return err
	}
	for _, c := range stepTimes {
		if c.name == s.Header[t.duration] {
			t.us = c.us
		}
	}
	if t.context < 0 && t.meanContext < 0 {
		f.Warnf("no column has the context length of decode sequences")
	}
	return forEachRow(s, "steps", func() error {
		step, err := t.row()
		if err == nil {
			r.Steps = append(r.Steps, step)
		}
		return err
	})
}

// row reads the next step.
func (t *stepTable) row() (Step, error) {
	if err := t.Read(); err != nil {
		return Step{}, err
	}
	s := Step{GPUOnly: t.Header[t.duration] == "step_us_gpu_only", Context: Unknown,
		Model: strings.Clone(t.Value(t.model)), GPU: strings.Clone(t.Value(t.gpu)),
		Engine: strings.Clone(t.Value(t.engine)), Note: strings.Clone(t.Value(t.note))}
	if err := t.Integers([]int{t.prefill, t.decode}, &s.Prefill, &s.Decode); err != nil {
		return s, err
	}
	tp, err := t.Optional(t.tp)
	if err != nil {
		return s, err
	}
	if s.PrefillContext, err = t.Optional(t.prefillContext); err != nil {
		return s, err
	}
	s.TensorParallel = int(tp)
	for _, n := range []struct {
		name   string
		tokens int64
	}{{"prefill_tokens", s.Prefill}, {"decode_tokens", s.Decode}, {"prefill_kv_before", s.PrefillContext}} {
		if n.tokens < 0 || n.tokens > textio.MaxTokens {
			return s, t.Errorf("%s must be between 0 and %d, is %d", n.name, textio.MaxTokens, n.tokens)
		}
	}
	if s.Prefill+s.Decode == 0 {
		return s, t.Errorf("prefill_tokens and decode_tokens are both 0; a step computes at least one token")
	}
	took, err := t.Time(t.duration)
	if err != nil {
		return s, err
	}
	if s.US = took * t.us; s.US == 0 {
		return s, t.Errorf("%s must be above 0", t.Header[t.duration])
	}
	return s, t.contextOf(&s)
}

// contextOf sets the context of the decode sequences of a step.
func (t *stepTable) contextOf(s *Step) error {
	column, times := t.context, 1.0
	if column < 0 {
		column, times = t.meanContext, float64(s.Decode)
	}
	switch {
	case s.Decode == 0:
		s.Context = 0
	case column >= 0:
		each, err := t.Time(column)
		if err != nil {
			return err
		}
		if each > textio.MaxTokens {
			return t.Errorf("%s must be at most %d, is %g", t.Header[column], textio.MaxTokens, each)
		}
		s.Context = int64(math.Floor(each*times + 0.5))
	}
	return nil
}

package recording

import (
	"math"
	"strings"

	"blis/pkg/textio"
)

// stepTimes are the columns of step durations.
var stepTimes = []string{"step_us", "step_us_gpu_only", "step_ms"}

const stepColumns = "prefill_tokens, decode_tokens, step_us or step_us_gpu_only or step_ms; optional context_tokens " +
	"or decode_kv_each or context_tokens_mean_per_seq, prefill_kv_before, model, gpu, tp, note"

func isSteps(h *head) bool {
	return h.has("prefill_tokens", "decode_tokens") && h.any(stepTimes...)
}

// stepTable reads a table of measured steps.
type stepTable struct {
	*textio.Table
	prefill, decode, duration, context, meanContext, prefillContext int
	model, gpu, tp, engine, note                                    int
}

// readSteps reads a table of steps. The context of decode sequences is a total (context_tokens) or
// a mean (decode_kv_each, context_tokens_mean_per_seq).
func readSteps(f *file, r *Recording) error {
	s, err := textio.NewTable(f.Name, f, stepColumns)
	if err != nil {
		return err
	}
	t := &stepTable{Table: s, prefill: s.RequireColumn("prefill_tokens"), decode: s.RequireColumn("decode_tokens"),
		duration: s.RequireColumn(stepTimes...), context: s.Column("context_tokens"),
		meanContext:    s.Column("decode_kv_each", "context_tokens_mean_per_seq"),
		prefillContext: s.Column("prefill_kv_before"), model: s.Column("model"), gpu: s.Column("gpu"),
		tp: s.Column("tp"), engine: s.Column("vllm_version"), note: s.Column("note")}
	if t.context < 0 && t.meanContext < 0 {
		f.Warnf("no column has the context length of decode sequences")
	}
	return forEachRow(s, "steps", func() error {
		step, err := t.row()
		r.Steps = append(r.Steps, step)
		return err
	})
}

// row reads the step of the current row.
func (t *stepTable) row() (Step, error) {
	s := Step{GPUOnly: t.Header[t.duration] == "step_us_gpu_only", Context: Unknown,
		Prefill: t.Integer(t.prefill), Decode: t.Integer(t.decode), TensorParallel: int(t.Optional(t.tp)),
		PrefillContext: t.Optional(t.prefillContext),
		Model:          strings.Clone(t.Value(t.model)), GPU: strings.Clone(t.Value(t.gpu)),
		Engine: strings.Clone(t.Value(t.engine)), Note: strings.Clone(t.Value(t.note))}
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
	s.US = t.TimeUS(t.duration)
	if s.US == 0 {
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
		each := t.Time(column)
		if each > textio.MaxTokens {
			return t.Errorf("%s must be at most %d, is %g", t.Header[column], textio.MaxTokens, each)
		}
		s.Context = int64(math.Floor(each*times + 0.5))
	}
	return nil
}

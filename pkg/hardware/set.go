package hardware

import (
	"fmt"
	"strings"

	"blis/pkg/latency"
)

// Key is what coefficients hold for: a model, by its name in the catalogue of
// models, a GPU, and how many of them a replica has. Letter case in the names
// does not count.
type Key struct {
	Model                string `yaml:"model" json:"model"`
	GPU                  string `yaml:"gpu" json:"gpu"`
	TensorParallelSize   int    `yaml:"tensor_parallel_size" json:"tensor_parallel_size"`
	PipelineParallelSize int    `yaml:"pipeline_parallel_size" json:"pipeline_parallel_size"`
	DataParallelSize     int    `yaml:"data_parallel_size" json:"data_parallel_size"`
}

func (k Key) same(other Key) bool {
	names := strings.EqualFold(k.Model, other.Model) && strings.EqualFold(k.GPU, other.GPU)
	k.Model, k.GPU = other.Model, other.GPU
	return names && k == other
}

// Set is coefficients that were fitted to measurements, and what they are worth.
type Set struct {
	Key `yaml:",inline"`
	// Engine is the server that was measured, with its version ("vLLM 0.15.1").
	Engine string `yaml:"engine" json:"engine,omitempty"`
	// Settings of the engine that the fit supposes: simulated with others, the
	// coefficients mean something else.
	Settings Settings `yaml:"settings" json:"settings"`
	Latency  Latency  `yaml:"latency" json:"latency"`
	Range    Range    `yaml:"range" json:"range"`
	// Source says what was measured, by whom and where it is to be found; Method
	// how the coefficients were fitted to it.
	Source     string      `yaml:"source" json:"source"`
	Method     string      `yaml:"method" json:"method,omitempty"`
	Recordings []Recording `yaml:"recordings" json:"recordings,omitempty"`
	// Intervals are those of the data's scatter alone, and of what these alone lead to:
	// a coefficient in which physics has a part may lie outside. Doubts are about
	// the coefficient itself, and count in how far step times may lie off a line and what
	// physics says: they may be wider than Intervals or narrower.
	CI          Intervals `yaml:"ci" json:"ci"`
	Uncertainty Intervals `yaml:"uncertainty" json:"uncertainty,omitzero"`
	Errors      []Error   `yaml:"errors" json:"errors,omitempty"`
	// Warnings are for whoever uses the coefficients.
	Warnings []string `yaml:"warnings" json:"warnings,omitempty"`
}

// UnmarshalYAML decodes a set over the defaults of what it leaves out.
func (s *Set) UnmarshalYAML(decode func(any) error) error {
	type plain Set
	*s = Set{Key: Key{TensorParallelSize: 1, PipelineParallelSize: 1, DataParallelSize: 1}}
	return decode((*plain)(s))
}

// Settings are engine settings, by the engine's names; those not stated do not
// matter to the fit.
type Settings struct {
	AsyncScheduling     *bool `yaml:"async_scheduling" json:"async_scheduling,omitempty"`
	EnablePrefixCaching *bool `yaml:"enable_prefix_caching" json:"enable_prefix_caching,omitempty"`
}

// Latency is a latency model as cluster files have it.
type Latency struct {
	Model   string         `yaml:"model" json:"model"`
	AlphaUS []float64      `yaml:"alpha_us" json:"alpha_us"`
	BetaUS  []float64      `yaml:"beta_us" json:"beta_us,omitempty"`
	Table   *latency.Table `yaml:"table" json:"table,omitempty"`
}

// Build makes the latency model.
func (l *Latency) Build() (latency.Model, error) {
	build, err := latency.Models.Get("latency model", l.Model)
	if err != nil {
		return nil, err
	}
	if l.Model == "table" && l.BetaUS != nil {
		return nil, fmt.Errorf("beta_us has no effect on a table")
	}
	if l.Model != "table" && l.Table != nil {
		return nil, fmt.Errorf("a table has no effect on the model %s", l.Model)
	}
	return build(latency.Coefficients{Alpha: l.AlphaUS, Beta: l.BetaUS, Table: l.Table})
}

// Recording is a file that was fitted to: of one that names its runs, these Runs.
type Recording struct {
	File     string   `yaml:"file" json:"file"`
	Digest   string   `yaml:"digest" json:"digest,omitempty"`
	Requests int      `yaml:"requests" json:"requests,omitempty"`
	Runs     []string `yaml:"runs" json:"runs,omitempty"`
}

// Intervals has for each coefficient the lowest and the highest value that the
// data allow, with the probability Level (0.9) that it is between them.
type Intervals struct {
	Level   float64     `yaml:"level" json:"level,omitempty"`
	AlphaUS [][]float64 `yaml:"alpha_us" json:"alpha_us,omitempty"`
	BetaUS  [][]float64 `yaml:"beta_us" json:"beta_us,omitempty"`
}

// Error is how wrong a metric is when it is simulated: Percent of what was
// measured, too long where it is positive. Metric is a metric's path ("e2e.mean")
// or "step". Data says on what, and whether the fit had seen it.
type Error struct {
	Metric  string  `yaml:"metric" json:"metric"`
	Data    string  `yaml:"data" json:"data"`
	Percent float64 `yaml:"percent" json:"percent"`
}

// Range is what the measurements covered; a span that is not stated is not
// known.
type Range struct {
	// Of a step: the sequences that decode, and the prefill tokens.
	DecodeSequences Span `yaml:"decode_sequences" json:"decode_sequences,omitempty"`
	PrefillTokens   Span `yaml:"prefill_tokens" json:"prefill_tokens,omitempty"`
	// Of a sequence: the tokens that it had computed in a decode step.
	ContextTokens Span `yaml:"context_tokens" json:"context_tokens,omitempty"`
	// Of a request.
	InputTokens  Span `yaml:"input_tokens" json:"input_tokens,omitempty"`
	OutputTokens Span `yaml:"output_tokens" json:"output_tokens,omitempty"`
}

// Span is the least and the largest value; empty if they are not known.
type Span []float64

// spans lists a range's spans by the names of files.
func (r *Range) spans() []namedSpan {
	return []namedSpan{
		{"decode_sequences", r.DecodeSequences},
		{"prefill_tokens", r.PrefillTokens},
		{"context_tokens", r.ContextTokens},
		{"input_tokens", r.InputTokens},
		{"output_tokens", r.OutputTokens},
	}
}

// Check reports the first span that is not two numbers, the least and the
// largest, and its name.
func (r *Range) Check() (name string, err error) {
	for _, s := range r.spans() {
		if len(s.span) > 0 && (len(s.span) != 2 || !(s.span[0] >= 0) || !(s.span[1] >= s.span[0]) || s.span[1] > maxSpan) {
			return s.name, fmt.Errorf("must be [least, largest], is %v", []float64(s.span))
		}
	}
	return "", nil
}

// maxSpan is beyond any count of tokens.
const maxSpan = 1e12

type namedSpan struct {
	name string
	span Span
}

// Outside says in which ways a use of coefficients leaves the range in which
// they were measured: one line for each span of both that does.
func (r *Range) Outside(use Range) []string {
	var out []string
	uses := use.spans()
	for i, s := range r.spans() {
		u := uses[i].span
		if len(s.span) == 0 || len(u) == 0 {
			continue
		}
		if u[0] < s.span[0] {
			out = append(out, fmt.Sprintf("%s go down to %g, measured were %g to %g", s.name, u[0], s.span[0], s.span[1]))
		}
		if u[1] > s.span[1] {
			out = append(out, fmt.Sprintf("%s go up to %g, measured were %g to %g", s.name, u[1], s.span[0], s.span[1]))
		}
	}
	return out
}

package hardware

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"blis/pkg/latency"
)

// Key identifies what coefficients are for: a model by its name in the catalog of models, a
// GPU, and the parallelism of a replica. Letter case in names does not matter.
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

// String describes a key for people.
func (k Key) String() string {
	text := fmt.Sprintf("%s on %s, tensor parallelism %d", k.Model, k.GPU, k.TensorParallelSize)
	if k.PipelineParallelSize > 1 {
		text += fmt.Sprintf(", pipeline parallelism %d", k.PipelineParallelSize)
	}
	if k.DataParallelSize > 1 {
		text += fmt.Sprintf(", data parallelism %d", k.DataParallelSize)
	}
	return text
}

// Set is coefficients fitted to measurements, with their provenance and accuracy.
type Set struct {
	Key `yaml:",inline"`
	// Engine is the measured server with its version ("vLLM 0.15.1").
	Engine string `yaml:"engine" json:"engine,omitempty"`
	// Settings are engine settings that the fit assumes: with others, the coefficients are
	// wrong.
	Settings Settings `yaml:"settings" json:"settings"`
	Latency  Latency  `yaml:"latency" json:"latency"`
	Range    Range    `yaml:"range" json:"range"`
	// Source says what was measured, and where to find it; Method how the coefficients
	// were fitted.
	Source     string      `yaml:"source" json:"source"`
	Method     string      `yaml:"method" json:"method,omitempty"`
	Recordings []Recording `yaml:"recordings" json:"recordings,omitempty"`
	// CI are confidence intervals by the scatter of the data alone: a coefficient with a prior
	// may be outside. Uncertainty is of the coefficient, with the prior and with how far step
	// times deviate from a line: it may be wider than CI or narrower.
	CI          Intervals `yaml:"ci" json:"ci" comment:"of a fit to the data alone: a coefficient that a prior moved may be outside"`
	Uncertainty Intervals `yaml:"uncertainty" json:"uncertainty,omitzero" comment:"of the coefficients above"`
	Errors      []Error   `yaml:"errors" json:"errors,omitempty"`
	// Warnings are for users of the coefficients.
	Warnings []string `yaml:"warnings" json:"warnings,omitempty"`
}

// UnmarshalYAML decodes a set; parallelism that it does not state is 1.
func (s *Set) UnmarshalYAML(decode func(any) error) error {
	type plain Set
	*s = Set{Key: Key{TensorParallelSize: 1, PipelineParallelSize: 1, DataParallelSize: 1}}
	return decode((*plain)(s))
}

// Settings are engine settings by the engine's names; the fit does not depend on those not
// stated.
type Settings struct {
	AsyncScheduling     *bool `yaml:"async_scheduling" json:"async_scheduling,omitempty"`
	EnablePrefixCaching *bool `yaml:"enable_prefix_caching" json:"enable_prefix_caching,omitempty"`
}

// Latency is a latency model as in cluster files.
type Latency struct {
	Model   string         `yaml:"model" json:"model"`
	AlphaUS []float64      `yaml:"alpha_us" json:"alpha_us"`
	BetaUS  []float64      `yaml:"beta_us" json:"beta_us,omitempty"`
	Table   *latency.Table `yaml:"table" json:"table,omitempty"`
	// Factors adjust the operators model.
	Factors *latency.Factors `yaml:"factors" json:"factors,omitempty"`
}

// Build makes the latency model; replica is the input of the roofline model, o that of the operators
// model.
func (l *Latency) Build(replica *latency.Replica, o *latency.Operators) (latency.Model, error) {
	build, err := latency.Models.Get("latency model", l.Model)
	if err != nil {
		return nil, err
	}
	return build(latency.Coefficients{Alpha: l.AlphaUS, Beta: l.BetaUS, Table: l.Table, Replica: replica,
		Operators: o, Factors: l.Factors})
}

// Recording is a file that was fitted to; Runs are the fitted ones, if it names them.
type Recording struct {
	File     string   `yaml:"file" json:"file"`
	Digest   string   `yaml:"digest" json:"digest,omitempty"`
	Requests int      `yaml:"requests" json:"requests,omitempty"`
	Runs     []string `yaml:"runs" json:"runs,omitempty"`
}

// Intervals has [lo, hi] for each coefficient, at the confidence level Level (0.9).
type Intervals struct {
	Level   float64     `yaml:"level" json:"level,omitempty"`
	AlphaUS [][]float64 `yaml:"alpha_us" json:"alpha_us,omitempty"`
	BetaUS  [][]float64 `yaml:"beta_us" json:"beta_us,omitempty"`
	// Factors has those of the factors by their names.
	Factors map[string][]float64 `yaml:"factors" json:"factors,omitempty"`
}

// Error is the error of a simulated metric in percent of the measured one, positive if it is
// too long. Metric is a metric's path ("e2e.mean") or "step". Data says which data, and whether
// they were held out.
type Error struct {
	Metric  string  `yaml:"metric" json:"metric"`
	Data    string  `yaml:"data" json:"data"`
	Percent float64 `yaml:"percent" json:"percent"`
}

// Range is what the measurements covered; a span that is not stated is unknown.
type Range struct {
	// Of a step: decoding sequences and prefill tokens.
	DecodeSequences Span `yaml:"decode_sequences" json:"decode_sequences,omitempty"`
	PrefillTokens   Span `yaml:"prefill_tokens" json:"prefill_tokens,omitempty"`
	// Of a sequence: its context in a decode step.
	ContextTokens Span `yaml:"context_tokens" json:"context_tokens,omitempty"`
	// Of a request.
	InputTokens  Span `yaml:"input_tokens" json:"input_tokens,omitempty"`
	OutputTokens Span `yaml:"output_tokens" json:"output_tokens,omitempty"`
}

// Span is the smallest and the largest value; empty if unknown.
type Span []float64

// spans lists a range's spans by their names in files.
func (r *Range) spans() []namedSpan {
	return []namedSpan{
		{"decode_sequences", r.DecodeSequences},
		{"prefill_tokens", r.PrefillTokens},
		{"context_tokens", r.ContextTokens},
		{"input_tokens", r.InputTokens},
		{"output_tokens", r.OutputTokens},
	}
}

// Widen extends a span to include values.
func (s *Span) Widen(values ...float64) {
	for _, v := range values {
		if *s == nil {
			*s = Span{v, v}
		}
		(*s)[0], (*s)[1] = min((*s)[0], v), max((*s)[1], v)
	}
}

// Check returns the name of the first span that is not two numbers in order, and an error.
func (r *Range) Check() (name string, err error) {
	for _, s := range r.spans() {
		if len(s.span) == 0 {
			continue
		}
		if len(s.span) != 2 || !(s.span[0] >= 0) || !(s.span[1] >= s.span[0]) || s.span[1] > maxSpan {
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

// Extrapolations describes how a use of coefficients extrapolates the measured range: one line for
// each span that does.
func (r *Range) Extrapolations(use Range) []string {
	var out []string
	uses := use.spans()
	for i, s := range r.spans() {
		u := uses[i].span
		if len(s.span) == 0 || len(u) == 0 {
			continue
		}
		if u[0] < s.span[0] {
			out = append(out, fmt.Sprintf("%s go down to %g; the measured range is %g to %g",
				s.name, u[0], s.span[0], s.span[1]))
		}
		if u[1] > s.span[1] {
			out = append(out, fmt.Sprintf("%s go up to %g; the measured range is %g to %g",
				s.name, u[1], s.span[0], s.span[1]))
		}
	}
	return out
}

// YAML is a file with the set alone: a line for each field, or for each element of a list of
// objects or strings.
func (s *Set) YAML() string {
	var b strings.Builder
	b.WriteString("version: 1\ncoefficients:\n")
	indent := "  - "
	set := reflect.ValueOf(*s)
	for _, field := range reflect.VisibleFields(set.Type()) {
		if field.Anonymous {
			continue
		}
		text := flow(set.FieldByIndex(field.Index).Interface())
		if text != ` ""` && text != " {}" && text != "" {
			if comment := field.Tag.Get("comment"); comment != "" && s.Uncertainty.Level > 0 {
				fmt.Fprintf(&b, "%s# %s\n", indent, comment)
			}
			fmt.Fprintf(&b, "%s%s:%s\n", indent, field.Tag.Get("yaml"), text)
			indent = "    "
		}
	}
	return b.String()
}

// flow is a value in flow style; a list of objects or strings is in block style, an empty list "".
func flow(v any) string {
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice {
		text := ""
		for i := range list.Len() {
			text += "\n      -" + flow(list.Index(i).Interface())
		}
		return text
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("hardware: " + err.Error())
	}
	return " " + spaced(strings.TrimSpace(b.String()))
}

// maxLine is about how long a line of a flow may get.
const maxLine = 100

// jsonToken matches a key with its colon, a string, a comma, or anything else up to the next of them.
var jsonToken = regexp.MustCompile(`"\w+":|"(?:[^"\\]|\\.)*"|,|[^",]+`)

// spaced puts spaces after the colons and commas of JSON outside of strings, drops the quotes
// of keys, and breaks long lists into lines.
func spaced(text string) string {
	line := 0
	return jsonToken.ReplaceAllStringFunc(text, func(token string) string {
		if strings.HasSuffix(token, ":") {
			token = strings.Trim(token, `":`) + ":"
		}
		line += len(token)
		switch {
		case token == "," && line > maxLine:
			line = 0
			return ",\n        "
		case token == ",", strings.HasSuffix(token, ":"):
			return token + " "
		}
		return token
	})
}

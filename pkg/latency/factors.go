package latency

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"blis/pkg/des"
)

// Factors replace the decode steps of the operators model by a measured line, and multiply the time of
// prefill.
//
//	step = StepUS + SequenceUS·decode + ContextUS·context + Prefill·prefill
//
// prefill is by how much the model's time of the batch exceeds that with a chunk of a single token.
type Factors struct {
	StepUS     float64 `yaml:"step_us" json:"step_us"`
	SequenceUS float64 `yaml:"sequence_us" json:"sequence_us"`
	ContextUS  float64 `yaml:"context_us" json:"context_us"`
	Prefill    float64 `yaml:"prefill" json:"prefill"`
	// Kernels is the KernelsID of the fit, which Prefill is a multiple of; "" is unknown.
	Kernels string `yaml:"kernels" json:"kernels,omitempty"`
}

// IsOf reports whether the factors can be of the kernels with an id: they are, or it is unknown of which they are.
func (f *Factors) IsOf(id string) bool { return f.Kernels == "" || f.Kernels == id }

// KernelsID identifies the times that Factors.Prefill multiplies: the system whose kernels were measured, and a
// digest of what they add up to. It changes with the tables, with the server's choices of kernels, and with rules
// of this program.
func (o *Operators) KernelsID() string {
	h := &o.Host
	text, err := json.Marshal([]any{o.Tokens, o.Experts, o.Prefill, o.WindowPrefill, h.PiecesUS, h.EagerUS,
		h.ChunkFactor, h.ChunksEager, h.ExpertPiecesUS, h.EagerChunksUS})
	if err != nil {
		panic("latency: " + err.Error()) // they are numbers
	}
	return fmt.Sprintf("%s %.6x", o.System, sha256.Sum256(text))
}

// Check returns an error for the first impossible value.
func (f *Factors) Check() error {
	for _, q := range []namedValue{{"step_us", f.StepUS}, {"sequence_us", f.SequenceUS}, {"context_us", f.ContextUS},
		{"prefill", f.Prefill}} {
		if !(q.value >= 0) || q.value > maxCoefficient {
			return fmt.Errorf("factors.%s must be between 0 and %g, is %g", q.name, maxCoefficient, q.value)
		}
	}
	return nil
}

// adjusted is a model of kernels with factors.
type adjusted struct {
	Model
	Factors
}

// newAdjustedOperators builds the operators model, with factors if there are any.
func newAdjustedOperators(c Coefficients) (Model, error) {
	if c.Factors == nil {
		return newOperators(c)
	}
	if err := c.Factors.Check(); err != nil {
		return nil, err
	}
	m, err := newOperators(c)
	if err != nil {
		return nil, err
	}
	return &adjusted{m, *c.Factors}, nil
}

func (m *adjusted) Step(b Batch) des.Time {
	drafts := 0.0
	if b.Drafts > 0 { // by how much longer the kernels take with them
		with := m.Model.Step(b)
		b.Drafts = 0
		drafts = float64(max(0, with-m.Model.Step(b)))
	}
	us := drafts + m.StepUS + float64(m.SequenceUS*float64(b.Decode)) + float64(m.ContextUS*float64(b.Context))
	if b.Prefill > 0 {
		us += float64(m.Prefill * PrefillTime(m.Model, b))
	}
	return max(1, micros(us))
}

// PrefillTime is by how much a model's time of a batch exceeds that with a chunk of one token, in µs.
func PrefillTime(m Model, b Batch) float64 {
	small := Batch{Decode: b.Decode, Context: b.Context, LongestContext: b.LongestContext,
		WindowContext: b.WindowContext, Prefill: 1, Chunks: 1, Pairs: 1}
	if b.WindowPairs > 0 {
		small.WindowPairs = 1
	}
	return float64(max(0, m.Step(b)-m.Step(small)))
}

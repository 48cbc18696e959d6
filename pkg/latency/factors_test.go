package latency

import "testing"

// TestFactors: decode steps are the measured line, and prefill is a multiple of what the kernels take
// beyond a chunk of a single token.
func TestFactors(t *testing.T) {
	o := &Operators{Tokens: Curve{At: []int64{0, 1000}, US: []float64{5000, 15000}},
		Sequences: Curve{At: []int64{0, 100}, US: []float64{0, 0}}, Host: Host{ChunkFactor: 1}, Groups: 1, Ranks: 1}
	build := func(f *Factors) (Model, error) {
		return Models[2].Value(Coefficients{Alpha: []float64{0, 0, 0}, Operators: o, Factors: f})
	}
	m, err := build(&Factors{StepUS: 4000, SequenceUS: 20, ContextUS: 0.5, Prefill: 0.8})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		batch Batch
		want  int64
	}{
		{Batch{Decode: 10, Context: 1000}, 4700},                                    // 4000 + 10·20 + 1000·0.5
		{Batch{Prefill: 1, Chunks: 1, Pairs: 1}, 4000},                              // no more than one token
		{Batch{Decode: 10, Context: 1000, Prefill: 501, Chunks: 1, Pairs: 1}, 8700}, // + 0.8·500·10
	} {
		if got := int64(m.Step(c.batch)); got != c.want {
			t.Errorf("%+v takes %d µs, want %d", c.batch, got, c.want)
		}
	}
	if _, err := build(&Factors{Prefill: -1}); err == nil {
		t.Error("a negative factor is no error")
	}
}

// TestKernelsID: the id of kernels changes with the times that factors multiply, and with no others.
func TestKernelsID(t *testing.T) {
	o := Operators{System: "h100_sxm", Tokens: Curve{At: []int64{0, 1000}, US: []float64{5000, 15000}}}
	id := o.KernelsID()
	other := o
	other.Decode.US, other.Host.Captured, other.Host.StepUS = []float64{1}, 128, 50
	if have := other.KernelsID(); have != id {
		t.Errorf("with other decode attention and graphs: %s, was %s", have, id)
	}
	other.Prefill.PairUS = 0.001
	f := Factors{Kernels: id}
	if have := other.KernelsID(); have == id || f.IsOf(have) || !f.IsOf(id) || !(&Factors{}).IsOf(id) {
		t.Errorf("with other attention of chunks: %s, was %s", have, id)
	}
}

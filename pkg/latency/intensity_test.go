package latency

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"blis/pkg/model"
)

// TestIntensity: tinyModel takes 300 µs to read and 2 µs for the FLOPs of a token.
func TestIntensity(t *testing.T) {
	type change = func(*model.Work, *Machine)
	for _, c := range []struct {
		name   string
		change change
		batch  Batch
		want   float64
	}{
		{"decode sequences", func(*model.Work, *Machine) {}, Batch{Decode: 30, Context: 3000}, 60.0 / 300},
		{"a chunk and decode sequences", func(*model.Work, *Machine) {},
			Batch{Prefill: 45, Chunks: 1, Pairs: 1, Decode: 15}, 120.0 / 300},
		{"at most 1", func(*model.Work, *Machine) {}, Batch{Prefill: 1000, Chunks: 1, Pairs: 1}, 1},
		{"fractions of the peaks", func(_ *model.Work, g *Machine) {
			g.Efficiency.Compute, g.Efficiency.Memory = 0.5, 0.25
		}, Batch{Decode: 30}, 120.0 / 1200},
		{"tensor parallelism divides both", func(_ *model.Work, g *Machine) { g.TensorParallel = 2 },
			Batch{Decode: 30}, 60.0 / 300},
		{"data parallelism divides the tokens only", func(_ *model.Work, g *Machine) { g.DataParallel = 2 },
			Batch{Decode: 30}, 30.0 / 300},
		{"the head has a token for each sequence", func(w *model.Work, _ *Machine) {
			w.Head = model.Weights{Params: 10e6, Bytes: 100e6} // 20 µs a token, 100 µs
		}, Batch{Prefill: 9, Chunks: 1, Pairs: 1, Decode: 1}, (20.0 + 40) / 400},
		{"contexts are read", func(w *model.Work, _ *Machine) { w.KVBytes, w.DecodePairFLOPs = 4e6, 1e6 },
			Batch{Decode: 2, Context: 98}, (4.0 + 100) / (300 + 400)},
		{"so are those of windows", func(w *model.Work, _ *Machine) {
			w.WindowKVBytes, w.WindowPairFLOPs, w.Window, w.WindowKVHeads = 4e6, 1e6, 49, 1
		}, Batch{Decode: 2, Context: 500, WindowContext: 98}, (4.0 + 100) / (300 + 400)},
		{"a chunk computes its pairs and reads what came before", func(w *model.Work, g *Machine) {
			w.KVBytes, w.PairFLOPs, g.Efficiency.PriorContext = 2e6, 1e6, 0.1
		}, Batch{Prefill: 10, Chunks: 1, PriorContext: 90, Pairs: 100}, (20.0 + 100) / (300 + 200)},
		{"experts are read if a token activates them", func(w *model.Work, _ *Machine) {
			w.ExpertLayers, w.Experts, w.ExpertsPerToken = 1, 4, 2
			w.Expert = model.Weights{Params: 1e6, Bytes: 100e6} // 2 experts: 4 µs a token, 200 µs
		}, Batch{Decode: 1}, (2.0 + 4) / (300 + 200)},
		{"one token or the other activates 3 of 4", func(w *model.Work, _ *Machine) {
			w.ExpertLayers, w.Experts, w.ExpertsPerToken = 1, 4, 2
			w.Expert = model.Weights{Params: 1e6, Bytes: 100e6}
		}, Batch{Decode: 2}, (4.0 + 8) / (300 + 300)},
	} {
		r := Replica{Work: tinyModel(), Machine: unitMachine()}
		c.change(&r.Work, &r.Machine)
		x, err := NewIntensity(&r)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if have := x.Of(c.batch); math.Abs(have-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, have, c.want)
		}
	}
}

// TestIntensityIsAShare: more tokens in a chunk never make a step less compute-bound, and it stays between 0 and 1.
func TestIntensityIsAShare(t *testing.T) {
	x, err := NewIntensity(&Replica{Work: tinyModel(), Machine: unitMachine()})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		count := func(name string) int64 { return rapid.Int64Range(0, 1e5).Draw(t, name) }
		b := Batch{Prefill: 1 + count("prefill"), Chunks: 1, Decode: count("decode"), Context: count("context")}
		less := x.Of(b)
		b.Prefill += count("more")
		if more := x.Of(b); !(0 < less && less <= more && more <= 1) {
			t.Fatalf("%v, then %v", less, more)
		}
	})
}

func TestImpossibleIntensity(t *testing.T) {
	for name, r := range map[string]*Replica{"absent": nil, "empty": {},
		"no layers": {Machine: unitMachine()}} {
		if _, err := NewIntensity(r); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

package dist

import (
	"math"
	"math/rand/v2"
	"testing"
)

// firstNumbers returns the first numbers of a stream.
func firstNumbers(seed uint64, name string) [4]uint64 {
	r := NewStream(seed, name)
	return [4]uint64{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()}
}

func TestStreamsAreFunctionsOfSeedAndName(t *testing.T) {
	a := firstNumbers(7, "a")
	if again := firstNumbers(7, "a"); again != a {
		t.Errorf("the same stream made twice: %v and %v", a, again)
	}
	// Streams that differ in seed, name, or the boundary between them, are different.
	seen := map[[4]uint64]string{a: "7/a"}
	for _, s := range []struct {
		seed uint64
		name string
	}{{8, "a"}, {7, "b"}, {7, ""}, {7, "a\x00"}, {7 << 8, "a"}, {0, "\x07a"}} {
		if other, taken := seen[firstNumbers(s.seed, s.name)]; taken {
			t.Errorf("the stream %q of seed %d equals that of %s", s.name, s.seed, other)
		}
		seen[firstNumbers(s.seed, s.name)] = s.name
	}
}

// TestStateOfStream: SHA-256 of 07 00 00 00 00 00 00 00 61 begins with b88bc08204d47730 0b3067ec2b7a0d45.
func TestStateOfStream(t *testing.T) {
	if got := NewSource(7, "a"); *got != *rand.NewPCG(0x3077d40482c08bb8, 0x450d7a2bec67300b) {
		t.Errorf("%+v", got)
	}
}

// TestWeights: half of 2 is the second entry's, and so is all, though it is no share of an entry.
func TestWeights(t *testing.T) {
	w := Weights{0.5, 2}
	for p, want := range map[float64]int{0: 0, 0.24: 0, 0.25: 1, 0.5: 1, 1: 1} {
		if got := w.Index(p); got != want {
			t.Errorf("%v is of entry %d, want %d", p, got, want)
		}
	}
}

// TestStreamsDoNotShareState draws from another stream in between.
func TestStreamsDoNotShareState(t *testing.T) {
	alone := firstNumbers(7, "a")
	a, b := NewStream(7, "a"), NewStream(7, "b")
	for i, want := range alone {
		b.Float64()
		if got := a.Uint64(); got != want {
			t.Fatalf("draw %d is %d with draws from another stream, %d alone", i, got, want)
		}
	}
}

// TestStreamsAreIndependent: the correlation of n pairs of uniforms has standard deviation 1/√n.
func TestStreamsAreIndependent(t *testing.T) {
	const n = 100_000
	a, b := NewStream(1, "client/x/input"), NewStream(1, "client/x/output")
	sum := 0.0
	for range n {
		sum += (a.Float64() - 0.5) * (b.Float64() - 0.5)
	}
	if correlation := sum / n * 12; math.Abs(correlation) > 4/math.Sqrt(n) {
		t.Errorf("correlation %g", correlation)
	}
}

func TestMicros(t *testing.T) {
	for _, c := range []struct {
		us   float64
		want int64
	}{
		{0, 0}, {0.49, 0}, {0.5, 1}, {1.5, 2}, {2.5, 3}, {math.Nextafter(0.5, 0), 0},
		{1<<52 - 0.5, 1 << 52}, {1<<52 + 1, 1<<52 + 1}, {1 << 53, 1 << 53},
	} {
		if got, err := Micros(c.us); err != nil || got != c.want {
			t.Errorf("Micros(%v) = %d, %v; want %d", c.us, got, err, c.want)
		}
	}
	for _, bad := range []float64{-0.001, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1<<53 + 2} {
		if got, err := Micros(bad); err == nil {
			t.Errorf("Micros(%v) = %d without an error", bad, got)
		}
	}
}

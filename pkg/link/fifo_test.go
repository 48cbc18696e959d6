package link

import "testing"

// TestFIFO: a transfer begins when it is asked for, or when the one before it has ended. Its end is rounded up, and at
// least 1 µs after its start.
func TestFIFO(t *testing.T) {
	l := NewFIFO(Speed{LatencyUS: 50, GBPerS: 25})
	for _, c := range []struct {
		at    int64
		bytes float64
		want  Transfer
	}{
		{1640, 8388608, Transfer{1640, 1640, 2026}},
		{1700, 0, Transfer{1700, 2026, 2076}},
		{1800, 1, Transfer{1800, 2076, 2127}},
		{4800, 10485760, Transfer{4800, 4800, 5270}},
		{9000, 25e9, Transfer{9000, 9000, 1_009_050}},
	} {
		if have := l.Ask(c.at, c.bytes); have != c.want {
			t.Errorf("%g bytes at %d: %+v, want %+v", c.bytes, c.at, have, c.want)
		}
	}
	if us := (Speed{GBPerS: 1}).Time(1); us != 1 {
		t.Errorf("a byte takes %d µs", us)
	}
}

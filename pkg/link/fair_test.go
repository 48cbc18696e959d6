package link

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"blis/pkg/des"
)

// ask is a transfer of a test.
type ask struct {
	at       des.Time
	from, to int32
	bytes    int64
}

// ends runs the transfers of a test, in order of time, and returns their ends.
func ends(f *Fair, asks []ask) []des.Time {
	all, k := make([]des.Time, len(asks)), 0
	for k < len(asks) || f.Next() < math.MaxInt64 {
		if k < len(asks) && asks[k].at < f.Next() {
			f.Ask(asks[k].at, int32(k), asks[k].from, asks[k].to, float64(asks[k].bytes))
			k++
			continue
		}
		now := f.Next()
		for _, id := range f.Advance(now) {
			all[id] = now
		}
	}
	return all
}

// TestFairStories: 100 MB at 10 GB/s from 100 on have 79 MB left at 2200, when 40 MB from the same sender begin to
// move. Each then has half: these end at 2200 + 8000, and the first has 39 MB left, which take 3900.
func TestFairStories(t *testing.T) {
	for _, c := range []struct {
		fair *Fair
		asks []ask
		want []des.Time
	}{
		{NewFair(100, 10, 10, 1, 2), []ask{{0, 0, 0, 100e6}, {2100, 0, 1, 40e6}}, []des.Time{14100, 10200}},
		// A transfer alone: 205 µs and 12582.912 µs.
		{NewFair(205, 1, 1, 1, 1), []ask{{0, 0, 0, 6 * 2097152}}, []des.Time{12788}},
		// The receiver takes 4 of the sender's 10 GB/s, and the second transfer has 5, not 6.
		{NewFair(0, 10, 4, 1, 2), []ask{{0, 0, 0, 4000}, {0, 0, 1, 4000}}, []des.Time{1, 1}},
		{NewFair(0, 10, 8, 1, 2), []ask{{0, 0, 0, 50000}, {0, 0, 1, 50000}}, []des.Time{10, 10}},
		{NewFair(0, 1, 1, 1, 1), []ask{{7, 0, 0, 0}}, []des.Time{8}},
		// A sender and a receiver that come later share nothing.
		{NewFair(0, 1, 1, 0, 0), []ask{{0, 3, 2, 1000}}, []des.Time{1}},
	} {
		if have := ends(c.fair, c.asks); !slices.Equal(have, c.want) {
			t.Errorf("%v: end at %v, want %v", c.asks, have, c.want)
		}
	}
}

// TestAlone: a transfer alone has the lower of the two bandwidths, after its latency.
func TestAlone(t *testing.T) {
	for _, c := range []struct {
		out, in, bytes float64
		want           des.Time
	}{{10, 4, 4000, 101}, {4, 10, 4001, 102}, {1, 1, 0, 100}} {
		if got := NewFair(100, c.out, c.in, 1, 1).Alone(c.bytes); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestFairRandom compares random transfers with the same rule in exact fractions. The ends are equal, though the
// product counts in float64.
func TestFairRandom(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		latency, out, in := r.Int64N(300), 1+r.IntN(40), 1+r.IntN(40)
		var asks []ask
		at := des.Time(0)
		for range 30 {
			at += r.Int64N(2000)
			asks = append(asks, ask{at, r.Int32N(3), r.Int32N(3), r.Int64N(50) * 2097152})
		}
		have := ends(NewFair(latency, float64(out), float64(in), 3, 3), asks)
		if want := exactEnds(latency, int64(out), int64(in), asks); !slices.Equal(have, want) {
			t.Fatalf("seed %d: end at %v, want %v", seed, have, want)
		}
	}
}

// exactEnds moves the bytes of all transfers from one instant at which any starts or ends to the next.
func exactEnds(latency des.Time, out, in int64, asks []ask) []des.Time {
	all := make([]des.Time, len(asks))
	left := make([]*big.Rat, len(asks))
	for i, a := range asks {
		left[i] = big.NewRat(a.bytes, 1)
	}
	moves := func(i int, now des.Time) bool { return asks[i].at+latency <= now && all[i] == 0 }
	for now := des.Time(0); ; {
		rate := func(i int) *big.Rat {
			from, to := int64(0), int64(0)
			for k := range asks {
				if moves(k, now) && asks[k].from == asks[i].from {
					from++
				}
				if moves(k, now) && asks[k].to == asks[i].to {
					to++
				}
			}
			a, b := big.NewRat(1000*out, from), big.NewRat(1000*in, to)
			if a.Cmp(b) < 0 {
				return a
			}
			return b
		}
		next := des.Time(math.MaxInt64)
		end, rates := make([]des.Time, len(asks)), make([]*big.Rat, len(asks))
		for i, a := range asks {
			switch {
			case moves(i, now):
				rates[i] = rate(i)
				us := new(big.Rat).Quo(left[i], rates[i])
				whole := new(big.Int).Div(new(big.Int).Add(us.Num(), new(big.Int).Sub(us.Denom(), big.NewInt(1))),
					us.Denom())
				end[i] = max(a.at+1, now+whole.Int64())
				next = min(next, end[i])
			case all[i] == 0:
				next = min(next, a.at+latency)
			}
		}
		if next == math.MaxInt64 {
			return all
		}
		for i := range asks {
			if rates[i] != nil {
				left[i].Sub(left[i], new(big.Rat).Mul(rates[i], big.NewRat(next-now, 1)))
				if end[i] == next {
					all[i] = next
				}
			}
		}
		now = next
	}
}

// TestCancel: at 1 GB/s (1000 bytes a µs), transfers 1 and 2 of 10,000 bytes share the sender from 0 on. Without
// transfer 1 from 10 µs on, where 5,000 bytes of each are left, transfer 2 ends at 15 µs. Transfer 3 of another sender
// still waits for its latency when it is canceled.
func TestCancel(t *testing.T) {
	f := NewFair(0, 1, 100, 1, 1)
	f.Ask(0, 1, 0, 0, 10_000)
	f.Ask(0, 2, 0, 1, 10_000)
	if next := f.Next(); next != 20 {
		t.Errorf("both end at %d, want 20", next)
	}
	if got := f.Cancel(10, func(id int32) bool { return id != 2 }); !slices.Equal(got, []int32{1}) {
		t.Errorf("canceled %v, want 1", got)
	}
	if next := f.Next(); next != 15 {
		t.Errorf("the other one ends at %d, want 15", next)
	}
	if ended := f.Advance(15); !slices.Equal(ended, []int32{2}) {
		t.Errorf("%v ended, want 2", ended)
	}
	f = NewFair(7, 1, 1, 1, 1)
	f.Ask(0, 3, 0, 0, 1000)
	f.Ask(0, 4, 0, 0, 1000)
	f.Advance(7)
	f.Ask(7, 5, 4, 4, 2000) // begins at 14
	if got := f.Cancel(8, func(id int32) bool { return id != 3 }); !slices.Equal(got, []int32{4, 5}) {
		t.Errorf("canceled %v, want 4 and 5", got)
	}
	if next := f.Next(); next != 9 { // half of 1000 bytes at 7 to 8, and the rest alone
		t.Errorf("transfer 3 ends at %d, want 9", next)
	}
	if none := f.Cancel(8, func(int32) bool { return false }); none != nil || f.Next() != 9 {
		t.Errorf("canceled %v of none, next %d", none, f.Next())
	}
}

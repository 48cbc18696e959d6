package calibrate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestLinkIsRecovered: 200 µs and 50 GB/s, that is 50,000 bytes a µs, from transfers with errors of 2 % and one that
// took three times as long. The intervals contain the truth.
func TestLinkIsRecovered(t *testing.T) {
	d := rand.New(rand.NewPCG(1, 2))
	var pairs []linkPair
	for i := range 60 {
		bytes := math.Exp2(float64(16 + i%15))
		us := (200 + bytes/50_000) * (1 + 0.02*d.NormFloat64())
		if i == 17 {
			us *= 3
		}
		pairs = append(pairs, linkPair{bytes, us})
	}
	r, err := newLinkReport(pairs)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(r.LatencyUS-200) > 4 || math.Abs(r.GBPerS-50) > 1 || r.MedianErrorPercent > 3 || len(r.Warnings) > 0 {
		t.Errorf("fitted %+v", r)
	}
	if r.LatencyCI.Lo > 200 || r.LatencyCI.Hi < 200 || r.GBPerSCI.Lo > 50 || r.GBPerSCI.Hi < 50 {
		t.Errorf("the intervals do not contain 200 µs and 50 GB/s: %+v", r)
	}
}

// TestLinkOfTwoSizes: where two sizes take turns, both halves have both.
func TestLinkOfTwoSizes(t *testing.T) {
	var pairs []linkPair
	for i := range 20 {
		bytes := float64(1+63*(i%2)) * (1 << 20)
		pairs = append(pairs, linkPair{bytes, 200 + bytes/50_000})
	}
	r, err := newLinkReport(pairs)
	if err != nil || r.MedianErrorPercent > 0.001 || math.Abs(r.GBPerS-50) > 0.001 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestLinkErrors: too few transfers, times that fall with the bytes, and times in seconds instead of milliseconds.
func TestLinkErrors(t *testing.T) {
	var falling []linkPair
	for i := range 8 {
		falling = append(falling, linkPair{float64(1000 * (i + 1)), float64(1000 - 100*i)})
	}
	for _, pairs := range [][]linkPair{falling[:5], falling} {
		if r, err := newLinkReport(pairs); err == nil {
			t.Errorf("no error for %d transfers: %+v", len(pairs), r)
		}
	}
	for i := range falling {
		falling[i].us = falling[i].bytes * 1e-10
	}
	if r, err := newLinkReport(falling); err == nil || !strings.Contains(err.Error(), "GB/s fits") {
		t.Errorf("times in other units: %+v, %v", r, err)
	}
	alike := []linkPair{{100, 10}, {110, 11}, {120, 12}, {130, 13}, {140, 14}, {150, 15}}
	if r, err := newLinkReport(alike); err != nil || len(r.Warnings) != 1 {
		t.Errorf("sizes that are alike: %+v, %v", r, err)
	}
}

package stream

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestShortDecimals: a number that shortDecimal reads is the one that strconv reads, and it reads none that is no JSON.
func TestShortDecimals(t *testing.T) {
	d, read := rand.New(rand.NewPCG(1, 1)), 0
	texts := []string{"", "-", ".", "0", "-0", "-0.0", "00", "01", "0.", ".5", "-.5", "1.", "1.2.3", "1e5",
		"1.5E3", "0x1", "9007199254740993", "123456789012345", "0.12345678901234", "999999999999999",
		"1234567890123456", "1-2", "--1"}
	for range 200_000 {
		x := math.Exp(d.Float64()*40-20) * float64(1-2*d.IntN(2))
		texts = append(texts, strconv.FormatFloat(x, 'f', d.IntN(16), 64), fmt.Sprint(x))
	}
	for _, text := range texts {
		got, end := shortDecimal([]byte(text), 0)
		if end == 0 {
			continue
		}
		read++
		want, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Float64bits(got) != math.Float64bits(want) || numberEnd([]byte(text), 0) != end {
			t.Fatalf("%q: %v up to %d, want %v (%v)", text, got, end, want, err)
		}
	}
	if read < len(texts)/4 {
		t.Errorf("only %d of %d", read, len(texts))
	}
}

package stream

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestDecimals: a number that decimal reads is the one that strconv reads, and it reads none that is no JSON. Some are
// halfway between two numbers, or next to it.
func TestDecimals(t *testing.T) {
	d, read := rand.New(rand.NewPCG(1, 1)), 0
	texts := []string{"", "-", ".", "0", "-0", "-0.0", "00", "01", "0.", ".5", "-.5", "1.", "1.2.3", "1e5",
		"1.5E3", "0x1", "9007199254740993", "123456789012345", "0.12345678901234", "999999999999999",
		"1234567890123456", "1-2", "--1", "1234567890.1234567a", "0.00000000000000000", "0.0000000000000000001",
		"9999999999999999999", "99999999999999999999", "0.9999999999999999999", "18446744073709551615",
		"9007199254740993.0", "9007199254740992.999", "4503599627370497.5", "4503599627370496.5", "0.12345678x"}
	for range 200_000 {
		x := math.Exp(d.Float64()*40-20) * float64(1-2*d.IntN(2))
		texts = append(texts, strconv.FormatFloat(x, 'f', d.IntN(19), 64), fmt.Sprint(x))
		half := d.Uint64N(1<<54) | 1<<53 // of a unit in the last place
		texts = append(texts, fmt.Sprint(half), fmt.Sprintf("%d.%d", half>>1, 5*(half&1)),
			fmt.Sprintf("%d.%02d", half>>1&1, d.Uint64N(100)), fmt.Sprintf("0.%016d%d", d.Uint64N(1e16), d.IntN(1000)))
	}
	for _, text := range texts {
		got, end := decimal([]byte(text), 0)
		if end == 0 {
			continue
		}
		read++
		want, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Float64bits(got) != math.Float64bits(want) || numberEnd([]byte(text), 0) != end {
			t.Fatalf("%q: %v up to %d, want %v (%v)", text, got, end, want, err)
		}
	}
	if read < len(texts)/2 {
		t.Errorf("only %d of %d", read, len(texts))
	}
}

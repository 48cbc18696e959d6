package llmtext

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// The expected count is that of a tokenizer with the vocabularies cl100k and o200k, which
// agree on this text.
func TestTokensAreNotUnderestimated(t *testing.T) {
	const text = `[LOSS] mean ms of completed requests
missed 281: frontend 2.0 | queue 2198.3 | prefill 82.1 | decode 4417.2
met 1219: frontend 2.0 | queue 583.9 | prefill 94.2 | decode 6395.0
[BY CLASS]
class        offered   met  met_pct  of_misses_pct  ttft_p50_ms  ttft_p99_ms
interactive      759   525     69.2           83.3        723.7       4731.4
standard         741   694     93.7           16.7        700.1       4500.3
P1 stale_signal, routing weighted: 281 of 281 misses (100.0 %), 1075 of 1500 requests, lift 222.9
`
	const counted = 195
	if n := Tokens([]byte(text)); n < counted || n > counted*115/100 {
		t.Errorf("estimated %d tokens, counted %d", n, counted)
	}
	// A word of seven letters, four digits, a comma, spaces, a line feed: 2 + 2 + 1 + 1 + 1 and 4 %.
	if n := Tokens([]byte("queues 1234,   \n")); n != 8 {
		t.Errorf("estimated %d tokens", n)
	}
}

// A name never begins a line that reads as a heading or a section, nor ends it with a blank.
func TestNameIsPlain(t *testing.T) {
	for name, want := range map[string]string{"a": "a", "# a": "'# a'", " #": "' #'", "[LOSS]": "'[LOSS]'",
		"a ": "'a '", "": "", "token=x": "token =x", "a`b\n": `a'b\n`} {
		if got := Name(name); got != want {
			t.Errorf("Name(%q) is %q, want %q", name, got, want)
		}
	}
}

// TestLongNamesAreCut: to 48 characters with the mark, and what looks like a key to 12 of its own.
func TestLongNamesAreCut(t *testing.T) {
	words := strings.Repeat("ab-", 16)
	for name, want := range map[string]string{words: words, words + "c": words[:47] + CutMark,
		"id " + strings.Repeat("x", 32) + " end": "id xxxxxxxxxxxx~ end",
		strings.Repeat("x", 31):                  strings.Repeat("x", 31),
		words[:46] + "~ab":                       words[:46] + CutMark} {
		if got := Name(name); got != want {
			t.Errorf("Name(%q) is %q, want %q", name, got, want)
		}
	}
}

// TestNumbers: one decimal up to what rounds to 100.
func TestNumbers(t *testing.T) {
	for x, want := range map[float64]string{0: "0.0", 99.94: "99.9", 99.96: "100", 120.4: "120", -120.4: "-120"} {
		if got := Number(x); got != want {
			t.Errorf("%v is %s, want %s", x, got, want)
		}
	}
	if half, none := Percent(0.5), Percent(math.NaN()); half != "50.0 %" || none != "-" {
		t.Errorf("%s and %s", half, none)
	}
	for pieces, want := range map[int]int{0: 0, 1: 2, 25: 26, 26: 28} {
		if got := Tokens([]byte(strings.Repeat(",", pieces))); got != want {
			t.Errorf("%d pieces are %d tokens, want %d", pieces, got, want)
		}
	}
}

// TestSearchesByHand compares what needs no regular expression with what one finds, in random texts.
func TestSearchesByHand(t *testing.T) {
	piece := regexp.MustCompile(`[A-Za-z]{1,5}|[0-9]{1,3}| {2,}|[^A-Za-z0-9 ]`)
	parts := []string{"token", "Password", "TOKEN", "passworD", "to\u212aen", "d", "=", ":", " ", "  ", "abcdef",
		"1234", "[", "{", "@", "é", "\xff", "\n", strings.Repeat("x", 30)}
	r := rand.New(rand.NewPCG(1, 2))
	broken := 0
	for range 3000 {
		var text string
		for range r.IntN(12) {
			text += parts[r.IntN(len(parts))]
		}
		n := len(piece.FindAllString(text, -1))
		if got, want := Tokens([]byte(text)), n+(n+24)/25; got != want {
			t.Fatalf("%q has %d tokens, want %d", text, got, want)
		}
		got, want := BreakCredentials(text), credential.ReplaceAllString(text, "$1 $2")
		if got != want {
			t.Fatalf("%q became %q, want %q", text, got, want)
		}
		if got != text {
			broken++
		}
	}
	if broken < 100 {
		t.Errorf("%d texts had credentials", broken)
	}
}

// Package llmtext formats names and numbers for texts that a language model reads, and
// estimates the length of such texts in tokens.
package llmtext

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

const (
	// CutMark ends a name of which only the beginning is printed.
	CutMark = "~"

	maxNameLength = 48
)

// credential matches text that frameworks mistake for a credential and replace.
var credential = regexp.MustCompile(`(?i)(token|password)([=:])`)

// BreakCredentials inserts a space wherever text looks like a credential.
func BreakCredentials(text string) string { return credential.ReplaceAllString(text, "$1 $2") }

// longRun matches the beginning of what such filters mistake for a key.
var longRun = regexp.MustCompile(`[A-Za-z0-9]{32,}`)

// Name is s as one line of printable ASCII that no filter replaces; a long name is cut and
// ends with CutMark.
func Name(s string) string { return Short(s, maxNameLength) }

// NameOr is Name of s, or of fallback where s is empty.
func NameOr(s, fallback string) string { return Name(cmp.Or(s, fallback)) }

// Short is Name with at most n characters.
func Short(s string, n int) string {
	q := strconv.QuoteToASCII(s)
	q = strings.NewReplacer(`\"`, `"`, `\\`, `\`, "`", "'").Replace(q[1 : len(q)-1])
	q = BreakCredentials(q)
	q = longRun.ReplaceAllStringFunc(q, func(run string) string { return run[:12] + CutMark })
	if strings.HasPrefix(q, "#") || strings.HasPrefix(q, "[") || strings.TrimSpace(q) != q {
		q = "'" + q + "'" // else it could begin a heading or a section, or end a line with a blank
	}
	if len(q) > n {
		q = strings.TrimSuffix(q[:n-1], CutMark) + CutMark
	}
	return q
}

// Number is x with one decimal below 100 and as an integer above.
func Number(x float64) string {
	if math.Abs(x) < 99.95 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// Percent is a share from 0 to 1 in percent with one decimal, or - for NaN.
func Percent(share float64) string {
	if math.IsNaN(share) {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// piece matches what Tokens counts as one token.
var piece = regexp.MustCompile(`[A-Za-z]{1,5}|[0-9]{1,3}| {2,}|[^A-Za-z0-9 ]`)

// Tokens estimates how many tokens a language model makes of ASCII text. It approximates the
// vocabularies cl100k and o200k of OpenAI: one token each for up to five letters, three
// digits, a punctuation mark, a line feed or several spaces; a single space belongs to the
// token after it. It then adds 4 %. On 80 summary texts (20 runs, four strategies) the
// estimate was 0 to 14 % above either vocabulary; other models count differently. A real
// tokenizer would make the program a third larger.
func Tokens(text []byte) int {
	n := len(piece.FindAllIndex(text, -1))
	return n + (n+24)/25
}

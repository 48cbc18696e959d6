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
	"unicode/utf8"
)

const (
	// CutMark ends a name of which only the beginning is printed.
	CutMark = "~"

	maxNameLength = 48
)

// credential matches text that frameworks mistake for a credential and replace.
var credential = regexp.MustCompile(`(?i)(token|password)([=:])`)

// BreakCredentials inserts a space wherever text looks like a credential.
func BreakCredentials(text string) string {
	// Most texts have no = or : after an n or a d, and need no search.
	for i := 1; i < len(text); i++ {
		if c := text[i]; (c == '=' || c == ':') && (text[i-1]|' ' == 'n' || text[i-1]|' ' == 'd') {
			return credential.ReplaceAllString(text, "$1 $2")
		}
	}
	return text
}

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
	if len(q) >= 32 {
		q = longRun.ReplaceAllStringFunc(q, func(run string) string { return run[:12] + CutMark })
	}
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

// Tokens estimates how many tokens a language model makes of ASCII text. It approximates the
// vocabularies cl100k and o200k of OpenAI: one token each for up to five letters, three
// digits, a punctuation mark, a line feed or several spaces; a single space belongs to the
// token after it. It then adds 4 %. On 80 summary texts (20 runs, four strategies) the
// estimate was 0 to 14 % above either vocabulary; other models count differently. A real
// tokenizer would make the program a third larger.
func Tokens(text []byte) int {
	n := 0
	for i := 0; i < len(text); n++ {
		switch c := text[i]; {
		case isLetter(c):
			i += prefix(text[i:], 5, isLetter)
		case isDigit(c):
			i += prefix(text[i:], 3, isDigit)
		case c != ' ':
			_, size := utf8.DecodeRune(text[i:])
			i += size
		default:
			spaces := prefix(text[i:], len(text), func(c byte) bool { return c == ' ' })
			i += spaces
			if spaces == 1 {
				n-- // it belongs to the token after it
			}
		}
	}
	return n + (n+24)/25
}

func isLetter(c byte) bool { return 'a' <= c|' ' && c|' ' <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

// prefix is the number of bytes at the beginning of text that are of a class, at most limit.
func prefix(text []byte, limit int, of func(byte) bool) int {
	n := 0
	for n < min(limit, len(text)) && of(text[n]) {
		n++
	}
	return n
}

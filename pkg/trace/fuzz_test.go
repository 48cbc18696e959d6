package trace

import (
	"errors"
	"testing"

	"blis/pkg/stream"
)

// FuzzFormats: for any input, reading ends with a positioned error or with valid arrivals.
func FuzzFormats(f *testing.F) {
	for i, e := range Formats {
		f.Add(uint8(i), sample(f, e.Name))
	}
	f.Fuzz(func(t *testing.T, format uint8, text string) {
		e := Formats[int(format)%len(Formats)]
		list, _, err := readAll(e.Name, input(text), Options{})
		var located *stream.SyntaxError
		if err != nil && e.Name != "blis" && !errors.As(err, &located) { // package stream has its own fuzz tests
			t.Errorf("%v says not where", err)
		}
		for _, a := range list {
			if e.Value.Untimed && a.us != 0 {
				t.Errorf("%s: an arrival at %g", e.Name, a.us)
			}
			if !a.IsSession {
				checkPrompt(t, a.Request.Prompt, a.Request.InputTokens)
				continue
			}
			for i := range a.Session.Steps {
				checkPrompt(t, a.Session.AppendPrompt(nil, i), a.Session.Steps[i].InputTokens)
			}
		}
	})
}

// checkPrompt checks that the segments of a prompt do not exceed its length, if the length is
// valid.
func checkPrompt(t *testing.T, prompt []stream.Segment, tokens int64) {
	t.Helper()
	sum := int64(0)
	for _, s := range prompt {
		if s.Tokens < 1 || s.ID == "" {
			t.Errorf("a segment %q of %d tokens", s.ID, s.Tokens)
		}
		sum += s.Tokens
	}
	if sum > max(tokens, 0) {
		t.Errorf("%d tokens have names, the prompt has %d", sum, tokens)
	}
}

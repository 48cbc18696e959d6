package registry

import (
	"strings"
	"testing"
)

var table = Table[int]{{"round-robin", "in turn", 1}, {"random", "by chance", 2}}

func TestGet(t *testing.T) {
	if v, err := table.Get("policy", "random"); v != 2 || err != nil {
		t.Errorf("random is %d, %v", v, err)
	}
	_, err := table.Get("policy", "Rnadom")
	if want := `unknown policy "Rnadom"; did you mean "random"? (have round-robin, random)`; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err = table.Get("policy", "shortest-queue"); err == nil || strings.Contains(err.Error(), "mean") {
		t.Errorf("error %v, want one without a suggestion", err)
	}
}

// TestClosest: a likely typo, else the only name that continues the given one.
func TestClosest(t *testing.T) {
	have := []string{"ttft_ms", "prompt_tokens", "prompt_tokens_mean", "id"}
	for name, want := range map[string]string{"tftt_ms": "ttft_ms", "ttft": "ttft_ms", "tt": "", "prompt": "",
		"prompt_token": "prompt_tokens", "shortest-queue": "", "": ""} {
		if got := Closest(name, have); got != want {
			t.Errorf("closest to %q is %q, want %q", name, got, want)
		}
	}
}

// TestDistanceOfTypos: a third of the letters and one more may be wrong, wherever they are.
func TestDistanceOfTypos(t *testing.T) {
	for n := 1; n <= 12; n++ {
		have := []string{strings.Repeat("a", n)}
		for wrong := range n + 1 {
			right, other := strings.Repeat("a", n-wrong), strings.Repeat("b", wrong)
			for _, name := range []string{other + right, right + other} {
				if got, want := Closest(name, have) != "", wrong <= n/3+1; got != want {
					t.Errorf("%q is suggested for %q: %v", have[0], name, got)
				}
			}
		}
	}
	longest := strings.Repeat("a", maxName)
	for _, c := range []struct{ name, want string }{{longest, longest}, {longest + "a", ""}} {
		if got := Closest(c.name, []string{longest}); got != c.want {
			t.Errorf("of %d letters: %q", len(c.name), got)
		}
	}
}

func TestAppend(t *testing.T) {
	want := "routing      round-robin      in turn\nrouting      random           by chance\n"
	if got := string(table.Append(nil, "routing")); got != want {
		t.Errorf("list\n%swant\n%s", got, want)
	}
}

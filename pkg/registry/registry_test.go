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

func TestAppend(t *testing.T) {
	want := "routing      round-robin      in turn\nrouting      random           by chance\n"
	if got := string(table.Append(nil, "routing")); got != want {
		t.Errorf("list\n%swant\n%s", got, want)
	}
}

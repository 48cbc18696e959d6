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

func TestAppend(t *testing.T) {
	want := "routing      round-robin      in turn\nrouting      random           by chance\n"
	if got := string(table.Append(nil, "routing")); got != want {
		t.Errorf("list\n%swant\n%s", got, want)
	}
}

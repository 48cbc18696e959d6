package calibrate

import (
	"os"
	"path/filepath"
	"testing"

	"blis/pkg/hardware"
	"blis/pkg/recording"
)

// TestReadLink: each row of the table is a pair, in its order, in bytes and µs.
func TestReadLink(t *testing.T) {
	name := filepath.Join(t.TempDir(), "link.csv")
	if err := os.WriteFile(name, []byte("bytes,ms\n1000,0.5\n2000,0.75\n1,2\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	pairs, err := (&Options{Link: name}).readLink()
	if want := []linkPair{{1000, 500}, {2000, 750}, {1, 2000}}; err != nil || len(pairs) != 3 || pairs[0] != want[0] ||
		pairs[1] != want[1] || pairs[2] != want[2] {
		t.Errorf("%v, %v", pairs, err)
	}
}

// TestFittedRecordingsAreNotHeldOut: coefficients warn about a recording that they were fitted to: to all runs of it,
// or to one of those named.
func TestFittedRecordingsAreNotHeldOut(t *testing.T) {
	for _, c := range []struct {
		digest string
		runs   []string
		want   int
	}{{"a", nil, 1}, {"a", []string{"x"}, 1}, {"a", []string{"y"}, 0}, {"b", nil, 0}, {"b", []string{"x"}, 0}} {
		s := &setup{files: []*recording.Recording{{Path: "r", Digest: "a", Runs: []*recording.Run{{Name: "x"}, {}}}}}
		r := &report{setup: s, Set: &hardware.Set{Recordings: []hardware.Recording{{Digest: c.digest, Runs: c.runs}}}}
		if checkNotHeldOut(r); len(s.warnings) != c.want {
			t.Errorf("%s, %q: warnings %q, want %d", c.digest, c.runs, s.warnings, c.want)
		}
		r.fit.method = "fitted"
		if checkNotHeldOut(r); len(s.warnings) != c.want {
			t.Errorf("a fit warns about its own recordings")
		}
	}
}

// TestRecordedSettings: settings are those that all runs state, and ignored where they differ.
func TestRecordedSettings(t *testing.T) {
	run := func(settings ...string) *recording.Run { return &recording.Run{Settings: settings} }
	for _, c := range []struct {
		runs     []*recording.Run
		want     int
		warnings int
	}{{nil, 0, 0}, {[]*recording.Run{run("a=1", "b=2")}, 2, 0}, {[]*recording.Run{run("a=1"), run("a=1")}, 1, 0},
		{[]*recording.Run{run("a=1"), run("a=2")}, 0, 1}} {
		s := &setup{options: &Options{}, files: []*recording.Recording{{Runs: c.runs}}}
		if got := s.recordedSettings(); len(got) != c.want || len(s.warnings) != c.warnings {
			t.Errorf("settings %q, warnings %q, want %d and %d", got, s.warnings, c.want, c.warnings)
		}
	}
}

package calibrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/hardware"
	"blis/pkg/recording"
	"blis/pkg/stream"
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

// clusterFile writes a cluster file of a deployment main with two replicas.
func clusterFile(t *testing.T, gpu string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	text := "version: 1\ndeployments: [{id: main, model: meta-llama/Llama-3.1-8B, gpu: " + gpu + ", replicas: 2, " +
		"latency: {model: roofline}}]\n"
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestReplicasOfCluster: a recorded number of replicas replaces that of the file.
func TestReplicasOfCluster(t *testing.T) {
	s := &setup{options: &Options{Cluster: clusterFile(t, "H100")}, id: "main"}
	for replicas, want := range map[int]int{0: 2, 1: 1, 3: 3} {
		c, err := s.cluster(replicas)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Deployments[0].Replicas; got != want {
			t.Errorf("%d recorded: %d, want %d", replicas, got, want)
		}
	}
}

// TestKernelsOfServer: an H100 has kernels of the model, unless they are not wanted; an L4 has none, which is an error
// if they are.
func TestKernelsOfServer(t *testing.T) {
	for _, c := range []struct {
		gpu, latency string
		found        bool
		err          string
	}{{"H100", "auto", true, ""}, {"H100", "linear", false, ""}, {"L4", "auto", false, ""},
		{"L4", "operators", false, "--latency operators: "}} {
		s := &setup{options: &Options{Cluster: clusterFile(t, c.gpu), Latency: c.latency}, id: "main"}
		of, err := s.findKernels()
		if (of.kernels != nil) != c.found || (err != nil) != (c.err != "") ||
			err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%+v: kernels %v, error %v", c, of.kernels, err)
		}
	}
}

// TestSlopeWithKernels: a prior whose attention alone takes more than the kernels' time has no slope.
func TestSlopeWithKernels(t *testing.T) {
	s := &setup{options: &Options{Cluster: clusterFile(t, "H100"), Latency: "auto"}, id: "main"}
	of, err := s.findKernels()
	if err != nil {
		t.Fatal(err)
	}
	l := load{sequences: 10, context: 1000}
	if got := (coefficients{beta3: 1000}).withKernels(of, l, 100); got[beta2] != 0 {
		t.Errorf("beta[2] is %v, want 0", got[beta2])
	}
	if got := (coefficients{beta2: 1000}).withKernels(of, l, 100); got[beta2] <= 500 {
		t.Errorf("beta[2] is %v, want half of 1000 and half of the kernels'", got[beta2])
	}
}

// TestResiduals: a row for each held-out request, and a warning if there is none.
func TestResiduals(t *testing.T) {
	for _, selected := range []bool{true, false} {
		name, warned := filepath.Join(t.TempDir(), "r.csv"), 0
		file, err := stream.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		run := &replay{requests: []stream.Request{{ID: "a", ArrivalUS: 7, InputTokens: 3, OutputTokens: 2}},
			measured: []timing{{ttft: 10, e2e: 20}}}
		r := &report{setup: &setup{options: &Options{Warn: func(string) { warned++ }}}, holdouts: []holdout{{name: "h",
			run: run, simulated: []timing{{ttft: 11, e2e: 22}}, selected: []bool{selected}}}}
		if err := r.writeResiduals(file); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		has := strings.HasSuffix(string(text), "\nh,a,7,3,2,10,11,20,22\n")
		if has != selected || (warned == 0) != selected {
			t.Errorf("selected %v: %d warnings, %s", selected, warned, text)
		}
	}
}

// TestProvenance: the coefficients name the files of recordings without their folders, and the runs and requests of
// each.
func TestProvenance(t *testing.T) {
	one, other := &recording.Recording{Path: "some/folder/one.jsonl"}, &recording.Recording{Path: "two.csv"}
	s := &setup{deployment: &cluster.Deployment{}, files: []*recording.Recording{one, other}}
	for _, name := range []string{"x", ""} {
		s.replays = append(s.replays, &replay{file: one, run: name, engine: engine{replicas: 1},
			requests: make([]stream.Request, 3)})
	}
	set := (&report{setup: s}).set()
	if set.Source != "recordings one.jsonl, two.csv" || len(set.Recordings) != 2 ||
		set.Recordings[0].File != "one.jsonl" || set.Recordings[0].Requests != 6 ||
		len(set.Recordings[0].Runs) != 1 || set.Recordings[1].Requests != 0 {
		t.Errorf("%s: %+v", set.Source, set.Recordings)
	}
}

package gen

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"blis/pkg/strictyaml"
)

func TestParseTimes(t *testing.T) {
	for _, c := range []struct {
		text string
		want []float64
	}{
		{"0\n1.5\n\n1.5\n2e3\n", []float64{0, 1.5e6, 1.5e6, 2e9}},
		{"\ufeff1\r\n2\r\n", []float64{1e6, 2e6}},
		{"arrival_s\n0.25", []float64{250_000}},
		{"id,timestamp_ms,tokens\na,7,1\nb,8.5,2\n", []float64{7000, 8500}},
		{"arrival_us , x\n7,\n", []float64{7}},
	} {
		if got, err := parseTimes(strings.NewReader(c.text), "f"); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"", "f: holds no times"},
		{"arrival_s\n", "f: holds no times"},
		{"id,time\n", `f:1: must be a time in seconds or a header with a column arrival_s or timestamp_ms or ` +
			`arrival_us, is "id,time"`},
		{"arrival_s,arrival_us\n", "f:1: has two time columns"},
		{"1\nsoon\n", `f:2: must be a time, is "soon"`},
		{"1\nNaN\n", "f:2: a time must be between 0 and"},
		{"-1\n", "f:1: a time must be between 0 and"},
		{"id,arrival_s\na,1\nb\n", "f:3: has only 1 columns; the time is in column 2"},
		{"2\n1\n", "f:2: comes before the time above it"},
		{"1\n" + strings.Repeat("1", 1<<17), "f:2: is longer than 65536 bytes"},
	} {
		_, err := parseTimes(strings.NewReader(c.text), "f")
		var bad *strictyaml.Error
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v; want %s", c.text, err, c.want)
		}
	}
}

// A trace's arrivals are the times in its file, relative to the spec, whatever the rate; the
// workload ends with it.
func TestArrivalsOfTrace(t *testing.T) {
	const client = `arrival: {process: trace, file: times}, input_distribution: {type: constant, params: {value: ` +
		`9}}, output_distribution: {type: constant, params: {value: 1}}`
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("times", "0.5\n2\n2\n")
	warned := ""
	o := Options{Spec: write("spec.yaml", specText("", clientText("a", client))),
		Warn: func(msg string) { warned += msg }}
	_, list := requests(t, "", o)
	var at []int64
	for _, r := range list {
		at = append(at, int64(r.ArrivalUS))
	}
	if want := []int64{500_000, 2_000_000, 2_000_000}; !reflect.DeepEqual(at, want) || warned != "" {
		t.Errorf("arrivals at %v, want %v; warned %q", at, want, warned)
	}
	// The aggregate rate applies only to clients with a rate.
	o.Spec = write("two.yaml", specText("aggregate_rate: 10\nrequests: 100", clientText("a", client),
		clientText("b", "rate_fraction: 1, "+strings.Replace(client, "trace, file: times", "constant", 1))))
	if _, list = requests(t, "", o); len(list) != 100 || len(ofTenant(list, "a")) != 3 || warned != "" {
		t.Errorf("%d requests, %d of the trace; warned %q", len(list), len(ofTenant(list, "a")), warned)
	}
	// Bursts have no end of their own.
	const bursty = client + ", behavior: {type: bursty, burst: {burst_size: {type: constant, params: {value: 4}}}}"
	o.Spec = write("bursty.yaml", specText("horizon: 2000000000", clientText("a", bursty)))
	if _, list = requests(t, "", o); len(list) < 40 {
		t.Errorf("%d requests with bursts", len(list))
	}
	o.Spec = write("bursty.yaml", specText("", clientText("a", bursty)))
	if _, err := generate("", o); err == nil || !strings.Contains(err.Error(), "otherwise the workload has no end") {
		t.Error(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"file: times", "file: tims", "spec.yaml:6:77: clients[0].arrival.file: "},
		{", file: times", "", "clients[0].arrival.file is not in the file: must be given for trace"},
		{"times}", "times}, load_profile: {type: constant, segments: [{multiplier: 2}]}",
			"clients[0].load_profile: cannot be combined with arrivals from a trace"},
		{"times}", "times}, behavior: {type: bursty}",
			"clients[0].behavior.burst.burst_size is not in the file: must be given with arrivals from a trace"},
		{"times}", "times}, behavior: {type: abusive}",
			"clients[0].behavior: rapid_fire cannot change arrivals from a trace"},
		{"trace, file", "constant, file", "clients[0].arrival.file: is not a parameter of constant, only of trace"},
	} {
		o.Spec = write("spec.yaml", specText("aggregate_rate: 1\nrequests: 1",
			clientText("a", "rate_fraction: 1, "+strings.Replace(client, c.old, c.new, 1))))
		if _, err := generate("", o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.new, err, c.want)
		}
	}
}

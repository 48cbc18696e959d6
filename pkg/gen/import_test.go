package gen

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// arrivals runs o, which must succeed, and returns requests and sessions.
func arrivals(t *testing.T, in string, o Options) (list []stream.Arrival) {
	t.Helper()
	text, err := generate(in, o)
	if err != nil {
		t.Fatal(err)
	}
	r := stream.NewReader(strings.NewReader(text))
	for r.Next() {
		if r.Kind() == stream.KindHeader || r.Kind() == stream.KindEnd {
			continue
		}
		var a stream.Arrival
		if err := r.Arrival(&a); err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// file writes a file and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	earlyText = "arrival_s,input_tokens,output_tokens\n0,10,1\n2,20,2\n4,30,3\n"
	hashText  = `{"timestamp": 2000, "input_length": 1024, "output_length": 4, "hash_ids": [1, 2]}` + "\n" +
		`{"timestamp": 3000, "input_length": 600, "output_length": 5, "hash_ids": [1, 3]}` + "\n"
)

// Several inputs are merged by time, with ties in the order of the flags, and their ids stay
// distinct.
func TestMergedInputs(t *testing.T) {
	a, b := file(t, "a.csv", earlyText), file(t, "b.jsonl", hashText)
	o := Options{Import: []Import{{"csv", a}, {"mooncake", b}, {"mooncake", b}}}
	var got []string
	names := map[string]int{}
	for _, x := range arrivals(t, "", o) {
		got = append(got, fmt.Sprintf("%s@%d", x.Request.ID, x.Request.ArrivalUS/1000))
		for _, s := range x.Request.Prompt {
			names[s.ID]++
		}
	}
	want := []string{"1:req-000000@0", "1:req-000001@2000", "2:req-000000@2000", "3:req-000000@2000",
		"2:req-000001@3000", "3:req-000001@3000", "1:req-000002@4000"}
	if !slices.Equal(got, want) {
		t.Errorf("merged: %v, want %v", got, want)
	}
	if want := map[string]int{"2:1": 2, "2:2": 1, "2:3": 1, "3:1": 2, "3:2": 1, "3:3": 1}; !reflect.DeepEqual(names,
		want) {
		t.Errorf("segments %v, want %v", names, want)
	}
	// One scale for all: 7 arrivals in 4 s become 3 per second in 2 s.
	o.Rate = 3
	list := arrivals(t, "", o)
	if first, last := list[0].Request.ArrivalUS, list[6].Request.ArrivalUS; first != 0 || last != 2_000_000 ||
		list[4].Request.ArrivalUS != 1_500_000 {
		t.Errorf("at 3 a second from %d to %d", first, last)
	}
}

// TestRecordingsWithoutArrivalTimes: --rate spaces their requests evenly; without it they are an error.
func TestRecordingsWithoutArrivalTimes(t *testing.T) {
	text := `{"input_lens": [7, 8, 9], "output_lens": [2, 2, 2], "ttfts": [0.1, 0.1, 0.1], ` +
		`"itls": [[0.05], [0.05], [0.05]]}`
	o := Options{Import: []Import{{"vllm-bench", file(t, "a.json", text)}}}
	if _, err := generate("", o); err == nil || !strings.Contains(err.Error(), "has no arrival times; --rate R") {
		t.Errorf("without --rate: error %v", err)
	}
	o.Rate = 4
	if list := arrivals(t, "", o); len(list) != 3 || list[2].Request.ArrivalUS-list[1].Request.ArrivalUS != 250_000 {
		t.Errorf("at 4 a second: %v", list)
	}
}

// TestSharedPrefixIsForRecordings: --shared-prefix is an error for other traces.
func TestSharedPrefixIsForRecordings(t *testing.T) {
	for format, ok := range map[string]bool{"vllm-bench": true, "mooncake": false} {
		o := Options{Import: []Import{{format, "x"}}, SharedPrefix: 100}
		if err := o.validateImports(); (err == nil) != ok {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// An error in one input comes after all earlier arrivals of all inputs.
func TestErrorInMergedInputs(t *testing.T) {
	a, b := file(t, "a.csv", earlyText), file(t, "b.csv", "arrival_s,input_tokens,output_tokens\n1,1,1\n3,x,1\n")
	text, err := generate("", Options{Import: []Import{{"csv", a}, {"csv", b}}})
	if err == nil || !strings.Contains(err.Error(), `b.csv:3: input_tokens must be an integer, is "x"`) {
		t.Errorf("ends with %v", err)
	}
	if n := strings.Count(text, `"request"`); n != 2 {
		t.Errorf("%d requests before it:\n%s", n, text)
	}
}

// --repeat starts the trace again one mean gap after its last arrival, with new ids and the same
// prompts.
func TestRepeat(t *testing.T) {
	o := Options{Import: []Import{{"mooncake", "-"}}, Repeat: 3}
	list := arrivals(t, hashText, o)
	var got []string
	for i, x := range list {
		got = append(got, fmt.Sprintf("%s@%d", x.Request.ID, x.Request.ArrivalUS/1000))
		if !reflect.DeepEqual(x.Request.Prompt, list[i%2].Request.Prompt) {
			t.Errorf("%s has the prompt %v", x.Request.ID, x.Request.Prompt)
		}
	}
	if want := []string{"req-000000@2000", "req-000001@3000", "req-000000~2@4000", "req-000001~2@5000",
		"req-000000~3@6000", "req-000001~3@7000"}; !slices.Equal(got, want) {
		t.Errorf("three times: %v, want %v", got, want)
	}
	// The rate applies across passes: gaps of 1/4 s throughout.
	o.Rate = 4
	for i, x := range arrivals(t, hashText, o) {
		if want := stream.Micros(500_000 + 250_000*i); x.Request.ArrivalUS != want {
			t.Errorf("arrival %d at %d, want %d", i, x.Request.ArrivalUS, want)
		}
	}
	// The limit applies across passes.
	if o.Limit = 5; len(arrivals(t, hashText, o)) != 5 {
		t.Error("the limit does not apply across passes")
	}
	if _, err := generate(earlyText[:44], Options{Import: []Import{{"csv", "-"}}, Repeat: 2}); err == nil ||
		!strings.Contains(err.Error(), "--repeat needs arrivals at two or more different times") {
		t.Errorf("one arrival is repeated: %v", err)
	}
}

// Segments generated in a pass are named after it, so later turns of the pass find them; other
// segments are the same in all passes.
func TestRepeatOfSessions(t *testing.T) {
	const text = `{"kind":"request","id":"r","arrival_us":0,"input_tokens":4,"output_tokens":2,` +
		`"prompt":[{"id":"p","tokens":4}],"session":"c","deadline_us":7}` + "\n" +
		`{"kind":"session","id":"s","arrival_us":10,"until_us":30,"steps":[` +
		`{"id":"1","input_tokens":4,"output_tokens":2,"prompt":[{"id":"p","tokens":4}]},` +
		`{"id":"2","after":[0],"input_tokens":9,"output_tokens":1,"extends":0,` +
		`"prompt":[{"id":"s/1.out","tokens":2}]}]}` + "\n" +
		`{"kind":"request","id":"q","arrival_us":20,"input_tokens":6,"output_tokens":2,` +
		`"prompt":[{"id":"p","tokens":4},{"id":"r.out","tokens":2}]}` + "\n"
	list := arrivals(t, text, Options{Import: []Import{{"blis", "-"}}, Repeat: 2, TimeScale: 2})
	if len(list) != 6 {
		t.Fatalf("%d arrivals", len(list))
	}
	r, s, q := list[3].Request, list[4].Session, list[5].Request
	if r.ID != "r~2" || r.Session != "c~2" || r.ArrivalUS != 60 || r.DeadlineUS != 67 {
		t.Errorf("the request is %+v", r)
	}
	if s.ID != "s~2" || s.ArrivalUS != 80 || s.UntilUS != 100 || s.Steps[1].Prompt[0].ID != "s~2/1.out" ||
		s.Steps[0].Prompt[0].ID != "p" {
		t.Errorf("the session is %+v", s)
	}
	if q.Prompt[0].ID != "p" || q.Prompt[1].ID != "r~2.out" {
		t.Errorf("the second request has the prompt %v", q.Prompt)
	}
	if first := list[1].Session; first.ID != "s" || first.ArrivalUS != 20 || first.UntilUS != 40 ||
		first.Steps[1].Prompt[0].ID != "s/1.out" {
		t.Errorf("the first session is %+v", first)
	}
}

// A sample depends on seed and id: a larger one contains the smaller one. Its size is within four
// standard deviations, √(np(1−p)) each.
func TestSample(t *testing.T) {
	var b strings.Builder
	b.WriteString("arrival_s,input_tokens,output_tokens\n")
	const n = 4000
	for i := range n {
		fmt.Fprintf(&b, "%d,1,1\n", i)
	}
	ids := func(p Share, seed uint64) (ids []string) {
		for _, x := range arrivals(t, b.String(), Options{Import: []Import{{"csv", "-"}}, Sample: p, Seed: &seed}) {
			ids = append(ids, x.Request.ID)
		}
		return ids
	}
	few, many := ids(0.3, 1), ids(0.6, 1)
	for _, p := range []struct {
		share float64
		ids   []string
	}{{0.3, few}, {0.6, many}} {
		if math.Abs(float64(len(p.ids))-n*p.share) > 4*math.Sqrt(n*p.share*(1-p.share)) {
			t.Errorf("%d of %d with probability %g", len(p.ids), n, p.share)
		}
	}
	for _, id := range few {
		if _, ok := slices.BinarySearch(many, id); !ok {
			t.Errorf("%s is in the smaller sample only", id)
		}
	}
	if slices.Equal(few, ids(0.3, 2)) {
		t.Error("the seed has no effect")
	}
	if len(ids(1, 1)) != n {
		t.Error("a sample with probability 1 drops some")
	}
}

const sessionsText = `
{"id": "a", "block_size": 4, "requests": [{"t": 0, "type": "n", "in": 4, "out": 3, "hash_ids": [1], "api_time": 1}]}
{"id": "b", "block_size": 4, "requests": [{"t": 0, "type": "n", "in": 40, "out": 3, "hash_ids": [1], "api_time": 1}]}
{"id": "c", "block_size": 4, "requests": [{"t": 0, "type": "n", "in": 5, "out": 3, "hash_ids": [1], "api_time": 1}]}
`

// Kept sessions without arrival times are spaced evenly by the rate. Without a rate all are at 0,
// with a warning.
func TestUntimedSessions(t *testing.T) {
	var warnings []string
	o := Options{Import: []Import{{"weka", "-"}}, Warn: func(w string) { warnings = append(warnings, w) }}
	for _, x := range arrivals(t, sessionsText, o) {
		if x.Session.ArrivalUS != 0 {
			t.Errorf("%s arrives at %d", x.Session.ID, x.Session.ArrivalUS)
		}
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "its 3 sessions all arrive at 0; --rate R") {
		t.Errorf("warnings %q", warnings)
	}
	o = Options{Import: []Import{{"weka", "-"}}, Rate: 0.5, Repeat: 2, Warn: func(w string) { t.Error(w) }}
	if err := o.Where.UnmarshalText([]byte("input_tokens < 10")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range arrivals(t, sessionsText, o) {
		got = append(got, fmt.Sprintf("%s@%d", x.Session.ID, x.Session.ArrivalUS/1e6))
	}
	if want := []string{"a@0", "c@2", "a~2@4", "c~2@6"}; !slices.Equal(got, want) {
		t.Errorf("spaced: %v, want %v", got, want)
	}
}

// Importing a BLIS workload changes nothing, including its SLO classes.
func TestImportOfBLISWorkload(t *testing.T) {
	want, err := generate("", Options{Scenario: "rag", Requests: 200})
	if err != nil {
		t.Fatal(err)
	}
	got, err := generate(want, Options{Import: []Import{{"blis", "-"}}})
	if err != nil {
		t.Fatal(err)
	}
	a, wantList := decode(t, want)
	b, gotList := decode(t, got)
	if !reflect.DeepEqual(wantList, gotList) || !reflect.DeepEqual(a.SLOClasses, b.SLOClasses) ||
		len(a.SLOClasses) == 0 {
		t.Errorf("%d requests became %d, classes %v became %v", len(wantList), len(gotList), a.SLOClasses, b.SLOClasses)
	}
	// Workloads whose classes have the same name but different targets cannot be merged.
	other := strings.Replace(want, `"ttft_ms":`, `"ttft_ms":9`, 1)
	other = other[:strings.Index(other, `{"kind":"end"`)]
	_, err = generate("", Options{Import: []Import{{"blis", file(t, "a.jsonl", want)},
		{"blis", file(t, "b.jsonl", other)}}})
	if err == nil || !strings.Contains(err.Error(), "differs from the class of that name in an earlier input") {
		t.Errorf("merging ends with %v", err)
	}
}

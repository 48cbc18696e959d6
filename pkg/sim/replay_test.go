package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
	"blis/pkg/stream"
)

// replayOptions vary the options that a header must contain.
func replayOptions(i uint64) Options {
	o := Options{Trace: stream.TraceLevels[i%3], Seed: i, ITL: i%2 == 0, Plain: i%4 == 0, Version: stream.Version}
	jitterSeed := i + 7
	if i%5 == 0 {
		o.JitterSeed = &jitterSeed
	}
	if i%7 == 0 {
		o.Horizon = &Horizon{Time: 3000}
	}
	counterfactual := []string{"3", "exact:2", "exact:1:all", "", "dec-000000"}[i%5]
	if counterfactual != "" && o.Trace != stream.TraceLevels[0] {
		must(o.Counterfactual.UnmarshalText([]byte(counterfactual)))
		if o.Counterfactual.exact() && i%2 == 0 {
			o.CounterfactualHorizon = &Horizon{Time: 500}
		}
	}
	if i%11 == 3 {
		o.Clairvoyant = stream.ClairvoyantGoals[i%2]
	}
	return o
}

// runOf makes a run with every kind of state and returns it with its workload.
func runOf(t *testing.T, i uint64, o Options) (run, workload []byte) {
	t.Helper()
	c, _, _ := forkCase(t, i)
	_, requests := reference.RandomSessions(i)
	workload = workloadOf(requests)
	var out bytes.Buffer
	err := runLoaded(context.Background(), c, bytes.NewReader(workload), &out, o)
	if err != nil {
		t.Fatalf("run %d: %v", i, err)
	}
	return out.Bytes(), workload
}

// replayOf replays a run and returns the message.
func replayOf(t *testing.T, run, workload []byte) (string, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "run")
	must(os.WriteFile(name, run, 0o666))
	var out bytes.Buffer
	err := Run(context.Background(), bytes.NewReader(workload), &out, Options{Replay: name, Version: stream.Version,
		Trace: "decisions"})
	return strings.ReplaceAll(out.String(), name, "run"), err
}

// TestReplay: the header of a run contains everything that the run depends on.
func TestReplay(t *testing.T) {
	kinds := map[string]bool{}
	for i := uint64(0); i < 120 || i < 1000 && !kinds["anomaly"]; i++ {
		run, workload := runOf(t, i, replayOptions(i))
		message, err := replayOf(t, run, workload)
		if err != nil || !strings.HasPrefix(message, "run: the replay is identical: ") {
			t.Fatalf("run %d, %+v: %q, %v", i, replayOptions(i), message, err)
		}
		for _, line := range bytes.Split(unpack(t, run), []byte("\n")) {
			var record struct{ Kind string }
			if json.Unmarshal(line, &record) == nil {
				kinds[record.Kind] = true
			}
		}
	}
	for _, kind := range []string{"decision", "regret", "step", "outcome", "session_outcome", "preemption", "anomaly",
		"metrics", "end"} {
		if !kinds[kind] {
			t.Errorf("no run had a record of kind %s", kind)
		}
	}
}

// TestReplayNamesTheDifference: one changed character in a value of any field of any kind of record
// is reported with line and field.
func TestReplayNamesTheDifference(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	found := map[string]bool{}
	for _, i := range []uint64{2, 5, 11, 14} { // at trace level full
		o := replayOptions(i)
		o.Plain = true
		run, workload := runOf(t, i, o)
		lines := bytes.SplitAfter(run, []byte("\n"))
		tried := map[string]bool{}
		for n, line := range lines {
			for _, m := range recordFields(line) {
				var record struct{ Kind string }
				must(json.Unmarshal(line, &record))
				field, other := record.Kind+"."+m.name, changeOne(draw, m)
				if n == 0 || other == nil || tried[field] {
					continue
				}
				tried[field], found[field] = true, true
				changed := slices.Clone(lines)
				changed[n] = bytes.Replace(line, m.text(), other, 1)
				_, err := replayOf(t, bytes.Join(changed, nil), workload)
				at := fmt.Sprintf("run:%d: ", n+1)
				if err == nil || !strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), m.name) ||
					!strings.Contains(err.Error(), " in the run and ") {
					t.Errorf("%s.%s changed from %s to %s: error %v, want %q and the field", record.Kind, m.name,
						m.text(), other, err, at)
				}
				if err != nil && !strings.Contains(err.Error(), "digest") && record.Kind != "end" {
					t.Errorf("%v does not say that the run was changed", err)
				}
			}
		}
	}
	if len(found) < 80 {
		t.Errorf("only %d fields were changed", len(found))
	}
}

// recordFields returns the fields of a record.
func recordFields(line []byte) []jsonField {
	_, fields := parseFields(line)
	return fields
}

// text is the field as it is in its line.
func (m *jsonField) text() []byte { return append([]byte(`"`+m.name+`":`), m.value...) }

// changeOne returns the text of m with one letter or digit of its value changed, nil if there is
// none to change.
func changeOne(draw *rand.Rand, m jsonField) []byte {
	text := m.text()
	from := len(text) - len(m.value)
	switch string(m.value) {
	case "true":
		return append(text[:from], "false"...)
	case "false":
		return append(text[:from], "true"...)
	}
	var places []int
	for at := from; at < len(text); at++ {
		c := text[at]
		if c >= '1' && c <= '8' || c == '0' && len(m.value) == 1 || c >= 'a' && c < 'z' && m.value[0] == '"' {
			places = append(places, at)
		}
	}
	if places == nil {
		return nil
	}
	text[places[draw.IntN(len(places))]]++
	return text
}

// TestModifiedHeaderFailsReplay: any changed character of a header is detected.
func TestModifiedHeaderFailsReplay(t *testing.T) {
	o := replayOptions(35)
	o.Plain = true
	run, workload := runOf(t, 35, o)
	end := bytes.IndexByte(run, '\n')
	tried := 0
	for at := range end {
		changed := slices.Clone(run)
		switch c := run[at]; {
		case c >= '0' && c < '9':
			changed[at]++
		case c >= 'a' && c < 'z' && at%5 == 0:
			changed[at]++
		default:
			continue
		}
		tried++
		if _, err := replayOf(t, changed, workload); err == nil {
			t.Errorf("the replay is the same with %s…", changed[max(0, at-40):at+1])
		} else if !strings.Contains(err.Error(), "run:") {
			t.Errorf("%s…: %v", changed[max(0, at-40):at+1], err)
		}
	}
	if tried < 200 {
		t.Errorf("only %d changes were tried", tried)
	}
}

// Messages for records without an id: metrics, which list replicas, and a configuration that does
// not match its digest.
func TestReplayDescribesRecordsWithoutID(t *testing.T) {
	o := replayOptions(35)
	o.Plain = true
	run, workload := runOf(t, 35, o)
	for _, c := range []struct{ pattern, new, want string }{
		{`"requests":{"offered":`, `"requests":{"offered":7`, `: metrics: requests.offered is 7\d+ in the run and`},
		{`"shadow_blocks":\d`, `"shadow_blocks":7`,
			`run:1: header: run.config_digest is "[0-9a-f]{64}", ` +
				`but run.config has the digest "[0-9a-f]{64}": one was modified`},
	} {
		at := regexp.MustCompile(c.pattern).FindIndex(run)
		if at == nil {
			t.Fatalf("the run has no %s", c.pattern)
		}
		changed := slices.Concat(run[:at[0]], []byte(c.new), run[at[1]:])
		_, err := replayOf(t, changed, workload)
		if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%s: error %v, want %s", c.new, err, c.want)
		}
	}
}

// TestWhatIf: a what-if run equals a run with the same settings except for its parent, and can be
// replayed.
func TestWhatIf(t *testing.T) {
	run, workload := runOf(t, 6, Options{Trace: "decisions", Seed: 3, Version: stream.Version, Plain: true})
	name := filepath.Join(t.TempDir(), "run")
	must(os.WriteFile(name, run, 0o666))
	const set = "routing.type=random"
	var whatIf, direct bytes.Buffer
	must(Run(context.Background(), bytes.NewReader(workload), &whatIf, Options{Replay: name, Set: []string{set},
		Version: stream.Version, Plain: true}))
	p, err := openOriginal(name)
	must(err)
	defer p.close()
	text, err := json.Marshal(p.header.Run.Config)
	must(err)
	c, err := cluster.Parse("c", text, cluster.Options{Overrides: []string{set}})
	must(err)
	must(runLoaded(context.Background(), c, bytes.NewReader(workload), &direct, Options{Trace: "decisions", Seed: 3,
		Version: stream.Version, Plain: true}))
	child := bytes.SplitN(whatIf.Bytes(), []byte("\n"), 2)
	same := bytes.SplitN(direct.Bytes(), []byte("\n"), 2)
	parent := fmt.Sprintf(`"parent":{"config_digest":%q,"policy":%q},`, p.header.Run.ConfigDigest,
		p.header.Run.Key.Policy)
	if without := bytes.Replace(child[0], []byte(parent), nil, 1); !bytes.Equal(without, same[0]) ||
		bytes.Equal(without, child[0]) {
		t.Errorf("the header is\n%s\nand should have %s", child[0], parent)
	}
	records := func(lines []byte) string { return string(lines[:bytes.LastIndex(lines, []byte(`{"kind":"end"`))]) }
	if records(child[1]) != records(same[1]) {
		t.Error("the records are not those of the same settings")
	}
	if message, err := replayOf(t, whatIf.Bytes(), workload); err != nil {
		t.Errorf("its replay: %s%v", message, err)
	}
}

func TestFirstDifference(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{`{"a":1}`, `{"a":1}`, ""},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, ""},
		{`{"a": 1}`, `{"a":1}`, ""},
		{`{"a":1}`, `{"a":2}`, "a is 1 in the run and 2 in the replay"},
		{`{"a":1}`, `{"a":1,"b":"x"}`, `b is absent in the run and "x" in the replay`},
		{`{"a":1,"b":null}`, `{"a":1}`, "b is null in the run and absent in the replay"},
		{`{"a":{"b":[{"c":1},{"c":2}]}}`, `{"a":{"b":[{"c":1},{"c":3}]}}`,
			"a.b[1].c is 2 in the run and 3 in the replay"},
		{`{"a":[1,2,3]}`, `{"a":[1,2]}`, "a[2] is 3 in the run and absent in the replay"},
		{`{"a":[]}`, `{"a":{}}`, "a is [] in the run and {} in the replay"},
		{`{"a":1.0}`, `{"a":1}`, "a is 1.0 in the run and 1 in the replay"},
		{`{"a":"` + strings.Repeat("é", 100) + `"}`, `{"a":1}`, `a is "` + strings.Repeat("é", 79) +
			"… in the run and 1 in the replay"},
	} {
		if got := firstDifference([]byte(c.was), []byte(c.is)); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.was, c.is, got, c.want)
		}
	}
}

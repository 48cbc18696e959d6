package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// drawSession draws a valid session.
func drawSession(t *rapid.T) Session {
	text := rapid.StringMatching(`[ -~é\\"]{0,6}`)
	count := rapid.Int64Range(0, 40)
	s := Session{Kind: KindSession, ID: "s" + text.Draw(t, "id"), ArrivalUS: Micros(count.Draw(t, "arrival")),
		Tenant: text.Draw(t, "tenant"), SLOClass: text.Draw(t, "class"), Model: text.Draw(t, "model"),
		Adapter:  text.Draw(t, "adapter"),
		Workflow: text.Draw(t, "workflow"), UntilUS: Micros(count.Draw(t, "until") - 1),
		Persistent: rapid.Bool().Draw(t, "persistent")}
	n := rapid.IntRange(1, 6).Draw(t, "steps")
	for i := range n {
		step := SessionStep{ID: fmt.Sprint(i, text.Draw(t, "step id")), Step: text.Draw(t, "step"),
			Iteration: count.Draw(t, "iteration"), DelayUS: count.Draw(t, "delay"),
			OutputTokens: 1 + count.Draw(t, "output"), Extends: NoIndex}
		for at := range i {
			if rapid.Bool().Draw(t, "after") {
				step.After = append(step.After, Index(at))
			}
		}
		if rapid.Bool().Draw(t, "tool") {
			step.Tool, step.LatencyUS = "t"+text.Draw(t, "tool"), count.Draw(t, "latency")
		} else {
			drawPrompt(t, &s, &step, count)
		}
		s.Steps = append(s.Steps, step)
	}
	return s
}

func drawPrompt(t *rapid.T, s *Session, step *SessionStep, count *rapid.Generator[int64]) {
	for at := range s.Steps {
		if s.Steps[at].Tool == "" && rapid.Bool().Draw(t, "extends") {
			step.Extends = Index(at)
		}
	}
	if !step.Extends.IsZero() {
		if identified := sumTokens(s.AppendPrompt(nil, int(step.Extends))); identified > 0 {
			step.KeepTokens = rapid.Int64Range(0, identified).Draw(t, "keep")
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "segments") {
		step.Prompt = append(step.Prompt, Segment{ID: fmt.Sprint(count.Draw(t, "segment")), Tokens: 1 + count.Draw(t,
			"tokens")})
	}
	extended := *s
	extended.Steps = append(slices.Clone(s.Steps), *step)
	step.InputTokens = 1 + sumTokens(extended.AppendPrompt(nil, len(s.Steps))) + count.Draw(t, "own")
	step.TimeoutUS, step.PredictedOutputTokens = count.Draw(t, "timeout"), count.Draw(t, "predicted")
	step.Stop = rapid.SampledFrom([]string{"", StopEOS}).Draw(t, "stop")
	step.DraftAcceptance = drawShare(t)
}

func decodeSession(line string, s *Session) error {
	return new(scanner).record([]byte(line), s)
}

func TestSessionRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawSession(t)
		line := appendSession(nil, &want, &testCache)
		var plain bytes.Buffer
		enc := json.NewEncoder(&plain)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(&want); err != nil {
			t.Fatal(err)
		}
		if got, want := string(line)+"\n", plain.String(); got != want {
			t.Fatalf("%s\nencoding/json has %s", got, want)
		}
		got := drawSession(t) // the decoder must overwrite everything
		if err := decodeSession(string(line), &got); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A prompt that extends another begins with the first KeepTokens of its tokens.
func TestAppendPrompt(t *testing.T) {
	s := Session{Steps: []SessionStep{
		{ID: "0", Extends: NoIndex, Prompt: []Segment{{ID: "a", Tokens: 10}, {ID: "b", Tokens: 20}}},
		{ID: "1", Extends: 0, Prompt: []Segment{{ID: "0.out", Tokens: 5}}},
		{ID: "2", Extends: 1, KeepTokens: 12, Prompt: []Segment{{ID: "c", Tokens: 1}}},
		{ID: "3", Extends: 1, KeepTokens: 30},
	}}
	for i, want := range [][]Segment{
		{{ID: "a", Tokens: 10}, {ID: "b", Tokens: 20}}, {{ID: "a", Tokens: 10}, {ID: "b", Tokens: 20}, {ID: "0.out",
			Tokens: 5}},
		{{ID: "a", Tokens: 10}, {ID: "b", Tokens: 2}, {ID: "c", Tokens: 1}}, {{ID: "a", Tokens: 10}, {ID: "b",
			Tokens: 20}},
	} {
		if got := s.AppendPrompt(nil, i); !slices.Equal(got, want) {
			t.Errorf("step %d: %v, want %v", i, got, want)
		}
	}
}

const exampleSession = `{"kind":"session","id":"s","arrival_us":5,"steps":[` +
	`{"id":"a","input_tokens":8,"output_tokens":2,"prompt":[{"id":"x","tokens":6}]},` +
	`{"id":"t","after":[0],"tool":"search","latency_us":7,"output_tokens":3},` +
	`{"id":"b","after":[1],"delay_us":4,"input_tokens":9,"output_tokens":2,` +
	`"extends":0,"keep_tokens":5,"prompt":[{"id":"y","tokens":2}]}]}`

func TestSessionErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"id":"s"`, `"id":""`, "id is empty"},
		{`"arrival_us":5,`, ``, "arrival_us is missing"},
		{`"arrival_us":5`, `"arrival_us":-5`, "arrival_us must be an integer from 0"},
		{exampleSession[strings.Index(exampleSession, `"steps"`):], `"steps":[]}`, "steps is empty"},
		{`"id":"t"`, `"id":"a"`, `steps[1]: id "a" is already used by an earlier step`},
		{`"id":"t"`, `"id":""`, "steps[1]: id is empty"},
		{`"after":[1]`, `"after":[2]`, "steps[2]: after must name earlier steps (below 2), not 2"},
		{`"after":[1]`, `"after":[-1]`, "steps[2]: after[0]: a step index must be an integer from 0"},
		{`"after":[1]`, `"after":1`, "steps[2]: after must be a list, not 1"},
		{`"tool":"search",`, ``, "steps[1]: latency_us is present without tool"},
		{`"latency_us":7`, `"input_tokens":7`, "steps[1]: a tool call has no input_tokens, prompt or extends"},
		{`"latency_us":7`, `"model":"m"`, "steps[1]: a tool call has no model, stop, draft_acceptance, grammar, " +
			"timeout_us, " +
			"predicted_output_tokens or retry"},
		{`"input_tokens":9,`, ``, "steps[2]: input_tokens is missing"},
		{`"input_tokens":9,"output_tokens":2`, `"input_tokens":9`, "steps[2]: output_tokens is missing"},
		{`"input_tokens":9`, `"input_tokens":6`,
			"steps[2]: the prompt segments total 7 tokens, more than input_tokens (6)"},
		{`"extends":0`, `"extends":1`, "steps[2]: extends must name a model call; step 1 is a tool call"},
		{`"extends":0`, `"extends":3`, "steps[2]: extends must name an earlier step (below 2), not 3"},
		{`"extends":0,`, ``, "steps[2]: keep_tokens is present without extends"},
		{`"keep_tokens":5`, `"keep_tokens":7`,
			"steps[2]: keep_tokens must be at most 6, the tokens in the prompt segments of step 0, not 7"},
		{`"delay_us"`, `"delay_u"`, `steps[2]: unknown field "delay_u"; did you mean "delay_us"?`},
		{`{"id":"y","tokens":2}`, `{"id":"y"}`, "steps[2]: prompt[0]: tokens is missing"},
	} {
		line := strings.Replace(exampleSession, c.old, c.new, 1)
		if line == exampleSession {
			t.Fatalf("%s is not in the session", c.old)
		}
		if err := decodeSession(line, new(Session)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s -> %s: %v; want %s", c.old, c.new, err, c.want)
		}
	}
	if err := decodeSession(exampleSession, new(Session)); err != nil {
		t.Error(err)
	}
}

func TestSessionOutcomeRoundTrip(t *testing.T) {
	read := func(line string) (o SessionOutcome, err error) {
		r := NewReader(strings.NewReader(runHeader + line + "\n"))
		defer r.Close()
		for r.Next() {
			if r.Kind() == KindSessionOutcome {
				err = r.SessionOutcome(&o)
				return o, err
			}
		}
		return o, r.Err()
	}
	want := SessionOutcome{Kind: KindSessionOutcome, ID: "s", State: StateBroken, Step: "b", Reason: ReasonDeadline,
		CompletedUS: Never, Calls: 3, Offered: 2, Completed: 1}
	line, err := json.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(string(line)); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for old, message := range map[string]string{
		`"broken"`: `unknown state "lost"`, `"broken",`: "completed_us must be present if and only if",
	} {
		to := `"lost"`
		if strings.HasSuffix(old, ",") {
			to = `"completed",`
		}
		_, err := read(strings.Replace(string(line), old, to, 1))
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v; want %s", to, err, message)
		}
	}
}

func FuzzSession(f *testing.F) {
	f.Add(exampleSession)
	f.Fuzz(func(t *testing.T, line string) {
		var s Session
		if decodeSession(line, &s) != nil {
			return
		}
		var plain Session
		dec := json.NewDecoder(strings.NewReader(line))
		plain.UntilUS = Never
		if err := dec.Decode(&plain); err != nil && err != io.EOF && !beyondOracle([]byte(line)) {
			t.Fatalf("encoding/json: %v in %s", err, line)
		}
		var decoded Session
		if err := decodeSession(string(appendSession(nil, &s, &testCache)), &decoded); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, decoded, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

package gen

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// generateSessions runs o, which must succeed, and returns the sessions of the
// stream.
func generateSessions(t *testing.T, in string, o Options) []stream.Session {
	t.Helper()
	text, err := generate(in, o)
	if err != nil {
		t.Fatal(err)
	}
	return decodeSessions(t, text)
}

// decodeSessions returns the sessions of a stream, which must satisfy checkSession.
func decodeSessions(t *testing.T, text string) []stream.Session {
	t.Helper()
	r := stream.NewReader(strings.NewReader(text))
	var list []stream.Session
	for r.Next() {
		if r.Kind() != stream.KindSession {
			continue
		}
		var s stream.Session
		if err := r.Session(&s); err != nil {
			t.Fatal(err)
		}
		if err := checkSession(&s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// checkSession checks what is true of every session: a segment has the same length everywhere, and
// outputs and tool results are only in prompts of steps that wait for them. The reader checks the
// rest.
func checkSession(s *stream.Session) error {
	lengths := map[string]int64{}
	places := map[string]int{}
	waits := make([]map[int]bool, len(s.Steps))
	for i := range s.Steps {
		step := &s.Steps[i]
		places[step.RequestID(s.ID)] = i
		waits[i] = map[int]bool{}
		for _, at := range step.After {
			if int(at) >= i {
				return fmt.Errorf("%s depends on step %d, which comes later", step.ID, at)
			}
			waits[i][int(at)] = true
			for of := range waits[at] {
				waits[i][of] = true
			}
		}
		for _, segment := range s.AppendPrompt(nil, i) {
			request, kind, _ := cutLast(segment.ID)
			of, own := places[request]
			if !own {
				continue // a prefix
			}
			if was, known := lengths[segment.ID]; known && was != segment.Tokens {
				return fmt.Errorf("%s: %s has %d tokens in one prompt and %d in another", step.ID, segment.ID, was,
					segment.Tokens)
			}
			lengths[segment.ID] = segment.Tokens
			made := &s.Steps[of]
			switch kind {
			case "out", "result":
				if (made.Tool != "") != (kind == "result") || segment.Tokens != made.OutputTokens || !waits[i][of] {
					return fmt.Errorf("the prompt of %s contains %v, of %+v", step.ID, segment, made)
				}
				if kind == "out" && tokens(s.AppendPrompt(nil, of)) != made.InputTokens {
					return fmt.Errorf("the prompt of %s contains %v, whose own prompt is not fully identified", step.ID,
						segment)
				}
			}
		}
	}
	return nil
}

// cutLast cuts at the last dot.
func cutLast(s string) (before, after string, found bool) {
	at := strings.LastIndex(s, ".")
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+1:], true
}

func tokens(prompt []stream.Segment) (sum int64) {
	for _, segment := range prompt {
		sum += segment.Tokens
	}
	return sum
}

// byID returns the steps of a session by their ids.
func byID(s *stream.Session) map[string]*stream.SessionStep {
	steps := map[string]*stream.SessionStep{}
	for i := range s.Steps {
		steps[s.Steps[i].ID] = &s.Steps[i]
	}
	return steps
}

// after returns the ids of the dependencies of a step.
func after(s *stream.Session, step *stream.SessionStep) string {
	var ids []string
	for _, at := range step.After {
		ids = append(ids, s.Steps[at].ID)
	}
	return strings.Join(ids, " ")
}

// sessionClients are clients that send sessions, by name.
var sessionClients = []struct{ name, fields string }{
	{"agent", "rate_fraction: 0.2, arrival: {process: poisson}, deadline: {type: exponential, params: {mean: 9e6}}, " +
		"predicted_output: {error: 0.5}, agentic: {loop: {over: [a, b], max_iterations: 4, iterations: {type: " +
		"uniform, params: {min: 1, max: 4}}}, steps: [" +
		"{id: a, type: tool_call, tool: t}, {id: b, type: llm_call, depends_on: [a], fan_out: 2, context_growth: " +
		"accumulate, " + lengthsText + "}, {id: c, type: llm_call, depends_on: [b], " + lengthsText + "}]" +
		", tools: {t: {latency: {type: exponential, params: {mean: 9000}}, output_tokens: {type: exponential, " +
		"params: {mean: 90}}}}}"},
	{"talk", "rate_fraction: 0.2, arrival: {process: gamma, cv: 2}, " + lengthsText +
		", multi_turn: {avg_turns: 4, context_growth: bounded, max_context_tokens: 3000, think_time: {type: " +
		"exponential, params: {mean: 1e6}}}" +
		", prefix_spec: {num_prefix_groups: 5, prefix_length: {type: exponential, params: {mean: 100}}}"},
	{"thinker", "rate_fraction: 0.2, arrival: {process: poisson}, " + lengthsText +
		", reasoning: {chain_length: {type: uniform, params: {min: 1, max: 5}}, tokens_per_step: {type: exponential, " +
		"params: {mean: 300}}}"},
	{"user", "rate_fraction: 0.2, " + lengthsText + ", closed_loop: {concurrency: 7, think_time: {type: exponential, " +
		"params: {mean: 1e6}}}"},
	{"single", "rate_fraction: 0.2, arrival: {process: poisson}, " + lengthsText},
}

// The sessions of a client do not depend on other clients or their order, and the same options make
// the same bytes.
func TestSessionsAreIndependent(t *testing.T) {
	const head = "aggregate_rate: 50\nhorizon: 10000000\nrequests: 10000"
	var texts []string
	for _, c := range sessionClients {
		texts = append(texts, clientText(c.name, c.fields))
	}
	spec := specText(head, texts...)
	all := generateSessions(t, spec, Options{Spec: "-"})
	once, _ := generate(spec, Options{Spec: "-"})
	if again, _ := generate(spec, Options{Spec: "-"}); again != once {
		t.Error("two runs made different bytes")
	}
	slices.Reverse(texts)
	reordered := generateSessions(t, specText(head, texts...), Options{Spec: "-"})
	for _, c := range sessionClients[:4] {
		of := func(list []stream.Session) (own []stream.Session) {
			for _, s := range list {
				if s.Tenant == c.name {
					own = append(own, s)
				}
			}
			return own
		}
		alone := generateSessions(t, specText(head, clientText(c.name, c.fields)), Options{Spec: "-"})
		if len(alone) < 7 || !reflect.DeepEqual(alone, of(all)) || !reflect.DeepEqual(alone, of(reordered)) {
			t.Errorf("%s: %d sessions alone, %d with others and %d in another order differ", c.name, len(alone),
				len(of(all)), len(of(reordered)))
		}
	}
}

// A session's draws do not affect other sessions: longer first sessions leave the later ones
// unchanged.
func TestSessionsAreIndependentOfEachOther(t *testing.T) {
	spec := specText("aggregate_rate: 5\nrequests: 20", clientText(sessionClients[0].name, sessionClients[0].fields))
	short := generateSessions(t, strings.Replace(spec, "{min: 1, max: 4}", "{min: 1, max: 1}", 1), Options{Spec: "-"})
	for i, long := range generateSessions(t, spec, Options{Spec: "-"}) {
		// The first iteration.
		first := short[i].Steps[:3]
		if long.ArrivalUS != short[i].ArrivalUS || !reflect.DeepEqual(long.Steps[:3], first) {
			t.Errorf("session %s begins with %+v, with one iteration %+v", long.ID, long.Steps[:3], first)
		}
	}
}

// A session counts as one arrival.
func TestSessionCountsAsOneArrival(t *testing.T) {
	spec := specText("aggregate_rate: 5\nrequests: 20", clientText(sessionClients[1].name, sessionClients[1].fields))
	if n := len(generateSessions(t, spec, Options{Spec: "-", Requests: 12})); n != 12 {
		t.Errorf("%d sessions for --requests 12", n)
	}
}

// Only one session is in memory at a time.
func TestSessionMemoryIsConstant(t *testing.T) {
	const bound = 16 << 20
	calls := 0
	o := Options{Scenario: "mcts", Requests: 20_000, Plain: true, Progress: func(string) {
		if calls++; calls%5 == 0 {
			var m runtime.MemStats
			runtime.GC()
			if runtime.ReadMemStats(&m); m.HeapAlloc > bound {
				t.Errorf("%d sessions: %d bytes in use", calls*progressInterval, m.HeapAlloc)
			}
		}
	}}
	var written byteCounter
	if err := Run(t.Context(), nil, &written, o); err != nil {
		t.Fatal(err)
	}
	if calls < 19 || written < 50_000_000 {
		t.Errorf("%d calls, %d bytes", calls, written)
	}
}

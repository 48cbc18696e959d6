package gen

import (
	"math"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// chatSpec is a spec with one client: 100 input and 50 output tokens per turn and a system prompt
// of 400.
func chatSpec(multiTurn string) string {
	return agentSpec("", `    input_distribution: {type: constant, params: {value: 100}}
    output_distribution: {type: constant, params: {value: 50}}
    prefix_spec: {num_prefix_groups: 1, prefix_length: {type: constant, params: {value: 400}}}
    multi_turn: {`+multiTurn+`}`)
}

// Prompts grow as context_growth says. A turn has 150 tokens, the first prompt 500.
func TestContextGrowth(t *testing.T) {
	const turns = "turn_distribution: {type: constant, params: {value: 12}}"
	for _, c := range []struct {
		spec string
		want func(k int) int64 // tokens of the prompt of turn k, from 0
		// extends is the number of turns that extend the previous prompt.
		extends int
	}{
		{turns, func(k int) int64 { return 500 + 150*int64(k) }, 11},
		{turns + ", context_growth: linear", func(k int) int64 { return 500 + 150*int64(k) }, 11},
		{turns + ", context_growth: sublinear",
			func(k int) int64 { return 500 + int64(math.Round(150*math.Sqrt(float64(k)))) }, 1},
		// 1000 tokens: the system prompt, 100 new tokens and three turns.
		{turns + ", context_growth: bounded, max_context_tokens: 1000",
			func(k int) int64 { return 500 + 150*min(int64(k), 3) }, 3},
		{turns + ", context_growth: bounded, max_context_tokens: 100000",
			func(k int) int64 { return 500 + 150*int64(k) }, 11},
		// The system prompt and the new text are never dropped.
		{turns + ", context_growth: bounded, max_context_tokens: 300", func(int) int64 { return 500 }, 0},
	} {
		for _, s := range generateSessions(t, chatSpec(c.spec), Options{Spec: "-", Requests: 3}) {
			extends := 0
			for k := range s.Steps {
				step := &s.Steps[k]
				if !step.Extends.IsZero() {
					extends++
				}
				prompt := s.AppendPrompt(nil, k)
				last := prompt[len(prompt)-1]
				if step.InputTokens != c.want(k) || tokens(prompt) != step.InputTokens ||
					prompt[0] != (stream.Segment{ID: "a.0", Tokens: 400}) ||
					last != (stream.Segment{ID: step.RequestID(s.ID) + ".in", Tokens: 100}) {
					t.Errorf("%s: turn %d has a prompt of %d tokens, want %d: %v", c.spec, k, step.InputTokens,
						c.want(k), prompt)
				}
			}
			if len(s.Steps) != 12 || extends != c.extends {
				t.Errorf("%s: %d turns, %d of which extend the previous one, want %d", c.spec, len(s.Steps), extends,
					c.extends)
			}
		}
	}
}

// A bounded prompt contains the latest turns, complete and in order.
func TestBoundedPromptKeepsLatestTurns(t *testing.T) {
	s := generateSessions(t, chatSpec("turn_distribution: {type: constant, params: {value: 6}}, context_growth: "+
		"bounded, max_context_tokens: 800"), Options{Spec: "-", Requests: 1})[0]
	var ids []string
	for _, segment := range s.AppendPrompt(nil, 5) {
		ids = append(ids, segment.ID)
	}
	if got, want := strings.Join(ids, " "), "a.0 a/0/turn-4.in a/0/turn-4.out a/0/turn-5.in a/0/turn-5.out "+
		"a/0/turn-6.in"; got != want {
		t.Errorf("the prompt of the sixth turn is %s, want %s", got, want)
	}
}

// Turns follow each other after the think time; their number follows its distribution.
func TestTurns(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		turns           string
		mean, deviation float64
	}{
		// Geometric with mean 4: deviation √(4·3).
		{"avg_turns: 4", 4, math.Sqrt(12)},
		{"avg_turns: 1", 1, 0},
		{"turn_distribution: {type: uniform, params: {min: 1, max: 3}}", 2, math.Sqrt(2. / 3)},
		{"avg_turns: 2, turn_distribution: {type: uniform, params: {min: 1, max: 3}}", 2, math.Sqrt(2. / 3)},
	} {
		sum, squares := 0.0, 0.0
		for _, s := range generateSessions(t, strings.Replace(chatSpec(c.turns+", think_time: {type: exponential, "+
			"params: {mean: 5e6}}"), "horizon: 20000000", "", 1), Options{Spec: "-", Requests: n}) {
			turns := float64(len(s.Steps))
			sum += turns
			squares += turns * turns
			for k := range s.Steps {
				if step := &s.Steps[k]; (k == 0) != (step.DelayUS == 0 && len(step.After) == 0) || k > 0 &&
					step.After[0] != stream.Index(k-1) {
					t.Fatalf("%s: turn %d is %+v", c.turns, k, step)
				}
			}
		}
		mean := sum / n
		deviation := math.Sqrt(squares/n - mean*mean)
		if math.Abs(mean-c.mean) > 4*c.deviation/math.Sqrt(n) || math.Abs(deviation-c.deviation) > 0.04*c.deviation {
			t.Errorf("%s: %.3f turns with deviation %.3f, want %.3f and %.3f", c.turns, mean, deviation, c.mean,
				c.deviation)
		}
	}
}

// Inputs grow by a constant factor per turn; outputs keep their mean and vary more with each turn.
func TestSessionModel(t *testing.T) {
	spec := strings.Replace(chatSpec("turn_distribution: {type: constant, params: {value: 3}}"), "clients:",
		"correlations: {session_model: {prompt_growth_rate: 1.5, decode_variation: 0.5}}\nclients:", 1)
	spec = strings.Replace(spec, "{value: 50}", "{value: 5000}", 1)
	const n = 20_000
	sum, squares := [3]float64{}, [3]float64{}
	for _, s := range generateSessions(t, strings.Replace(spec, "horizon: 20000000", "", 1),
		Options{Spec: "-", Requests: n}) {
		for k, want := range []int64{100, 150, 225} {
			prompt := s.AppendPrompt(nil, k)
			if said := prompt[len(prompt)-1].Tokens; said != want {
				t.Fatalf("%s: the input of turn %d has %d tokens, want %d", s.ID, k, said, want)
			}
			output := float64(s.Steps[k].OutputTokens)
			sum[k] += output
			squares[k] += output * output
		}
	}
	for k := range 3 {
		mean := sum[k] / n
		cv := math.Sqrt(math.Max(0, squares[k]/n/mean/mean-1))
		// The product of k independent factors: their 1 + cv² multiply.
		if want := math.Sqrt(math.Pow(1.25, float64(k)) - 1); math.Abs(mean/5000-1) > 4*want/math.Sqrt(n) ||
			math.Abs(cv-want) > 0.05*want {
			t.Errorf("outputs of turn %d have the mean %.0f and the cv %.3f, want 5000 and %.3f", k, mean, cv, want)
		}
	}
}

func TestInvalidConversations(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"", `clients[0].multi_turn.avg_turns is not in the file: must be given (or turn_distribution)`},
		{"avg_turns: 0.5", `stdin:12:29: clients[0].multi_turn.avg_turns: must be between 1 and 10000, is 0.5`},
		{"avg_turns: 3, turn_distribution: {type: constant, params: {value: 4}}",
			`clients[0].multi_turn.avg_turns: is 3 but turn_distribution has the mean 4; give only one of them`},
		{"turn_distribution: {type: constant, params: {value: 0}}",
			`clients[0].multi_turn.turn_distribution.params.value: must be between 1`},
		{"avg_turns: 3, context_growth: boundless", `unknown context growth "boundless"; did you mean "bounded"? ` +
			`(have linear, sublinear, bounded)`},
		{"avg_turns: 3, context_growth: bounded", `clients[0].multi_turn.max_context_tokens is not in the file: must ` +
			`be between 1 and 2147483647 for bounded, is 0`},
		{"avg_turns: 3, max_context_tokens: 9", `clients[0].multi_turn.max_context_tokens: is only for bounded and ` +
			`has no effect with linear`},
		{"avg_turns: 3, think_time: {type: constant, params: {value: -1}}",
			`clients[0].multi_turn.think_time.params.value: must be between 0`},
		{"avg_turns: 3, thinktime: 3", `unknown field "thinktime"; did you mean "think_time"?`},
	} {
		checkRejected(t, chatSpec(c.spec), c.want)
	}
	with := func(model string) string {
		return strings.Replace(chatSpec("avg_turns: 3"), "clients:",
			"correlations: {session_model: "+model+"}\nclients:", 1)
	}
	checkRejected(t, with("{prompt_growth_rate: 0}"),
		"correlations.session_model.prompt_growth_rate: must be above 0 and at most 100, is 0")
	checkRejected(t, with("{decode_variation: -1}"), "correlations.session_model.decode_variation: must be between 0 "+
		"and 100, is -1")
	checkRejected(t, strings.Replace(with("{decode_variation: 1}"), "    multi_turn: {avg_turns: 3}\n", "", 1),
		"correlations.session_model: has no effect: no client has multi_turn")
}

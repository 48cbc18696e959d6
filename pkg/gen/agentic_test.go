package gen

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// The workflows of the design have the expected steps in the expected order.
func TestDesignWorkflows(t *testing.T) {
	for _, c := range []struct {
		name         string
		calls, tools int
		want         map[string]string // dependencies of steps
	}{
		{"react", 11, 5, map[string]string{
			"reason-1": "", "act-1": "reason-1", "observe-1": "act-1", "reason-2": "observe-1", "act-5": "reason-5",
			"observe-5": "act-5", "final-answer": "observe-5",
		}},
		{"mcts", 7, 1, map[string]string{
			"decompose": "", "generate.0": "decompose", "generate.3": "decompose",
			"evaluate": "generate.0 generate.1 generate.2 generate.3", "verify": "evaluate", "refine": "verify",
		}},
		{"fork-join", 2, 3, map[string]string{
			"plan": "", "search-web": "plan", "query-db": "plan", "fetch-docs": "plan",
			"synthesize": "search-web query-db fetch-docs",
		}},
	} {
		list := generateSessions(t, designWorkflow(t, c.name), Options{Spec: "-"})
		if len(list) < 10 {
			t.Fatalf("%s: %d sessions", c.name, len(list))
		}
		for i := range list {
			s := &list[i]
			tools := 0
			for _, step := range s.Steps {
				if step.Tool != "" {
					tools++
				}
			}
			if calls := len(s.Steps) - tools; calls != c.calls || tools != c.tools {
				t.Fatalf("%s: %d calls and %d tools, want %d and %d", s.ID, calls, tools, c.calls, c.tools)
			}
			steps := byID(s)
			for id, want := range c.want {
				if steps[id] == nil || after(s, steps[id]) != want {
					t.Fatalf("%s: %s waits for %+v, want %s", s.ID, id, steps[id], want)
				}
			}
		}
	}
	s := &generateSessions(t, designWorkflow(t, "react"), Options{Spec: "-"})[0]
	if step := byID(s)["observe-3"]; s.ID != "react-agent/0" || s.Tenant != "team-search" || s.SLOClass != "standard" ||
		s.Workflow != "react-search" || step.Step != "observe" || step.Iteration != 3 {
		t.Errorf("%+v\n%+v", s, step)
	}
}

// The prompt of an accumulating call is the whole history, and it begins with the prompt of the
// previous such call.
func TestAccumulatingContext(t *testing.T) {
	for _, s := range generateSessions(t, designWorkflow(t, "react"), Options{Spec: "-"}) {
		steps := byID(&s)
		own := func(id string) int64 {
			prompt := steps[id].Prompt
			return prompt[len(prompt)-1].Tokens
		}
		context := int64(0)
		last := "reason-1"
		for k := range 5 {
			at := func(name string) string { return fmt.Sprintf("%s-%d", name, k+1) }
			reason, act, observe := steps[at("reason")], steps[at("act")], steps[at("observe")]
			if reason.InputTokens != own(at("reason")) {
				t.Errorf("%s: the prompt of %s has %d tokens, its own text %d", s.ID, reason.ID, reason.InputTokens,
					own(at("reason")))
			}
			context += reason.InputTokens + reason.OutputTokens + act.OutputTokens + own(at("observe"))
			if observe.InputTokens != context || s.Steps[observe.Extends].ID != last {
				t.Errorf("%s: the prompt of %s has %d tokens and extends %s, want %d and %s", s.ID, observe.ID,
					observe.InputTokens, s.Steps[observe.Extends].ID, context, last)
			}
			context += observe.OutputTokens
			last = observe.ID
		}
		if final := steps["final-answer"]; final.InputTokens > 2048 {
			t.Errorf("%s: the prompt of the answer has %d tokens", s.ID, final.InputTokens)
		}
	}
}

// The calls of a fan-out share one prompt. A call that joins tools gets their results.
func TestFanOutAndJoin(t *testing.T) {
	for _, s := range generateSessions(t, designWorkflow(t, "mcts"), Options{Spec: "-"}) {
		steps := byID(&s)
		lengths := map[int64]bool{}
		for n := range 4 {
			one := steps[fmt.Sprintf("generate.%d", n)]
			place := slices.IndexFunc(s.Steps, func(step stream.SessionStep) bool { return step.ID == one.ID })
			if !slices.Equal(s.AppendPrompt(nil, place), s.AppendPrompt(nil, 1)) ||
				one.InputTokens != steps["generate.0"].InputTokens || one.Step != "generate" {
				t.Errorf("%s: %+v, first copy %+v", s.ID, one, steps["generate.0"])
			}
			lengths[one.OutputTokens] = true
		}
		if len(lengths) == 1 {
			t.Errorf("%s: four outputs of the same length", s.ID)
		}
		if refine := steps["refine"]; refine.InputTokens != 150+refine.Prompt[1].Tokens {
			t.Errorf("%s: %+v", s.ID, refine)
		}
	}
	for _, s := range generateSessions(t, designWorkflow(t, "fork-join"), Options{Spec: "-"}) {
		steps := byID(&s)
		join := steps["synthesize"]
		sum := join.Prompt[3].Tokens
		for _, tool := range []string{"search-web", "query-db", "fetch-docs"} {
			sum += steps[tool].OutputTokens
		}
		if join.InputTokens != sum || sum != tokens(join.Prompt) {
			t.Errorf("%s: %+v, want %d tokens", s.ID, join, sum)
		}
	}
}

// The number of iterations follows its distribution, or is always the maximum.
func TestIterations(t *testing.T) {
	counts := func(iterations string) map[int64]int {
		spec := strings.Replace(designWorkflow(t, "react"), "max_iterations: 5", "max_iterations: 5"+iterations, 1)
		found := map[int64]int{}
		for _, s := range generateSessions(t, spec, Options{Spec: "-", Requests: 200}) {
			most := int64(0)
			for _, step := range s.Steps {
				most = max(most, step.Iteration)
			}
			if want := fmt.Sprintf("observe-%d", most); after(&s, &s.Steps[len(s.Steps)-1]) != want ||
				len(s.Steps) != int(3*most+1) {
				t.Fatalf("%s ends after %s, not %s; %d steps", s.ID, after(&s, &s.Steps[len(s.Steps)-1]), want,
					len(s.Steps))
			}
			found[most]++
		}
		return found
	}
	if always := counts(""); len(always) != 1 || always[5] != 200 {
		t.Errorf("without a distribution: %v", always)
	}
	// Exponential with mean 2: of 200, about 200·e^−2.25 = 21 exceed 4.
	drawn := counts("\n        iterations: {type: exponential, params: {mean: 2}}")
	if len(drawn) != 5 || drawn[5] < 8 || drawn[5] > 40 || drawn[1] < 80 {
		t.Errorf("with a distribution: %v", drawn)
	}
}

package gen

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"blis/pkg/dist"
	"blis/pkg/record"

	"pgregory.net/rapid"
)

// The workflows of the design have the steps that it says, in its order.
func TestDesignedWorkflows(t *testing.T) {
	for _, c := range []struct {
		name         string
		calls, tools int
		want         map[string]string // what steps wait for
	}{
		{"react", 11, 5, map[string]string{
			"reason-1": "", "act-1": "reason-1", "observe-1": "act-1", "reason-2": "observe-1", "act-5": "reason-5", "observe-5": "act-5", "final-answer": "observe-5",
		}},
		{"mcts", 7, 1, map[string]string{
			"decompose": "", "generate.0": "decompose", "generate.3": "decompose", "evaluate": "generate.0 generate.1 generate.2 generate.3", "verify": "evaluate", "refine": "verify",
		}},
		{"fork-join", 2, 3, map[string]string{
			"plan": "", "search-web": "plan", "query-db": "plan", "fetch-docs": "plan", "synthesize": "search-web query-db fetch-docs",
		}},
	} {
		list := generateSessions(t, designed(t, c.name), Options{Spec: "-"})
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
	s := &generateSessions(t, designed(t, "react"), Options{Spec: "-"})[0]
	if step := byID(s)["observe-3"]; s.ID != "react-agent/0" || s.Tenant != "team-search" || s.SLOClass != "standard" || s.Workflow != "react-search" || step.Step != "observe" || step.Iteration != 3 {
		t.Errorf("%+v\n%+v", s, step)
	}
}

// An agent that looks at its results goes on from where it looked last: what it
// is sent is all that was said before, and of that what it was sent last time
// stands in the same place.
func TestAgentsAccumulate(t *testing.T) {
	for _, s := range generateSessions(t, designed(t, "react"), Options{Spec: "-"}) {
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
				t.Errorf("%s: %s is sent %d tokens and says %d", s.ID, reason.ID, reason.InputTokens, own(at("reason")))
			}
			context += reason.InputTokens + reason.OutputTokens + act.OutputTokens + own(at("observe"))
			if observe.InputTokens != context || s.Steps[observe.Extends].ID != last {
				t.Errorf("%s: %s is sent %d tokens that begin with those of %s, want %d and %s", s.ID, observe.ID, observe.InputTokens, s.Steps[observe.Extends].ID, context, last)
			}
			context += observe.OutputTokens
			last = observe.ID
		}
		if final := steps["final-answer"]; final.InputTokens > 2048 {
			t.Errorf("%s: the answer is sent %d tokens", s.ID, final.InputTokens)
		}
	}
}

// The candidates of a fan-out are sent one prompt; who joins tools is sent what
// they returned.
func TestFanOutsAndJoins(t *testing.T) {
	for _, s := range generateSessions(t, designed(t, "mcts"), Options{Spec: "-"}) {
		steps := byID(&s)
		answers := map[int64]bool{}
		for n := range 4 {
			one := steps[fmt.Sprintf("generate.%d", n)]
			place := slices.IndexFunc(s.Steps, func(step record.SessionStep) bool { return step.ID == one.ID })
			if !slices.Equal(s.AppendPrompt(nil, place), s.AppendPrompt(nil, 1)) || one.InputTokens != steps["generate.0"].InputTokens || one.Step != "generate" {
				t.Errorf("%s: %+v, beside %+v", s.ID, one, steps["generate.0"])
			}
			answers[one.OutputTokens] = true
		}
		if len(answers) == 1 {
			t.Errorf("%s: four answers of the same length", s.ID)
		}
		if refine := steps["refine"]; refine.InputTokens != 150+refine.Prompt[1].Tokens {
			t.Errorf("%s: %+v", s.ID, refine)
		}
	}
	for _, s := range generateSessions(t, designed(t, "fork-join"), Options{Spec: "-"}) {
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

// Loops happen as often as they are drawn, or always as often as they may.
func TestIterations(t *testing.T) {
	counts := func(iterations string) map[int64]int {
		spec := strings.Replace(designed(t, "react"), "max_iterations: 5", "max_iterations: 5"+iterations, 1)
		found := map[int64]int{}
		for _, s := range generateSessions(t, spec, Options{Spec: "-", Requests: 200}) {
			most := int64(0)
			for _, step := range s.Steps {
				most = max(most, step.Iteration)
			}
			if want := fmt.Sprintf("observe-%d", most); after(&s, &s.Steps[len(s.Steps)-1]) != want || len(s.Steps) != int(3*most+1) {
				t.Fatalf("%s ends after %s, not %s; %d steps", s.ID, after(&s, &s.Steps[len(s.Steps)-1]), want, len(s.Steps))
			}
			found[most]++
		}
		return found
	}
	if always := counts(""); len(always) != 1 || always[5] != 200 {
		t.Errorf("without a distribution: %v", always)
	}
	// Exponential with mean 2: of 200, about 200·e^−2.25 = 21 would be more than 4.
	drawn := counts("\n        iterations: {type: exponential, params: {mean: 2}}")
	if len(drawn) != 5 || drawn[5] < 8 || drawn[5] > 40 || drawn[1] < 80 {
		t.Errorf("with a distribution: %v", drawn)
	}
}

// randomAgent draws a workflow that is right: some steps, a loop, more steps.
// Lengths are constants, another one for each.
func randomAgent(rt *rapid.T) *Agentic {
	a := &Agentic{Tools: map[string]AgenticTool{}}
	constant := func(v int) *dist.Spec {
		return &dist.Spec{Type: "constant", Params: map[string]float64{"value": float64(v)}}
	}
	head := rapid.IntRange(0, 3).Draw(rt, "head")
	body := rapid.IntRange(0, 4).Draw(rt, "body")
	tail := rapid.IntRange(0, 3).Draw(rt, "tail")
	if head+body == 0 {
		head = 1
	}
	if body > 0 {
		a.Loop = &AgenticLoop{MaxIterations: rapid.Int64Range(1, 4).Draw(rt, "iterations")}
	}
	for i := range head + body + tail {
		s := AgenticStep{ID: string(rune('a' + i))}
		looped := i >= head && i < head+body
		// What a step may wait for: all before, but in the loop at least one of it.
		from := 0
		if looped && i > head {
			from = head
		}
		if i > 0 {
			s.DependsOn = []string{string(rune('a' + rapid.IntRange(from, i-1).Draw(rt, "parent")))}
			if other := string(rune('a' + rapid.IntRange(0, i-1).Draw(rt, "other"))); other != s.DependsOn[0] {
				s.DependsOn = append(s.DependsOn, other)
			}
		}
		if looped {
			a.Loop.Over = append(a.Loop.Over, s.ID)
		}
		if rapid.Bool().Draw(rt, "fans out") {
			n := rapid.Int64Range(2, 3).Draw(rt, "fan-out")
			s.FanOut = &n
		}
		if s.Type = llmCall; i > 0 && rapid.IntRange(0, 2).Draw(rt, "tool") == 0 {
			s.Type, s.Tool = toolCall, "t"+s.ID
			tool := AgenticTool{Latency: *constant(i)}
			if rapid.Bool().Draw(rt, "returns") {
				tool.OutputTokens = constant(10_000 + i)
			}
			a.Tools[s.Tool] = tool
		} else {
			s.InputDistribution, s.OutputDistribution = constant(100+i), constant(1000+i)
			if looped && rapid.Bool().Draw(rt, "accumulates") {
				s.ContextGrowth = accumulate
			}
		}
		a.Steps = append(a.Steps, s)
	}
	return a
}

// unrolled is a plain reading of a workflow: for each step's name in a session, the
// names of those that it waits for, and of the tools that it is told of.
type unrolled struct {
	after, tools map[string][]string
}

func unroll(a *Agentic) unrolled {
	u := unrolled{map[string][]string{}, map[string][]string{}}
	last := int64(0)
	looped := func(string) bool { return false }
	if a.Loop != nil {
		last = a.Loop.MaxIterations
		looped = func(id string) bool { return slices.Contains(a.Loop.Over, id) }
	}
	step := func(id string) *AgenticStep {
		return &a.Steps[slices.IndexFunc(a.Steps, func(s AgenticStep) bool { return s.ID == id })]
	}
	names := func(id string, iteration int64) (list []string) {
		if looped(id) {
			id = fmt.Sprintf("%s-%d", id, iteration)
		}
		s := step(strings.Split(id, "-")[0])
		for n := range s.copies() {
			if s.FanOut != nil {
				list = append(list, fmt.Sprintf("%s.%d", id, n))
			} else {
				list = append(list, id)
			}
		}
		return list
	}
	exits := func(iteration int64) (list []string) {
		for _, id := range a.Loop.Over {
			if !slices.ContainsFunc(a.Loop.Over, func(other string) bool { return slices.Contains(step(other).DependsOn, id) }) {
				list = append(list, names(id, iteration)...)
			}
		}
		return list
	}
	for i := range a.Steps {
		s := &a.Steps[i]
		first, most := int64(0), int64(0)
		if looped(s.ID) {
			first, most = 1, last
		}
		for k := first; k <= most; k++ {
			var waits, told []string
			entry := looped(s.ID)
			behind := false
			for _, id := range s.DependsOn {
				entry = entry && !looped(id)
				behind = behind || !looped(s.ID) && looped(id)
				at := k
				if !looped(s.ID) {
					at = last
				}
				list := names(id, at)
				if k <= 1 || looped(id) {
					waits = append(waits, list...)
				}
				if step(id).isTool() {
					told = append(told, list...)
				}
			}
			if entry && k > 1 {
				waits = append(waits, exits(k-1)...)
				for _, id := range exits(k - 1) {
					if step(strings.Split(id, "-")[0]).isTool() {
						told = append(told, id)
					}
				}
			}
			if behind {
				waits = append(waits, exits(last)...)
			}
			for _, name := range names(s.ID, k) {
				u.after[name], u.tools[name] = sortedSet(waits), sortedSet(told)
			}
		}
	}
	return u
}

func sortedSet(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// Any workflow is unrolled as the plain reading says, and prompts have the lengths
// of what is in them.
func TestWorkflowsAreUnrolled(t *testing.T) {
	const prefix = 40
	rapid.Check(t, func(rt *rapid.T) {
		a := randomAgent(rt)
		c := Client{ID: "a", Agentic: a, RateFraction: 1, Arrival: dist.Arrival{Process: "poisson"}}
		c.PrefixSpec = &PrefixSpec{NumPrefixGroups: 3, ReuseProb: 0.5, PrefixLength: dist.Spec{Type: "constant", Params: map[string]float64{"value": prefix}}}
		spec := &Spec{Version: "2", Seed: rapid.Uint64().Draw(rt, "seed"), AggregateRate: 1, Requests: 3, Clients: []Client{c}}
		clients, err := spec.clients(func(path, format string, args ...any) error { return fmt.Errorf(path+": "+format, args...) })
		if err != nil {
			rt.Fatal(err)
		}
		want := unroll(a)
		var arrival record.Arrival
		for n := range int64(3) {
			if err := clients[0].fill(&arrival, n, record.Micros(n)); err != nil {
				rt.Fatal(err)
			}
			s := &arrival.Session
			if err := sessionLaws(s); err != nil {
				rt.Fatal(err)
			}
			if len(s.Steps) != len(want.after) {
				rt.Fatalf("%d steps, want %v", len(s.Steps), want.after)
			}
			reach := map[string][]string{}
			for i := range s.Steps {
				step := &s.Steps[i]
				got := sortedSet(strings.Fields(after(s, step)))
				if !slices.Equal(got, want.after[step.ID]) {
					rt.Fatalf("%s waits for %v, want %v", step.ID, got, want.after[step.ID])
				}
				for _, id := range got {
					reach[step.ID] = sortedSet(append(append(reach[step.ID], id), reach[id]...))
				}
				if step.Tool == "" {
					checkInput(rt, a, s, step, reach[step.ID], want.tools[step.ID])
				}
			}
		}
	})
}

// checkInput: a call is sent its own text, and before it what its step says that
// it is told.
func checkInput(rt *rapid.T, a *Agentic, s *record.Session, step *record.SessionStep, reach, tools []string) {
	steps := byID(s)
	spec := func(step *record.SessionStep) *AgenticStep {
		return &a.Steps[slices.IndexFunc(a.Steps, func(s AgenticStep) bool { return s.ID == step.Name() })]
	}
	// text is what a call says by itself, and what of its prompt is the client's prefix.
	text := func(step *record.SessionStep) (own, prefix int64) {
		place := slices.IndexFunc(s.Steps, func(other record.SessionStep) bool { return other.ID == step.ID })
		prompt := s.AppendPrompt(nil, place)
		if strings.HasPrefix(prompt[0].ID, "a.") {
			prefix = prompt[0].Tokens
		}
		return prompt[len(prompt)-1].Tokens, prefix
	}
	own, prefix := text(step)
	want := own + prefix
	told := map[string]bool{} // calls side by side say one thing
	for _, id := range reach {
		other := steps[id]
		switch {
		case other.Tool != "":
			if spec(step).ContextGrowth == accumulate || slices.Contains(tools, id) {
				want += other.OutputTokens
			}
		case spec(step).ContextGrowth == accumulate:
			if same := fmt.Sprint(other.Name(), other.Iteration); !told[same] {
				told[same] = true
				said, _ := text(other)
				want += said
			}
			want += other.OutputTokens
		}
	}
	if step.InputTokens != want {
		rt.Fatalf("%s is sent %d tokens, want %d", step.ID, step.InputTokens, want)
	}
	sample := int64(spec(step).InputDistribution.Params["value"])
	if goesOn := own == sample; !goesOn && own+prefix != sample {
		rt.Fatalf("%s says %d tokens behind a prefix of %d, and %d are drawn", step.ID, own, prefix, sample)
	}
	if afresh := step.Extends.IsZero(); afresh && own+prefix != sample {
		rt.Fatalf("%s begins afresh and says %d tokens behind a prefix of %d, and %d are drawn", step.ID, own, prefix, sample)
	}
}

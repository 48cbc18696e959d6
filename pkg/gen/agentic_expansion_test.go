package gen

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"blis/pkg/dist"
	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// randomAgent draws a valid workflow: some steps, a loop, more steps. Lengths are distinct
// constants.
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
		inLoop := i >= head && i < head+body
		// A step may depend on all before it, but in the loop on at least one loop step.
		from := 0
		if inLoop && i > head {
			from = head
		}
		if i > 0 {
			s.DependsOn = []string{string(rune('a' + rapid.IntRange(from, i-1).Draw(rt, "parent")))}
			if other := string(rune('a' + rapid.IntRange(0, i-1).Draw(rt, "other"))); other != s.DependsOn[0] {
				s.DependsOn = append(s.DependsOn, other)
			}
		}
		if inLoop {
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
			if inLoop && rapid.Bool().Draw(rt, "accumulates") {
				s.ContextGrowth = accumulate
			}
		}
		a.Steps = append(a.Steps, s)
	}
	return a
}

// expansion is a reference expansion of a workflow: for each step id in a session, the ids of its
// dependencies and of the tools whose results it reads.
type expansion struct {
	after, tools map[string][]string
}

func expand(a *Agentic) expansion {
	u := expansion{map[string][]string{}, map[string][]string{}}
	last := int64(0)
	inLoop := func(string) bool { return false }
	if a.Loop != nil {
		last = a.Loop.MaxIterations
		inLoop = func(id string) bool { return slices.Contains(a.Loop.Over, id) }
	}
	step := func(id string) *AgenticStep {
		return &a.Steps[slices.IndexFunc(a.Steps, func(s AgenticStep) bool { return s.ID == id })]
	}
	names := func(id string, iteration int64) (list []string) {
		if inLoop(id) {
			id = fmt.Sprintf("%s-%d", id, iteration)
		}
		s := step(strings.Split(id, "-")[0])
		for n := range s.parallelCalls() {
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
			if !slices.ContainsFunc(a.Loop.Over,
				func(other string) bool { return slices.Contains(step(other).DependsOn, id) }) {
				list = append(list, names(id, iteration)...)
			}
		}
		return list
	}
	for i := range a.Steps {
		s := &a.Steps[i]
		first, most := int64(0), int64(0)
		if inLoop(s.ID) {
			first, most = 1, last
		}
		for k := first; k <= most; k++ {
			var dependencies, toolResults []string
			entry := inLoop(s.ID)
			afterLoop := false
			for _, id := range s.DependsOn {
				entry = entry && !inLoop(id)
				afterLoop = afterLoop || !inLoop(s.ID) && inLoop(id)
				at := k
				if !inLoop(s.ID) {
					at = last
				}
				list := names(id, at)
				if k <= 1 || inLoop(id) {
					dependencies = append(dependencies, list...)
				}
				if step(id).isTool() {
					toolResults = append(toolResults, list...)
				}
			}
			if entry && k > 1 {
				dependencies = append(dependencies, exits(k-1)...)
				for _, id := range exits(k - 1) {
					if step(strings.Split(id, "-")[0]).isTool() {
						toolResults = append(toolResults, id)
					}
				}
			}
			if afterLoop {
				dependencies = append(dependencies, exits(last)...)
			}
			for _, name := range names(s.ID, k) {
				u.after[name], u.tools[name] = sortedSet(dependencies), sortedSet(toolResults)
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

// Random workflows expand as the reference does, and prompt lengths are the sums of their parts.
func TestWorkflowExpansion(t *testing.T) {
	const prefix = 40
	rapid.Check(t, func(rt *rapid.T) {
		a := randomAgent(rt)
		c := Client{ID: "a", Agentic: a, RateFraction: 1, Arrival: dist.Arrival{Process: "poisson"}}
		c.PrefixSpec = &PrefixSpec{NumPrefixGroups: 3, ReuseProbability: 0.5, PrefixLength: dist.Spec{Type: "constant",
			Params: map[string]float64{"value": prefix}}}
		spec := &Spec{Version: "2", Seed: rapid.Uint64().Draw(rt, "seed"), AggregateRate: 1, Requests: 3,
			Clients: []Client{c}}
		clients, err := spec.clients(func(path, format string,
			args ...any) error {
			return fmt.Errorf(path+": "+format, args...)
		})
		if err != nil {
			rt.Fatal(err)
		}
		want := expand(a)
		var arrival stream.Arrival
		for n := range int64(3) {
			if err := clients[0].fill(&arrival, n, stream.Micros(n)); err != nil {
				rt.Fatal(err)
			}
			s := &arrival.Session
			if err := checkSession(s); err != nil {
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

// checkInput checks that the prompt length is the sum of the call's own text and its history.
func checkInput(rt *rapid.T, a *Agentic, s *stream.Session, step *stream.SessionStep, reach, tools []string) {
	steps := byID(s)
	spec := func(step *stream.SessionStep) *AgenticStep {
		return &a.Steps[slices.IndexFunc(a.Steps, func(s AgenticStep) bool { return s.ID == step.Name() })]
	}
	// text returns the lengths of a call's own text and of the client's prefix in its prompt.
	text := func(step *stream.SessionStep) (own, prefix int64) {
		place := slices.IndexFunc(s.Steps, func(other stream.SessionStep) bool { return other.ID == step.ID })
		prompt := s.AppendPrompt(nil, place)
		if strings.HasPrefix(prompt[0].ID, "a.") {
			prefix = prompt[0].Tokens
		}
		return prompt[len(prompt)-1].Tokens, prefix
	}
	own, prefix := text(step)
	want := own + prefix
	seen := map[string]bool{} // parallel calls share their text
	for _, id := range reach {
		other := steps[id]
		switch {
		case other.Tool != "":
			if spec(step).ContextGrowth == accumulate || slices.Contains(tools, id) {
				want += other.OutputTokens
			}
		case spec(step).ContextGrowth == accumulate:
			if same := fmt.Sprint(other.Name(), other.Iteration); !seen[same] {
				seen[same] = true
				tokens, _ := text(other)
				want += tokens
			}
			want += other.OutputTokens
		}
	}
	if step.InputTokens != want {
		rt.Fatalf("the prompt of %s has %d tokens, want %d", step.ID, step.InputTokens, want)
	}
	sample := int64(spec(step).InputDistribution.Params["value"])
	if extends := own == sample; !extends && own+prefix != sample {
		rt.Fatalf("%s has %d own tokens after a prefix of %d, drawn were %d", step.ID, own, prefix, sample)
	}
	if extendsNone := step.Extends.IsZero(); extendsNone && own+prefix != sample {
		rt.Fatalf("%s extends no call and has %d own tokens after a prefix of %d, drawn were %d", step.ID, own, prefix,
			sample)
	}
}

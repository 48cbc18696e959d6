package summarize

import (
	"fmt"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/fitness"
	"blis/pkg/metrics"
	"blis/pkg/report"
)

// Pattern is a cause of losses; see attribution.Pattern. One about sessions has no requests, and LossShare is its share
// of the sessions' E2E.
type Pattern struct {
	Condition string `json:"condition"`
	// Value is the tenant, class or replica that it is about, "" if there is none.
	Value     string `json:"value"`
	Component string `json:"component"`
	Policy    string `json:"policy"`
	Rule      string `json:"rule"`
	// Lost requests of those that match it lost something, LossShare is their share of the loss, Part where most of
	// them lost it. Lift is 0 without a control group.
	Lost      int64   `json:"lost"`
	Matching  int64   `json:"matching"`
	LossShare float64 `json:"loss_share"`
	Lift      float64 `json:"lift"`
	Part      string  `json:"part"`
	// Cause says what happened, Advice what usually helps.
	Cause  string `json:"cause"`
	Advice string `json:"advice"`
}

// Regret is what other routing decisions would have gained, by estimates; all 0 where none was recorded. Exact
// decisions were re-simulated; in Flips of them an alternative gains more SLOs than it loses.
type Regret struct {
	Decisions   int64   `json:"decisions"`
	Better      int64   `json:"better"`
	HindsightMS float64 `json:"hindsight_ms"`
	AvoidableMS float64 `json:"avoidable_ms"`
	Exact       int64   `json:"exact"`
	Flips       int64   `json:"flips"`
}

// Example is what happened to some requests, as reflective optimizers read it: a class or a tenant, or one of the
// worst requests. Score is the share of them that lost nothing.
type Example struct {
	Kind     string        `json:"kind"`
	Name     string        `json:"name"`
	Inputs   ExampleInputs `json:"inputs"`
	Outcome  string        `json:"outcome"`
	Score    float64       `json:"score"`
	Feedback string        `json:"feedback"`
}

// ExampleInputs describe requests; tokens are means.
type ExampleInputs struct {
	Requests     int64   `json:"requests"`
	SLOClass     string  `json:"slo_class,omitempty"`
	Tenant       string  `json:"tenant,omitempty"`
	ArrivalS     float64 `json:"arrival_s,omitempty"`
	InputTokens  float64 `json:"input_tokens"`
	OutputTokens float64 `json:"output_tokens"`
}

// maxExampleGroups bounds the classes, and the tenants, among the examples.
const maxExampleGroups = 5

// worstObjective is an objective without a value: lower than any that occurs.
const worstObjective = -1e12

// explain adds what the findings of a run say.
func (d *Document) explain(in *report.Input, f *attribution.Findings) {
	d.Hints = append(d.Hints, f.Hints...)
	for i := range f.Patterns {
		p := &f.Patterns[i]
		d.Patterns = append(d.Patterns, Pattern{Condition: p.Condition.Name, Value: p.Value,
			Component: p.Condition.Component.Name, Policy: p.Policy, Rule: p.Rule, Lost: p.Lost, Matching: p.All,
			LossShare: p.Loss, Lift: p.Lift, Part: p.Part.String(), Cause: p.Cause, Advice: p.Condition.Hint})
	}
	if c := in.SessionCause(); c != nil && len(f.Patterns) == 0 {
		d.Patterns = append(d.Patterns, Pattern{Condition: c.Condition, Component: "workload", LossShare: c.Share,
			Cause: c.Text, Advice: c.Advice})
	}
	if g := f.Regret; g != nil {
		d.Regret = Regret{g.Decisions, g.Better, g.HindsightMS, g.AvoidableMS, g.Exact, g.Flips}
	}
	d.addGroups("class", f.Classes, f)
	d.addGroups("tenant", f.Tenants, f)
	for i := range f.Worst {
		e := &f.Worst[i]
		x := Example{Kind: "request", Name: e.Request, Inputs: ExampleInputs{1, e.Labels.Class, e.Labels.Tenant,
			float64(e.ArrivalUS) / 1e6, float64(e.Tokens.Input), float64(e.Tokens.Output)},
			Outcome: report.Example(in, e), Feedback: "no pattern explains it"}
		if e.Pattern >= 0 {
			x.Feedback = causeText(&f.Patterns[e.Pattern])
		}
		d.Examples = append(d.Examples, x)
	}
}

// addGroups adds the classes or tenants with the most losses.
func (d *Document) addGroups(kind string, rows []attribution.GroupRow, f *attribution.Findings) {
	for _, g := range rows[:min(len(rows), maxExampleGroups)] {
		x := Example{Kind: kind, Name: g.Name, Inputs: ExampleInputs{Requests: g.Requests, InputTokens: g.InputTokens,
			OutputTokens: g.OutputTokens}, Score: 1 - float64(g.Lost)/float64(g.Requests),
			Outcome:  fmt.Sprintf("%d of %d requests lost something", g.Lost, g.Requests),
			Feedback: "nothing to improve"}
		if g.Lost > 0 {
			x.Outcome += ", most of them in " + g.Part.String()
			var causes []string
			for i, n := range g.Patterns {
				if n > 0 {
					causes = append(causes, fmt.Sprintf("%d lost by %s", n, causeText(&f.Patterns[i])))
				}
			}
			if x.Feedback = strings.Join(causes, "; "); x.Feedback == "" {
				x.Feedback = "no pattern explains these losses"
			}
		}
		d.Examples = append(d.Examples, x)
	}
}

// causeText is a pattern in a line.
func causeText(p *attribution.Pattern) string {
	return fmt.Sprintf("%s: %s (to improve: %s)", p.Condition.Name, p.Cause, p.Condition.Hint)
}

// flatten returns the numbers of the document by dotted names. Numbers of the whole run are always there, because
// optimizers drop a candidate that lacks one: 0 where they are missing.
func (d *Document) flatten(raw *metrics.Raw) map[string]float64 {
	flat := map[string]float64{"combined_score": 0}
	for _, p := range metrics.Paths() {
		if !strings.Contains(p.Path, "[") {
			flat[p.Path] = 0
		}
	}
	if d.CombinedScore != nil {
		flat["combined_score"] = *d.CombinedScore
	}
	for kind, values := range map[string]map[string]float64{"objectives.": d.Objectives, "features.": d.Features} {
		for name, x := range values {
			flat[kind+name] = x
		}
	}
	if raw != nil {
		dotted := strings.NewReplacer(`["`, ".", `"]`, "", "[", ".", "]", "")
		for _, v := range metrics.Values(raw) {
			flat[dotted.Replace(v.Path)] = v.Value
		}
	}
	return flat
}

// byName are values by name, with others for missing ones.
func byName(values []fitness.Value, missing float64) map[string]float64 {
	m := map[string]float64{}
	for _, v := range values {
		if m[v.Name] = missing; v.Value != nil {
			m[v.Name] = *v.Value
		}
	}
	return m
}

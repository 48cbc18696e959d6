package stream

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawRegret draws a valid regret.
func drawRegret(t *rapid.T) Regret {
	float := func(label string) *float64 {
		if rapid.Bool().Draw(t, label+" is present") {
			x := anyFloat.Draw(t, label)
			return &x
		}
		return nil
	}
	count := rapid.Int64Range(0, maxExact)
	difference := func(label string) *Difference {
		if !rapid.Bool().Draw(t, label+" is present") {
			return nil
		}
		return &Difference{SLOGained: count.Draw(t, "gained"), SLOLost: count.Draw(t, "lost"),
			Completed: rapid.Int64Range(-maxExact, maxExact).
				Draw(t, "completed"),
			LatencyChanged: count.Draw(t, "changed"),
			TTFTMS:         anyFloat.Draw(t, "ttft"), E2EMS: anyFloat.Draw(t, "e2e")}
	}
	g := Regret{Kind: KindRegret, Decision: anyString.Draw(t, "decision"), Request: anyString.Draw(t, "request"),
		Stage: rapid.SampledFrom(regretStages).Draw(t, "stage"), Method: rapid.SampledFrom(methods).Draw(t, "method"),
		HindsightMS: float("hindsight"), AvoidableMS: float("avoidable"), Alternatives: []Alternative{}}
	for range rapid.IntRange(0, 3).Draw(t, "alternatives") {
		g.Alternatives = append(g.Alternatives, Alternative{
			Deployment: anyString.Draw(t, "deployment"), Verdict: anyString.Draw(t, "verdict"),
			Replica: Index(rapid.Int32Range(-1, maxIndex).Draw(t, "replica")), Chosen: rapid.Bool().Draw(t, "chosen"),
			TTFTMS: float("ttft"), E2EMS: float("e2e"), ViewMS: float("view"),
			Own: difference("own"), All: difference("all"), Insensitive: rapid.Bool().Draw(t, "insensitive")})
	}
	if rapid.Bool().Draw(t, "sensitivity is present") {
		g.Sensitivity = &Sensitivity{Controls: count.Draw(t, "controls"), SLO: count.Draw(t, "slo"),
			Completed: count.Draw(t, "completed"), TTFTMS: anyFloat.Draw(t, "ttft"), E2EMS: anyFloat.Draw(t, "e2e"),
			OwnTTFTMS: anyFloat.Draw(t, "own ttft"), OwnE2EMS: anyFloat.Draw(t, "own e2e")}
	}
	return g
}

// Decoding a regret and encoding it again gives the same JSON.
func TestRegretRoundTrip(t *testing.T) {
	var s scanner
	rapid.Check(t, func(t *rapid.T) {
		g := drawRegret(t)
		line, err := json.Marshal(&g)
		if err != nil {
			t.Fatal(err)
		}
		var read Regret
		if err := s.record(line, &read); err != nil {
			t.Fatalf("%v in\n%s", err, line)
		}
		encoded, err := json.Marshal(&read)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(encoded, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-encoded +decoded and encoded again:\n%s", diff)
		}
	})
}

func TestRegretErrors(t *testing.T) {
	var s scanner
	const line = `{"kind":"regret","decision":"dec-1","request":"r","stage":"routing","method":"exact",` +
		`"alternatives":[{"replica":1,"own":{"slo_gained":0,"slo_lost":0,"completed":-1,` +
		`"latency_changed":0,"ttft_ms":0,"e2e_ms":0}}]}`
	for _, c := range []struct{ from, to, want string }{
		{`"exact"`, `"exakt"`, `unknown method "exakt"; did you mean "exact"?`},
		{`"routing"`, `"roting"`, `unknown stage "roting"; did you mean "routing"?`},
		{`"completed":-1`, `"completed":-`, `alternatives[0]: completed must be`},
		{`"completed":-1`, `"complete":-1`, `alternatives[0]: unknown field "complete"; did you mean "completed"?`},
		{`"alternatives"`, `"alternative"`, `unknown field "alternative"; did you mean "alternatives"?`},
		{`"replica":1`, `"replica":-1`, `alternatives[0]: replica must be an integer from 0`},
	} {
		var g Regret
		err := s.record([]byte(strings.Replace(line, c.from, c.to, 1)), &g)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.to, err, c.want)
		}
	}
	var g Regret
	if err := s.record([]byte(line), &g); err != nil || g.Alternatives[0].Own.Completed != -1 {
		t.Errorf("%+v, %v", g, err)
	}
}

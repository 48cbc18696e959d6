package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/llmtext"
	"blis/pkg/stream"
)

// strengthWords begin the line about each kind of strength.
var strengthWords = [...]string{attribution.StrengthClass: "class ", attribution.StrengthRule: "rule ",
	attribution.StrengthCached: "at least half of the prompt cached"}

var strengths = section{name: "STRENGTHS", explains: true, write: func(w *writer) {
	for _, s := range w.Findings.Strengths {
		text := fmt.Sprintf("%s%s: %d of %d %s", strengthWords[s.Kind], name(s.Name), s.Met, s.All,
			wordsFor[w.Findings.Loss.Kind].metAll)
		if s.OtherAll > 0 {
			text += fmt.Sprintf(", others %d of %d", s.OtherMet, s.OtherAll)
		}
		w.line("%s", text)
	}
	if s := w.Metrics.Shadow; s != nil && s.ExpectedTokens > 0 && 20*s.OverTokens <= s.ExpectedTokens {
		w.line("prefixes: %d of %d expected cached tokens were cached", s.ExpectedTokens-s.OverTokens, s.ExpectedTokens)
	}
}}

const maxAnomalies = 6

var anomalies = section{name: "ANOMALIES", explains: true, write: func(w *writer) {
	all := slices.Clone(w.Findings.Anomalies)
	slices.SortStableFunc(all, func(x, y stream.Anomaly) int {
		return cmp.Or(cmp.Compare(y.Severity, x.Severity), cmp.Compare(x.StartUS, y.StartUS))
	})
	for i := range all[:min(len(all), maxAnomalies)] {
		w.line("%s", anomaly(&all[i]))
	}
	w.omitted(len(all)-maxAnomalies, "anomalies")
}}

func anomaly(a *stream.Anomaly) string {
	where := ""
	switch {
	case !a.Replica.IsZero():
		where = fmt.Sprintf(" at %s/%d", name(a.Deployment), a.Replica)
	case a.SLOClass != "":
		where = " of " + name(a.SLOClass)
	}
	return fmt.Sprintf("%s%s, %.3f s to %.3f s, severity %.2f: %s", name(a.Type), where, float64(a.StartUS)/1e6,
		float64(a.EndUS)/1e6, a.Severity, short(a.Text, 160))
}

var headroom = section{name: "HEADROOM", explains: true, write: func(w *writer) {
	f := w.Findings
	if x := &f.Waiting; x.E2EMS > 0 {
		rest := "prefill and decode"
		if w.Analyzer.Disaggregates() {
			rest = "prefill, KV transfers and decode"
		}
		w.line("waiting (admission, %s, frontend, queue, preempted): %s of %s ms E2E of completed requests (%s); the"+
			" rest is %s.", w.part(attribution.PartFlow), number(x.WaitMS), number(x.E2EMS), percent(x.WaitMS/x.E2EMS),
			rest)
	}
	if g := f.Regret; g != nil && g.E2EMS > 0 {
		w.line("routing, one decision at a time: the best candidate saves %s of %s ms estimated E2E (%s);"+
			" avoidable with visible signals: %s. Another policy may save more.",
			number(g.HindsightMS), number(g.E2EMS),
			percent(g.HindsightMS/g.E2EMS), avoidableText(g))
	} else if w.Header.Run != nil {
		w.line("alternatives not evaluated: use blis-sim --counterfactual 3; for whole policies: scripts/headroom.")
	}
}}

// longName matches a name that frameworks mistake for a credential and replace in prompts.
var longName = regexp.MustCompile(`[A-Za-z0-9]{32,}`)

// commandOf is the command of a hint, or where to find it if it has a name that would be replaced.
func commandOf(h *attribution.Hint) string {
	if longName.MatchString(h.Command) {
		return "a command with a long name: see hints in --format json"
	}
	return stream.Printable(h.Command)
}

var more = section{name: "MORE", write: func(w *writer) {
	f := w.Findings
	if f == nil {
		if w.Shards > 0 {
			w.line("blis-summarize RUN without --merge explains the run of a shard")
		} else {
			w.line("blis-sim --trace decisions ... records the causes")
		}
		return
	}
	if h := w.mainHint(); h != nil {
		w.line("%s", commandOf(h))
	}
	if len(f.Worst) > 0 {
		e := &f.Worst[0]
		if e.Decision != "" {
			w.line("blis-summarize --explain %s RUN", name(e.Decision))
		}
		if name(e.Request) == e.Request { // else --explain would not find it
			w.line("blis-summarize --explain %s RUN", e.Request)
		}
		from := max(0, float64(e.ArrivalUS)/1e6-1)
		w.line("blis-summarize --explain %.1fs:%.1fs RUN", from, from+2)
	}
	if len(f.Patterns) > 0 {
		w.line("blis-summarize --component %s RUN", f.Patterns[0].Condition.Component.Name)
	}
	w.line("blis-summarize --strategy %s RUN", w.others)
	for _, s := range w.Scenarios {
		if s.Subject {
			w.line("RUN is %s.", name(s.Name))
		}
	}
}}

const maxEssentialLength = 80

// notes are the warnings. What the first says of the step times is essential: how far to trust the latencies.
var notes = section{name: "NOTES", write: func(w *writer) {
	if about := w.Metrics.DeploymentWarnings(); len(about) > 0 {
		_, fact, _ := strings.Cut(about[0], ": ")
		fact, _, _ = strings.Cut(fact, ": ")
		fact, _, _ = strings.Cut(fact, "; ")
		w.essential = llmtext.BreakCredentials(short(fact, maxEssentialLength))
	}
	for _, warning := range w.Warnings {
		w.line("%s", short(warning, 200))
	}
}}

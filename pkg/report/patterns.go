package report

import (
	"fmt"
	"slices"
	"strings"

	"blis/pkg/attribution"
)

var patterns = section{"PATTERNS", func(w *writer) {
	f := w.Findings
	if f == nil {
		return
	}
	said, compared := false, false
	for _, i := range w.order() {
		p := &f.Patterns[i]
		if w.Component != "" && p.Component != w.Component {
			continue
		}
		said, compared = true, compared || p.Lift > 0
		w.line("P%d %s, %s", i+1, condition(p), decider(p))
		w.line("   %d of %d %s (%s); met by %d requests%s", p.Lost, f.Loss.Lost, unit(f.Loss), percent(p.Loss), p.All, lift(p))
		w.line("   %s", cause(p))
	}
	if compared {
		w.line("lift: the rate of loss with the condition over that without it, of requests that no P before it explains.")
	}
	if !said && !f.Loss.Little() {
		of := ""
		if w.Component != "" {
			of = " of " + w.Component
		}
		w.line("no pattern%s: none has %s of the loss and a lift of %.1f.", of, percent(attribution.MinSupport), attribution.MinLift)
	}
	for i, r := range f.Never {
		if i == 4 {
			w.line("and %d more that NEVER fired", len(f.Never)-i)
			break
		}
		w.line("NEVER fired: %s (%s), 0 of %d", name(r.Path), short(r.Rule, 60), r.Evaluated)
	}
	if a := f.Admission; a != nil && a.Refused+a.Delays == 0 {
		w.line("admission %s NEVER refused or delayed: 0 of %d", name(a.Policy), a.Decisions)
	}
}}

// order is that of the patterns: those of the focus first.
func (w *writer) order() []int {
	var order []int
	for i := range w.Findings.Patterns {
		order = append(order, i)
	}
	if len(w.Focus) > 0 {
		slices.SortStableFunc(order, func(a, b int) int { return w.inFocus(a) - w.inFocus(b) })
	}
	return order
}

// inFocus is 0 for a pattern that is mostly of losses in the focus, else 1.
func (w *writer) inFocus(i int) int {
	if slices.Contains(w.Focus, attribution.Parts[w.Findings.Patterns[i].Part].Name) {
		return 0
	}
	return 1
}

// condition is the name of a pattern's condition with what it is about.
func condition(p *attribution.Pattern) string {
	if p.Value != "" {
		return p.Condition + " " + short(p.Value, 24)
	}
	return p.Condition
}

// decider says whose decisions a pattern is about.
func decider(p *attribution.Pattern) string {
	text := p.Component
	if p.Policy != "" {
		text += " " + name(p.Policy)
	}
	rule := p.Rule
	if p.Never != nil {
		rule = p.Never.Path
	}
	if rule != "" {
		text += ", rule " + name(rule)
	}
	return text
}

func lift(p *attribution.Pattern) string {
	switch {
	case p.Lift == 0:
		return ", that is nearly all: no lift"
	case p.ByMS:
		return ", lift " + times(p.Lift) + " by ms lost"
	}
	return ", lift " + times(p.Lift)
}

// times is a lift: how large it is above mostTimes says little.
func times(lift float64) string {
	if lift > mostTimes {
		return fmt.Sprintf("> %d", mostTimes)
	}
	return fmt.Sprintf("%.1f", lift)
}

const mostTimes = 100

// cause says what went on, by means over the losing requests of a pattern.
func cause(p *attribution.Pattern) string {
	m := &p.Means
	where := fmt.Sprintf("sent to a queue of %s while the shortest held %s", ms(m.Queue), ms(m.Shortest))
	behind := func(of float64, what string) string {
		return fmt.Sprintf("waited behind %s tokens, %s of them of %s; shortest queue %s (means)", ms(m.Ahead), ms(of), what, ms(m.Shortest))
	}
	switch p.Condition {
	case "stale_signal":
		saw := ""
		if m.SeenQueue != nil {
			saw = " that said " + ms(*m.SeenQueue)
		}
		return where + fmt.Sprintf(", on signals %s ms old%s (means)", ms(m.AgeMS), saw)
	case "hot_prefix":
		return where + fmt.Sprintf(", for a prefix of %s tokens (means)", ms(m.Expected))
	case "queue_unseen":
		return where + " (means), by a policy that reads neither queues nor batches"
	case "queue_outweighed":
		return where + " (means), which the router saw"
	case "prefix_unseen":
		return fmt.Sprintf("routed by no prefix; of %s prompt tokens %s were cached, and %s of %s tokens ahead were computed again (means)", ms(m.Input), ms(m.Cached), ms(m.AheadAgain), ms(m.Ahead))
	case "evicted":
		return fmt.Sprintf("of %s cached tokens expected %s were there, and %s of %s tokens ahead were computed again (means)", ms(m.Expected), ms(min(m.Cached, m.Expected)), ms(m.AheadAgain), ms(m.Ahead))
	case "prefix_passed":
		return fmt.Sprintf("sent past a replica with 256 prompt tokens more; found %s of %s cached (means)", ms(m.Cached), ms(m.Input))
	case "behind_lower_class":
		return behind(m.AheadLower, "lower classes")
	case "behind_tenant":
		return behind(m.AheadHeavy, "tenant "+short(p.Value, 24))
	case "preempted":
		return fmt.Sprintf("lost their place %s times and waited %s ms for it (means)", ms(m.Preemptions), ms(m.PreemptedMS))
	case "beside_prompts":
		return fmt.Sprintf("decoded %s tokens while their replica took on %s prompt tokens of others (means)", ms(m.Output), ms(m.Beside))
	case "busier_batch":
		return fmt.Sprintf("sent to a replica with %s requests while another had %s (means)", ms(m.Busy), ms(m.Idlest))
	case "cache_full":
		return fmt.Sprintf("waited for a batch of %s others while these took %s of the blocks (means, estimated)", ms(m.Besides), percent(min(1, m.Held)))
	case "seats_full":
		return fmt.Sprintf("waited for a batch while %s others, all that have seats, took %s of the blocks (means, estimated)", ms(m.Besides), percent(min(1, m.Held)))
	case "delayed":
		return fmt.Sprintf("delayed %s times by admission, which took %s ms (means)", ms(m.Delays), ms(m.AdmissionMS))
	case "impossible":
		return "refused on arrival by the engines' limits, before admission was asked"
	case "rejected":
		return "refused by admission"
	case "overload":
		return fmt.Sprintf("routed when the shortest queue held %s (mean)", ms(m.Shortest)) + unstopped(p)
	case "crowded":
		return fmt.Sprintf("routed when the idlest replica had %s requests (mean)", ms(m.Idlest)) + unstopped(p)
	case "tenant", "class", "burst", "long_prompt", "hot_replica":
		return "no other condition explains these; " + meaning(p.Condition)
	}
	return meaning(p.Condition)
}

// unstopped says which rule might have kept replicas from having too much.
func unstopped(p *attribution.Pattern) string {
	switch {
	case p.Never != nil:
		return fmt.Sprintf("; admission's rule %s NEVER fired, 0 of %d", short(p.Never.Rule, 60), p.Never.Evaluated)
	case p.Refusals != nil && p.Refusals.Refused+p.Refusals.Delays == 0:
		return fmt.Sprintf("; admission NEVER refused or delayed, 0 of %d", p.Refusals.Decisions)
	case p.Refusals != nil:
		return fmt.Sprintf("; admission refused %d and delayed %d of %d", p.Refusals.Refused, p.Refusals.Delays, p.Refusals.Decisions)
	case p.Policy == "always-admit":
		return "; admission admits all"
	}
	return ""
}

var conditions = section{"CONDITIONS", func(w *writer) {
	f := w.Findings
	if f == nil || len(f.Tallies) == 0 {
		return
	}
	rows := [][]string{{"condition", "component", "lost", "met_by", "lost_pct", "lift"}}
	for _, t := range f.Tallies {
		if w.Component != "" && t.Component != w.Component || len(rows) > 20 {
			continue
		}
		lift := "-"
		if t.Lift > 0 {
			lift = times(t.Lift)
			if t.ByMS {
				lift += " (ms)"
			}
		}
		rows = append(rows, []string{short(strings.TrimSpace(t.Condition+" "+t.Value), 40), t.Component, fmt.Sprint(t.Lost), fmt.Sprint(t.All), fmt.Sprintf("%.1f", 100*float64(t.Lost)/float64(t.All)), lift})
	}
	if len(rows) > 1 {
		w.table(rows)
		w.line("lost of %d, met_by of %d; conditions overlap; --component NAME says what they mean", f.Loss.Lost, f.Loss.Judged)
	}
}}

var meanings = section{"MEANINGS", func(w *writer) {
	for _, c := range attribution.Conditions {
		if w.Findings != nil && c.Value.Component == w.Component && slices.ContainsFunc(w.Findings.Tallies, func(t attribution.Tally) bool { return t.Condition == c.Name }) {
			w.line("%s: %s", c.Name, c.Doc)
		}
	}
}}

package cli

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// plainCheck writes the lines of a text anew from a run: out are those that missed a
// target, in the others.
type plainCheck struct {
	*plainRun
	out, in []*plainRequest
	section string
	pattern string          // of the lines under P1, P2 and so on
	of      []*plainRequest // the losing ones that it explains
	each    [][]*plainRequest
	gone    map[*plainRequest]bool // who meets an earlier pattern
	example *plainRequest          // of the lines under W1
}

// line writes the line anew that begins as this one does; known is false where that is
// none which is asked for.
func (c *plainCheck) line(line string) (want string, known bool) {
	for _, l := range []struct {
		begins string
		write  func(line string) string
	}{
		{"[blis-summary/1]", func(string) string { return "[blis-summary/1] " + c.policies() }},
		{"state: ", c.state}, {"where: ", c.mostly}, {"first cause: ", c.firstCause}, {"fitness: ", c.fitness}, {"requests: ", c.requestsLine}, {"regret (", c.regretLine}, {"run: ", c.runLine},
		{"mean ms ", nil}, {"missed  ", c.lossRow}, {"met  ", c.lossRow}, {"misses by the part", c.blame},
		{"name ", nil}, {"P", c.begin}, {"NEVER fired", c.never}, {"admission tree NEVER", func(string) string {
			return fmt.Sprintf("admission tree NEVER refused or delayed: 0 of %d", len(c.requests))
		}},
		{"lift: ", nil}, {"W", c.who}, {"   chose ", c.chose}, {"   not ", c.not}, {"   true queue", c.queue}, {"   ms: ", c.times}, {"   best other", c.other}, {"   played otherwise", c.played},
		{"prefixes: ", c.prefixes}, {"class ", c.keptClass}, {"waiting ", c.waiting}, {"routing, each", c.room}, {"other choices", func(l string) string { return l }},
		{"slo_violation", c.anomaly}, {"preemption_storm", c.anomaly}, {"blis-summarize --explain", c.more}, {"blis-summarize --", nil}, {"[CUT] at 1500 tokens (estimated): ", nil},
	} {
		if strings.HasPrefix(line, l.begins) {
			if l.write == nil {
				return line, true
			}
			return l.write(line), true
		}
	}
	switch {
	case strings.HasPrefix(c.section, "[BY "):
		return c.group(line), true
	case c.section == "[PATTERNS]" && strings.Contains(line, " met by "):
		return c.support(), true
	case c.section == "[PATTERNS]" && c.pattern != "":
		return "   " + c.cause(), true
	}
	return "", false
}

func (c *plainCheck) policies() string {
	var parts []string
	for _, stage := range []string{"admission", "priority", "routing", "scheduler"} {
		parts = append(parts, stage+" "+c.header.Run.Config.Policies[stage].Type)
	}
	return strings.Join(parts, ", ")
}

func (c *plainCheck) state(string) string {
	met, all := float64(len(c.in)), float64(len(c.requests))
	word := "failing"
	if met >= 0.9*all {
		word = "strained"
	}
	if met >= 0.99*all {
		word = "healthy"
	}
	text := fmt.Sprintf("state: %s. %d of %d requests met their SLO targets (%s), %d missed", word, len(c.in), len(c.requests), share(met, all), len(c.out))
	if len(c.out) == 0 {
		return text + "."
	}
	counts := map[string]int{}
	for _, r := range c.out {
		which, _ := c.missed(r)
		for _, w := range which {
			counts[w]++
		}
	}
	var parts []string
	for _, w := range []string{"ttft_ms", "tpot_ms", "e2e_ms"} {
		if counts[w] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", strings.ToUpper(w[:len(w)-3]), counts[w]))
		}
	}
	return text + ": " + strings.Join(parts, ", ") + "."
}

// part is where a request that missed its TTFT lost most against those of its class that
// met theirs.
func (c *plainCheck) part(r *plainRequest) string {
	best, most := "", math.Inf(-1)
	for _, part := range []string{"dispatch", "queue", "prefill", "preempted"} {
		usual, n := 0.0, 0.0
		for _, o := range c.in {
			if o.Class == r.Class {
				usual += o.split()[part]
				n++
			}
		}
		if over := r.split()[part] - usual/n; r.split()[part] > 0 && over > most {
			best, most = part, over
		}
	}
	return best
}

func (c *plainCheck) mostly(string) string {
	counts := map[string]int{}
	for _, r := range c.out {
		counts[c.part(r)+" of "+r.Class]++
	}
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return counts[b] - counts[a] })
	held, parts := 0, []string{}
	for _, name := range names {
		if 10*held >= 9*len(c.out) {
			break
		}
		held += counts[name]
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return fmt.Sprintf("where: %s (%s of the loss).", strings.Join(parts, ", "), share(float64(held), float64(len(c.out))))
}

// firstCause reads which pattern it is from the text, and counts the rest.
func (c *plainCheck) firstCause(line string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(line, "first cause: P1 "), " explains")
	c.choose(1, name)
	return fmt.Sprintf("first cause: P1 %s explains %s of it: %s.", name, share(float64(len(c.of)), float64(len(c.out))), c.cause())
}

// choose makes the pattern the one that lines are about. Who meets one before it does not
// count.
func (c *plainCheck) choose(n int, pattern string) {
	if n == 1 {
		c.gone, c.each = map[*plainRequest]bool{}, nil
	} else {
		for _, r := range c.requests {
			if patternOf[c.pattern](c.plainRun, r) {
				c.gone[r] = true
			}
		}
	}
	c.pattern = pattern
	c.of = c.only(func(r *plainRequest) bool { return !c.gone[r] && c.lost(r) && patternOf[pattern](c.plainRun, r) })
	c.each = append(c.each, c.of)
}

func (c *plainCheck) cause() string {
	queue := func(r *plainRequest) float64 { return c.queues(r)[r.Replica] }
	shortest := func(r *plainRequest) float64 { return slices.Min(c.queues(r)) }
	ahead := func(of func(*plainRequest) float64) string {
		return show(mean(c.of, func(r *plainRequest) float64 { return sum(c.ahead(r), of) }))
	}
	switch c.pattern {
	case "stale_signal":
		return fmt.Sprintf("sent to a queue of %s while the shortest held %s, on signals %s ms old that said %s (means)", show(mean(c.of, queue)), show(mean(c.of, shortest)),
			show(mean(c.of, func(r *plainRequest) float64 { return r.candidate(true)["age_us"].(float64) / 1000 })),
			show(mean(c.of, func(r *plainRequest) float64 { return r.candidate(true)["queue_depth"].(float64) })))
	case "prefix_unseen":
		return fmt.Sprintf("routed by no prefix; of %s prompt tokens %s were cached, and %s of %s tokens ahead were computed again (means)",
			show(mean(c.of, func(r *plainRequest) float64 { return r.Input })), show(mean(c.of, func(r *plainRequest) float64 { return r.Cached })), ahead(c.again), ahead((*plainRequest).work))
	case "hot_prefix":
		return fmt.Sprintf("sent to a queue of %s while the shortest held %s, for a prefix of %s tokens (means)", show(mean(c.of, queue)), show(mean(c.of, shortest)), show(mean(c.of, func(r *plainRequest) float64 { return r.Expected })))
	case "behind_lower_class":
		lower := mean(c.of, func(r *plainRequest) float64 { return sum(c.ahead(r), c.lower(r)) })
		return fmt.Sprintf("waited behind %s tokens, %s of them of lower classes; shortest queue %s (means)", ahead((*plainRequest).work), show(lower), show(mean(c.of, shortest)))
	case "behind_tenant abuser":
		return fmt.Sprintf("waited behind %s tokens, %s of them of tenant abuser; shortest queue %s (means)", ahead((*plainRequest).work), ahead(ofTenant("abuser")), show(mean(c.of, shortest)))
	case "overload":
		rule, evaluated := c.silent()
		return fmt.Sprintf("routed when the shortest queue held %s (mean); admission's rule %s NEVER fired, 0 of %s", show(mean(c.of, shortest)), rule["rule"], evaluated)
	}
	return ""
}

// silent is the rule that was asked and never fired.
func (c *plainCheck) silent() (map[string]any, string) {
	for _, r := range c.metrics["control"].(map[string]any)["rules"].([]any) {
		if r := r.(map[string]any); r["hits"] == 0.0 && r["evaluated"] != 0.0 {
			return r, fmt.Sprint(r["evaluated"])
		}
	}
	return nil, ""
}

func (c *plainCheck) never(string) string {
	r, n := c.silent()
	return fmt.Sprintf("NEVER fired: %s (%s), 0 of %s", r["path"], r["rule"], n)
}

func (c *plainCheck) begin(line string) string {
	var n int
	if _, err := fmt.Sscanf(line, "P%d ", &n); err != nil {
		return err.Error()
	}
	if !strings.Contains(line, ": ") { // else it is advice
		name, _, _ := strings.Cut(strings.TrimPrefix(line, fmt.Sprintf("P%d ", n)), ",")
		c.choose(n, name)
	}
	return line
}

func (c *plainCheck) support() string {
	met, all, lost := 0, 0, 0
	for _, r := range c.requests {
		if c.gone[r] {
			continue
		}
		all++
		if c.lost(r) {
			lost++
		}
		if patternOf[c.pattern](c.plainRun, r) {
			met++
		}
	}
	text := fmt.Sprintf("   %d of %d misses (%s); met by %d requests", len(c.of), len(c.out), share(float64(len(c.of)), float64(len(c.out))), met)
	if all-met < 10 {
		return text + ", that is nearly all: no lift"
	}
	with := (float64(len(c.of)) + 0.5) / (float64(met) + 1)
	without := (float64(lost-len(c.of)) + 0.5) / (float64(all-met) + 1)
	over := func(of []*plainRequest) float64 {
		return sum(of, func(r *plainRequest) float64 { _, over := c.missed(r); return over })
	}
	ms := over(c.of) / float64(met) / ((over(c.only(func(r *plainRequest) bool { return !c.gone[r] })) - over(c.of)) / float64(all-met))
	if 2*lost > all && ms > with/without {
		return text + ", lift " + atMost100(ms) + " by ms lost"
	}
	return text + ", lift " + atMost100(with/without)
}

// doubted is a percentile with a ? if it is of fewer than 10/(1-p) samples.
func doubted(all []*plainRequest, percent float64, of func(*plainRequest) float64) string {
	text := show(quantile(all, percent, of))
	if n := len(slices.DeleteFunc(slices.Clone(all), func(r *plainRequest) bool { return of(r) < 0 })); float64(n) < 1000/(100-percent) {
		return text + "?"
	}
	return text
}

func atMost100(x float64) string {
	if x > 100 {
		return "> 100"
	}
	return fmt.Sprintf("%.1f", x)
}

func (c *plainCheck) fitness(string) string {
	return fmt.Sprintf("fitness: %.4f = 0.1 + 0.9 x the share that met (no --fitness is given).", 0.1+0.9*min(float64(len(c.in))/float64(len(c.requests)), 1-1e-9))
}

func (c *plainCheck) requestsLine(string) string {
	text := fmt.Sprintf("requests: %d offered, %d completed", len(c.requests), len(c.only(func(r *plainRequest) bool { return r.State == "completed" })))
	for _, d := range []struct {
		name string
		of   func(*plainRequest) float64
	}{{"TTFT", (*plainRequest).ttft}, {"TPOT", (*plainRequest).tpot}, {"E2E", (*plainRequest).e2e}} {
		text += fmt.Sprintf("; %s ms p50 %s p99 %s", d.name, doubted(c.requests, 50, d.of), doubted(c.requests, 99, d.of))
	}
	if strings.Contains(text, "?") {
		text += " (? few samples)"
	}
	return text + "."
}

// regretted adds up what the regrets have under a name.
func (c *plainCheck) regretted(name string) float64 {
	return sum(c.requests, func(r *plainRequest) float64 { return r.regret[name].(float64) })
}

func (c *plainCheck) regretLine(string) string {
	return fmt.Sprintf("regret (estimated, E2E): %s ms in hindsight, %s ms avoidable with what was seen; over %d decisions.", show(c.regretted("hindsight_ms")), show(c.regretted("avoidable_ms")), len(c.requests))
}

func (c *plainCheck) runLine(string) string {
	from, to := math.Inf(1), 0.0
	for _, r := range c.requests {
		from, to = min(from, r.Arrival), max(to, r.End)
	}
	k := c.header.Run.Key
	return fmt.Sprintf("run: policy %s, workload %s, seeds %d (workload) %d %d; %.3f s.", k.Policy[:12], c.digest[:12], k.Workload, k.Sim, k.Jitter, (to-from)/1e6)
}

func (c *plainCheck) lossRow(line string) string {
	all := c.in
	if strings.HasPrefix(line, "missed") {
		all = c.out
	}
	fields := []string{strings.Fields(line)[0], fmt.Sprint(len(all))}
	for _, part := range []string{"admission", "dispatch", "queue", "prefill", "decode", "preempted"} {
		of := func(r *plainRequest) float64 { return r.split()[part] }
		if sum(c.requests, of) > 0 {
			fields = append(fields, show(mean(all, of)))
		}
	}
	return spaced(line, append(fields, show(mean(all, (*plainRequest).e2e))))
}

// spaced puts the fields where those of line stand, if there are as many and each ends
// where its does.
func spaced(line string, fields []string) string {
	old := strings.Fields(line)
	if len(old) != len(fields) {
		return strings.Join(fields, " ")
	}
	text, at := "", 0
	for i, f := range old {
		begin := at + strings.Index(line[at:], f)
		end := begin + len(f)
		if i == 0 {
			text = fields[0]
		} else {
			text += strings.Repeat(" ", max(1, end-len(text)-len(fields[i]))) + fields[i]
		}
		at = end
	}
	return text
}

func (c *plainCheck) blame(string) string {
	counts, over := map[string]int{}, 0.0
	for _, r := range c.out {
		counts[c.part(r)]++
		_, o := c.missed(r)
		over += o
	}
	var parts []string
	for _, part := range []string{"admission", "dispatch", "queue", "prefill", "decode", "preempted"} {
		if counts[part] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", part, counts[part]))
		}
	}
	return fmt.Sprintf("misses by the part most above the mean of those met in their class: %s; above target by %s ms in all", strings.Join(parts, ", "), show(over))
}

func (c *plainCheck) group(line string) string {
	name := strings.Fields(line)[0]
	all := c.only(func(r *plainRequest) bool { return r.Class == name || r.Tenant == name })
	lost := float64(len(slices.DeleteFunc(slices.Clone(all), func(r *plainRequest) bool { return !c.lost(r) })))
	return spaced(line, []string{name, fmt.Sprint(len(all)), fmt.Sprint(lost), fmt.Sprintf("%.1f", 100-100*lost/float64(len(all))), fmt.Sprintf("%.1f", 100*lost/float64(len(c.out))),
		doubted(all, 99, (*plainRequest).ttft), doubted(all, 99, (*plainRequest).tpot), doubted(all, 99, (*plainRequest).e2e)})
}

// who finds the request that an example is about: of those that its pattern explains, or
// that none does, the one most above its target.
func (c *plainCheck) who(line string) string {
	var n, pattern int
	of := slices.DeleteFunc(slices.Clone(c.out), func(r *plainRequest) bool { return slices.Contains(slices.Concat(c.each...), r) })
	if _, err := fmt.Sscanf(line, "W%d of P%d:", &n, &pattern); err == nil {
		of = c.each[pattern-1]
	}
	c.example = nil
	most := 0.0
	for _, r := range of {
		if _, over := c.missed(r); over > most {
			c.example, most = r, over
		}
	}
	head, _, _ := strings.Cut(line, ":")
	r := c.example
	return fmt.Sprintf("%s: %s for %s, class %s, tenant %s, at %.3f s", head, r.Decision, r.ID, r.Class, r.Tenant, r.Arrival/1e6)
}

func (c *plainCheck) chose(string) string {
	return "   chose " + c.saw(c.example.candidate(true)) + fmt.Sprintf(" (%s)", c.example.routing["reason"])
}

func (c *plainCheck) not(string) string { return "   not " + c.saw(c.example.candidate(false)) }

func (c *plainCheck) saw(candidate map[string]any) string {
	parts := []string{}
	add := func(format, name string, times float64) {
		if x, ok := candidate[name].(float64); ok {
			parts = append(parts, fmt.Sprintf(format, x*times))
		}
	}
	add("queue %.0f", "queue_depth", 1)
	add("prefix tokens %.0f", "matched_blocks", float64(c.header.Run.Config.Deployments[0].Engine.Block))
	add("kv %.1f %%", "kv_util", 100)
	add("inflight %.0f", "inflight", 1)
	add("score %.3f", "score", 1)
	text := fmt.Sprintf("%s/%.0f: %s", candidate["deployment"], candidate["replica"], strings.Join(parts, ", "))
	if age, ok := candidate["age_us"].(float64); ok {
		text += fmt.Sprintf(", %s ms old", show(age/1000))
	}
	return text
}

func (c *plainCheck) queue(string) string {
	r := c.example
	q := c.queues(r)
	text := fmt.Sprintf("   true queue there %.0f, shortest %.0f", q[r.Replica], slices.Min(q))
	if least := slices.Min(q); least < q[r.Replica] {
		text += fmt.Sprintf(" at main/%d", slices.Index(q, least))
	}
	return text + fmt.Sprintf("; waited behind %.0f tokens", sum(c.ahead(r), (*plainRequest).work))
}

func (c *plainCheck) times(string) string {
	r := c.example
	var parts []string
	for _, part := range []string{"admission", "dispatch", "queue", "prefill", "decode", "preempted"} {
		if x := r.split()[part]; x > 0 {
			parts = append(parts, part+" "+show(x))
		}
	}
	text := "   ms: " + strings.Join(parts, " | ")
	for _, m := range []struct {
		name, target string
		is           float64
	}{{"TTFT", "ttft_ms", r.ttft()}, {"TPOT", "tpot_ms", r.tpot()}, {"E2E", "e2e_ms", r.e2e()}} {
		text += fmt.Sprintf("; %s %s ms", m.name, show(m.is))
		if limit := c.target(r, m.target); limit > 0 && m.is > limit {
			text += fmt.Sprintf(" (MISSED %g)", limit)
		} else if limit > 0 {
			text += fmt.Sprintf(" (of %g)", limit)
		}
	}
	return text
}

func (c *plainCheck) other(string) string {
	var ours, best map[string]any
	for _, a := range c.example.regret["alternatives"].([]any) {
		switch a := a.(map[string]any); {
		case a["chosen"] == true:
			ours = a
		case best == nil:
			best = a
		}
	}
	return fmt.Sprintf("   best other main/%.0f: E2E %s ms against %s (estimated); avoidable %s ms", best["replica"], show(best["e2e_ms"].(float64)), show(ours["e2e_ms"].(float64)), show(c.example.regret["avoidable_ms"].(float64)))
}

func (c *plainCheck) played(string) string {
	text, most, least := "", math.Inf(-1), math.Inf(-1)
	for _, g := range c.exact {
		if g["decision"] != c.example.Decision {
			continue
		}
		for _, a := range g["alternatives"].([]any) {
			a := a.(map[string]any)
			all := a["all"].(map[string]any)
			gained, lost, less := all["slo_gained"].(float64), all["slo_lost"].(float64), all["e2e_ms"].(float64)
			if gained-lost < most || gained-lost == most && less <= least {
				continue
			}
			most, least = gained-lost, less
			what, ok := a["verdict"].(string)
			if !ok {
				what = fmt.Sprintf("%s/%.0f", a["deployment"], a["replica"])
			}
			text = fmt.Sprintf("   played otherwise, best %s: %.0f more met and %.0f more missed of all; E2E of all %s ms less (exact)", what, gained, lost, show(less))
		}
	}
	return text
}

func (c *plainCheck) keptClass(line string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(line, "class "), ":")
	met := len(slices.DeleteFunc(slices.Clone(c.in), func(r *plainRequest) bool { return r.Class != name }))
	all := len(c.only(func(r *plainRequest) bool { return r.Class == name }))
	text := fmt.Sprintf("class %s: %d of %d met their targets", name, met, all)
	if others := len(c.requests) - all; others > 0 {
		text += fmt.Sprintf(", of the others %d of %d", len(c.in)-met, others)
	}
	return text
}

func (c *plainCheck) prefixes(string) string {
	expected := sum(c.requests, func(r *plainRequest) float64 { return r.Expected })
	there := sum(c.requests, func(r *plainRequest) float64 { return min(r.Expected, r.Cached) })
	return fmt.Sprintf("prefixes: %.0f of %.0f tokens that the router expected to be cached were", there, expected)
}

func (c *plainCheck) waiting(string) string {
	wait := sum(c.requests, func(r *plainRequest) float64 { s := r.split(); return r.e2e() - s["prefill"] - s["decode"] })
	all := sum(c.requests, (*plainRequest).e2e)
	return fmt.Sprintf("waiting (admission, dispatch, queue, preempted) is %s of %s ms E2E of completed requests (%s); the rest is in batches.", show(wait), show(all), share(wait, all))
}

func (c *plainCheck) room(string) string {
	ours := sum(c.requests, func(r *plainRequest) float64 {
		for _, a := range r.regret["alternatives"].([]any) {
			if a := a.(map[string]any); a["chosen"] == true {
				return a["e2e_ms"].(float64)
			}
		}
		return math.NaN() // the choice must be shown
	})
	saved := c.regretted("hindsight_ms")
	return fmt.Sprintf("routing, each decision alone: the best candidate saves %s of %s ms estimated E2E (%s); avoidable with what was seen: %s ms.", show(saved), show(ours), share(saved, ours), show(c.regretted("avoidable_ms")))
}

func (c *plainCheck) anomaly(line string) string {
	for _, a := range c.anomalies {
		where := ""
		if of, ok := a["slo_class"].(string); ok {
			where = " of " + of
		}
		if at, ok := a["replica"].(float64); ok {
			where = fmt.Sprintf(" at %s/%.0f", a["deployment"], at)
		}
		text := fmt.Sprintf("%s%s, %.3f s to %.3f s, severity %.2f: %s", a["type"], where, a["start_us"].(float64)/1e6, a["end_us"].(float64)/1e6, a["severity"], a["text"])
		if text == line {
			return text
		}
	}
	return "no such anomaly"
}

// more are questions about the first example: its decision, itself, and a second on
// either side of its arrival.
func (c *plainCheck) more(line string) string {
	var r *plainRequest
	most, of := 0.0, c.out
	if len(c.each) > 0 {
		of = c.each[0]
	}
	for _, o := range of {
		if _, over := c.missed(o); over > most {
			r, most = o, over
		}
	}
	from := max(0, r.Arrival/1e6-1)
	for _, what := range []string{r.Decision, r.ID, fmt.Sprintf("%.1fs:%.1fs", from, from+2)} {
		if text := "blis-summarize --explain " + what + " RUN"; text == line {
			return text
		}
	}
	return "no such question"
}

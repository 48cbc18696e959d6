package cli

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// plainCheck writes the lines of a text from a run.
type plainCheck struct {
	*plainRun
	missing, meeting []*plainRequest // that missed a target, and the others
	section          string
	pattern          string                 // of the lines under P1, P2 and so on
	explained        []*plainRequest        // the losing requests that it explains
	byPattern        [][]*plainRequest      // those of all patterns so far
	matched          map[*plainRequest]bool // requests that match an earlier pattern
	example          *plainRequest          // of the lines under W1
}

// line writes the line that begins as this one does; known is false where no check covers it.
func (c *plainCheck) line(line string) (want string, known bool) {
	for _, l := range c.writers() {
		if strings.HasPrefix(line, l.prefix) {
			if l.write == nil {
				return line, true
			}
			return l.write(line), true
		}
	}
	switch {
	case c.section == "[BY REPLICA]":
		return c.replicaRow(line), true
	case c.section == "[SETUP]": // settings
		return line, true
	case strings.HasPrefix(c.section, "[BY "):
		return c.group(line), true
	case c.section == "[PATTERNS]" && strings.Contains(line, " requests match, "):
		return c.support(), true
	case c.section == "[PATTERNS]" && c.pattern != "":
		return "   " + c.cause(), true
	}
	return "", false
}

// lineWriter writes the lines that begin with prefix; write is nil for lines without numbers of the run.
type lineWriter struct {
	prefix string
	write  func(line string) string
}

func (c *plainCheck) writers() []lineWriter {
	return []lineWriter{
		{"[blis-summary/1]", func(string) string { return "[blis-summary/1] " + c.policies() }},
		{"state: ", c.state}, {"where: ", c.mainLoss}, {"when: ", c.lossWindow},
		{"top cause: ", c.topCause}, {"change: ", c.change}, {"fitness: ", c.fitness},
		{"requests: ", c.requestsLine}, {"regret (", c.regretLine}, {"run: ", c.runLine},
		{"replicas: ", c.idleReplicas},
		{"? few samples", nil}, {"mean ms ", nil}, {"missed  ", c.lossRow}, {"met  ", c.lossRow},
		{"misses by the part", c.dominant},
		{"name ", nil}, {"P", c.patternLine}, {"NEVER fired", c.neverFired}, {"admission tree NEVER", c.neverRejected},
		{"lift: ", nil}, {"W", c.exampleLine}, {"   chose ", c.chose}, {"   next best ", c.nextBest},
		{"   actual queue", c.queue}, {"   ms: ", c.times}, {"   best other", c.alternative},
		{"   re-simulated", c.exactAlternative}, {"prefixes: ", c.prefixes}, {"class ", c.classStrength},
		{"waiting ", c.waiting}, {"routing, one", c.headroom},
		{"alternatives not evaluated", func(l string) string { return l }},
		{"slo_violation", c.anomaly}, {"preemption_storm", c.anomaly}, {"blis-summarize --explain", c.explainCommand},
		{"blis-summarize --", nil}, {"blis-sim --replay", nil}, {"[CUT] at --max-tokens 1500: ", nil},
	}
}

func (c *plainCheck) policies() string {
	var parts []string
	defaults := map[string]string{"admission": "always-admit", "priority": "constant", "scheduler": "fcfs"}
	for _, stage := range []string{"admission", "priority", "routing", "scheduler"} {
		if policy := c.header.Run.Config.Policies[stage].Type; policy != defaults[stage] {
			parts = append(parts, stage+" "+policy)
		}
	}
	return strings.Join(parts, ", ")
}

func (c *plainCheck) state(string) string {
	met, all := float64(len(c.meeting)), float64(len(c.requests))
	word := "failing"
	if met >= 0.9*all {
		word = "degraded"
	}
	if met >= 0.99*all {
		word = "healthy"
	}
	text := fmt.Sprintf("state: %s. %d of %d requests met their SLO targets (%s), %d missed", word, len(c.meeting),
		len(c.requests), share(met, all), len(c.missing))
	if len(c.missing) == 0 {
		return text + "."
	}
	counts := map[string]int{}
	for _, r := range c.missing {
		targets, _ := c.missed(r)
		for _, x := range targets {
			counts[x]++
		}
	}
	var parts []string
	for _, x := range []string{"ttft_ms", "tpot_ms", "e2e_ms"} {
		if counts[x] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", strings.ToUpper(x[:len(x)-3]), counts[x]))
		}
	}
	return text + ": " + strings.Join(parts, ", ") + "."
}

// part is the dominant part of a request that missed its TTFT: the largest excess over the mean of
// the requests of its class that met their targets.
func (c *plainCheck) part(r *plainRequest) string {
	best, most := "", math.Inf(-1)
	for _, part := range []string{"frontend", "queue", "prefill", "preempted"} {
		total, n := 0.0, 0.0
		for _, o := range c.meeting {
			if o.Class == r.Class {
				total += o.split()[part]
				n++
			}
		}
		if excess := r.split()[part] - total/n; r.split()[part] > 0 && excess > most {
			best, most = part, excess
		}
	}
	return best
}

func (c *plainCheck) mainLoss(string) string {
	counts := map[string]int{}
	for _, r := range c.missing {
		counts[c.part(r)+" ("+r.Class+")"]++
	}
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return counts[b] - counts[a] })
	covered, parts := 0, []string{}
	for _, name := range names {
		if 10*covered >= 9*len(c.missing) {
			break
		}
		covered += counts[name]
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return fmt.Sprintf("where: %s; %s of the misses.", strings.Join(parts, ", "),
		share(float64(covered), float64(len(c.missing))))
}

// topCause takes the name of the pattern from the text and counts the rest.
func (c *plainCheck) topCause(line string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(line, "top cause: P1 "), " explains")
	c.choose(1, name)
	explained := share(float64(len(c.explained)), float64(len(c.missing)))
	text := fmt.Sprintf("top cause: P1 %s explains %s of the misses", name, explained)
	if strings.HasSuffix(line, " of the misses.") { // there was no room for the cause
		return text + "."
	}
	return text + ": " + c.cause() + "."
}

// change takes the settings from the text and counts what the first pattern explains.
func (c *plainCheck) change(line string) string {
	if len(c.missing) == 0 {
		return "change: nothing; no request missed a target."
	}
	settings, _, _ := strings.Cut(line, " (these")
	return fmt.Sprintf("%s (these misses are %s of the requests)", settings,
		share(float64(len(c.explained)), float64(len(c.requests))))
}

// choose sets the pattern of the next lines. Requests that match an earlier one do not count.
func (c *plainCheck) choose(n int, pattern string) {
	if n == 1 {
		c.matched, c.byPattern = map[*plainRequest]bool{}, nil
	} else {
		for _, r := range c.requests {
			if patternOf[c.pattern](c.plainRun, r) {
				c.matched[r] = true
			}
		}
	}
	c.pattern = pattern
	c.explained = c.only(func(r *plainRequest) bool {
		return !c.matched[r] && c.lost(r) && patternOf[pattern](c.plainRun, r)
	})
	c.byPattern = append(c.byPattern, c.explained)
}

// mean is the mean of a value over the losing requests that the pattern explains, as text.
func (c *plainCheck) mean(value func(*plainRequest) float64) string {
	return show(mean(c.explained, value))
}

// meanAhead is the mean of a sum over the requests ahead.
func (c *plainCheck) meanAhead(value func(*plainRequest) float64) string {
	return c.mean(func(r *plainRequest) float64 { return sum(c.ahead(r), value) })
}

// signalOf is one that the router read about the chosen replica.
func signalOf(name string) func(*plainRequest) float64 {
	return func(r *plainRequest) float64 { return r.candidate(true)[name].(float64) }
}

func (c *plainCheck) cause() string {
	shortest := c.mean(func(r *plainRequest) float64 { return slices.Min(c.queues(r)) })
	sentTo := fmt.Sprintf("sent to a queue of %s requests, shortest %s",
		c.mean(func(r *plainRequest) float64 { return c.queues(r)[r.Replica] }), shortest)
	meanwhile := fmt.Sprintf("waited while %s tokens started", c.meanAhead((*plainRequest).work))
	from := func(tokens, source string) string {
		return fmt.Sprintf("%s, %s from %s; shortest queue %s (means)", meanwhile, tokens, source, shortest)
	}
	switch c.pattern {
	case "stale_signal":
		age := func(r *plainRequest) float64 { return signalOf("age_us")(r) / 1000 }
		return fmt.Sprintf("%s; signals %s ms old showed %s (means)", sentTo, c.mean(age),
			c.mean(signalOf("queue_depth")))
	case "prefix_unseen":
		return fmt.Sprintf("routed without prefix lookup; %s of %s prompt tokens cached; %s, %s recomputed (means)",
			c.mean(func(r *plainRequest) float64 { return r.Cached }),
			c.mean(func(r *plainRequest) float64 { return r.Input }), meanwhile, c.meanAhead(c.recomputed))
	case "hot_prefix":
		return fmt.Sprintf("%s, for a prefix of %s tokens (means)", sentTo,
			c.mean(func(r *plainRequest) float64 { return r.Expected }))
	case "behind_lower_class":
		lower := func(r *plainRequest) float64 { return sum(c.ahead(r), c.lowerClass(r)) }
		return from(c.mean(lower), "lower classes")
	case "behind_tenant abuser":
		return from(c.meanAhead(ofTenant("abuser")), "tenant abuser")
	case "overload":
		admission := "admission admits all"
		if rule, evaluated := c.silentRule(); rule != nil {
			admission = fmt.Sprintf("admission rule %s NEVER fired, 0 of %s", rule["rule"], evaluated)
		}
		return fmt.Sprintf("routed when the shortest queue held %s requests; outputs of %s tokens (means);"+
			" %s", shortest,
			c.mean(func(r *plainRequest) float64 { return r.Output }), admission)
	}
	return ""
}

// silentRule is the rule that was evaluated and never fired.
func (c *plainCheck) silentRule() (map[string]any, string) {
	control, _ := c.metrics["control"].(map[string]any)
	rules, _ := control["rules"].([]any)
	for _, r := range rules {
		if r := r.(map[string]any); r["hits"] == 0.0 && r["evaluated"] != 0.0 {
			return r, fmt.Sprint(r["evaluated"])
		}
	}
	return nil, ""
}

func (c *plainCheck) neverFired(string) string {
	r, n := c.silentRule()
	return fmt.Sprintf("NEVER fired: %s (%s), 0 of %s", r["path"], r["rule"], n)
}

func (c *plainCheck) neverRejected(string) string {
	return fmt.Sprintf("admission tree NEVER rejected or delayed: 0 of %d", len(c.requests))
}

// patternLine takes the name of the pattern from the text.
func (c *plainCheck) patternLine(line string) string {
	var n int
	if _, err := fmt.Sscanf(line, "P%d ", &n); err != nil {
		return err.Error()
	}
	if !strings.Contains(line, ": ") { // else it is a hint
		name, _, _ := strings.Cut(strings.TrimPrefix(line, fmt.Sprintf("P%d ", n)), ",")
		c.choose(n, name)
	}
	return line
}

// support is the line with the counts and the lift of the pattern.
func (c *plainCheck) support() string {
	match, all, lost := 0, 0, 0
	for _, r := range c.requests {
		if c.matched[r] {
			continue
		}
		all++
		if c.lost(r) {
			lost++
		}
		if patternOf[c.pattern](c.plainRun, r) {
			match++
		}
	}
	n := len(c.explained)
	text := fmt.Sprintf("   %d of %d misses (%s); %d requests match, ", n, len(c.missing),
		share(float64(n), float64(len(c.missing))), match)
	if all-match < 10 {
		return text + "nearly all: no lift"
	}
	with := (float64(n) + 0.5) / (float64(match) + 1)
	without := (float64(lost-n) + 0.5) / (float64(all-match) + 1)
	excess := func(of []*plainRequest) float64 {
		return sum(of, func(r *plainRequest) float64 { _, ms := c.missed(r); return ms })
	}
	rest := excess(c.only(func(r *plainRequest) bool { return !c.matched[r] })) - excess(c.explained)
	ms := excess(c.explained) / float64(match) / (rest / float64(all-match))
	if 2*lost > all && ms > with/without {
		return text + "lift " + atMost100(ms) + " by ms lost"
	}
	return text + "lift " + atMost100(with/without)
}

// percentile is a quantile with a ? if it is of fewer than 10/(1-p) samples.
func percentile(all []*plainRequest, percent float64, value func(*plainRequest) float64) string {
	text := show(quantile(all, percent, value))
	samples := slices.DeleteFunc(slices.Clone(all), func(r *plainRequest) bool { return value(r) < 0 })
	if float64(len(samples)) < 1000/(100-percent) {
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
	share := min(float64(len(c.meeting))/float64(len(c.requests)), 1-1e-9)
	return fmt.Sprintf("fitness: %.4f = 0.1 + 0.9 x the share of met requests (default).", 0.1+0.9*share)
}

func (c *plainCheck) requestsLine(string) string {
	completed := c.only(func(r *plainRequest) bool { return r.State == "completed" })
	text := fmt.Sprintf("requests: %d offered, %d completed", len(c.requests), len(completed))
	for _, d := range []struct {
		name string
		of   func(*plainRequest) float64
	}{{"TTFT", (*plainRequest).ttft}, {"TPOT", (*plainRequest).tpot}, {"E2E", (*plainRequest).e2e}} {
		text += fmt.Sprintf("; %s ms p50 %s p99 %s", d.name, percentile(c.requests, 50, d.of),
			percentile(c.requests, 99, d.of))
	}
	if strings.Contains(text, "?") {
		text += " (? few samples)"
	}
	return text + "."
}

// sumRegret adds up a field of all regrets.
func (c *plainCheck) sumRegret(name string) float64 {
	return sum(c.requests, func(r *plainRequest) float64 { return r.regret[name].(float64) })
}

func (c *plainCheck) regretLine(string) string {
	return fmt.Sprintf("regret (estimated, E2E): %s ms in hindsight, %s avoidable with visible signals, over"+
		" %d decisions.", show(c.sumRegret("hindsight_ms")), c.avoidable(), len(c.requests))
}

// avoidable is the sum of what was avoidable; none if it is below 0.
func (c *plainCheck) avoidable() string {
	ms := c.sumRegret("avoidable_ms")
	if ms < 0 {
		return fmt.Sprintf("none (%s ms)", show(ms))
	}
	return show(ms) + " ms"
}

func (c *plainCheck) runLine(string) string {
	from, to := math.Inf(1), 0.0
	for _, r := range c.requests {
		from, to = min(from, r.Arrival), max(to, r.End)
	}
	k := c.header.Run.Key
	return fmt.Sprintf("run: policy %s, workload %s, seeds workload %d, sim %d, jitter %d; %.3f s.", k.Policy[:12],
		c.digest[:12], k.Workload, k.Sim, k.Jitter, (to-from)/1e6)
}

func (c *plainCheck) lossRow(line string) string {
	all := c.meeting
	if strings.HasPrefix(line, "missed") {
		all = c.missing
	}
	fields := []string{strings.Fields(line)[0], fmt.Sprint(len(all))}
	for _, part := range []string{"admission", "frontend", "queue", "prefill", "decode", "preempted"} {
		of := func(r *plainRequest) float64 { return r.split()[part] }
		if sum(c.requests, of) > 0 {
			fields = append(fields, show(mean(all, of)))
		}
	}
	return aligned(line, append(fields, show(mean(all, (*plainRequest).e2e))))
}

// aligned puts the fields where those of line are, if their number is the same; each ends where that
// of line does.
func aligned(line string, fields []string) string {
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

func (c *plainCheck) dominant(string) string {
	counts, excess := map[string]int{}, 0.0
	for _, r := range c.missing {
		counts[c.part(r)]++
		_, ms := c.missed(r)
		excess += ms
	}
	var parts []string
	for _, part := range []string{"admission", "frontend", "queue", "prefill", "decode", "preempted"} {
		if counts[part] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", part, counts[part]))
		}
	}
	return fmt.Sprintf("misses by the part furthest above its mean in met requests of the class: %s;"+
		" above target by %s ms", strings.Join(parts, ", "), show(excess))
}

func (c *plainCheck) group(line string) string {
	name := strings.Fields(line)[0]
	all := c.only(func(r *plainRequest) bool { return r.Class == name || r.Tenant == name })
	lost := float64(len(slices.DeleteFunc(slices.Clone(all), func(r *plainRequest) bool { return !c.lost(r) })))
	return aligned(line, []string{name, fmt.Sprint(len(all)), fmt.Sprint(lost),
		fmt.Sprintf("%.1f", 100-100*lost/float64(len(all))), fmt.Sprintf("%.1f", 100*lost/float64(len(c.missing))),
		percentile(all, 99, (*plainRequest).ttft), percentile(all, 99, (*plainRequest).tpot),
		percentile(all, 99, (*plainRequest).e2e)})
}

// exampleLine finds the request of an example: of those that its pattern explains, or that no pattern
// explains, the one most above its target.
func (c *plainCheck) exampleLine(line string) string {
	var n, pattern int
	of := slices.DeleteFunc(slices.Clone(c.missing), func(r *plainRequest) bool {
		return slices.Contains(slices.Concat(c.byPattern...), r)
	})
	if _, err := fmt.Sscanf(line, "W%d of P%d:", &n, &pattern); err == nil {
		of = c.byPattern[pattern-1]
	}
	c.example = c.worst(of)
	head, _, _ := strings.Cut(line, ":")
	r := c.example
	return fmt.Sprintf("%s: %s for %s, class %s, tenant %s, arrived at %.3f s", head, r.Decision, r.ID, r.Class,
		r.Tenant, r.Arrival/1e6)
}

// worst is the request that is most above its target.
func (c *plainCheck) worst(of []*plainRequest) (worst *plainRequest) {
	most := 0.0
	for _, r := range of {
		if _, ms := c.missed(r); ms > most {
			worst, most = r, ms
		}
	}
	return worst
}

func (c *plainCheck) chose(string) string {
	return "   chose " + c.signals(c.example.candidate(true)) + fmt.Sprintf(" (%s)", c.example.routing["reason"])
}

func (c *plainCheck) nextBest(string) string {
	return "   next best " + c.signals(c.example.candidate(false))
}

func (c *plainCheck) signals(candidate map[string]any) string {
	parts := []string{}
	add := func(format, name string, factor float64) {
		if x, ok := candidate[name].(float64); ok {
			parts = append(parts, fmt.Sprintf(format, x*factor))
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
	text := fmt.Sprintf("   actual queue %.0f, shortest %.0f", q[r.Replica], slices.Min(q))
	if shortest := slices.Min(q); shortest < q[r.Replica] {
		text += fmt.Sprintf(" at main/%d", slices.Index(q, shortest))
	}
	return text + fmt.Sprintf("; waited while %.0f tokens started", sum(c.ahead(r), (*plainRequest).work))
}

func (c *plainCheck) times(string) string {
	r := c.example
	var parts []string
	for _, part := range []string{"admission", "frontend", "queue", "prefill", "decode", "preempted"} {
		if x := r.split()[part]; x > 0 {
			parts = append(parts, part+" "+show(x))
		}
	}
	text := "   ms: " + strings.Join(parts, " | ")
	for _, m := range []struct {
		name, target string
		ms           float64
	}{{"TTFT", "ttft_ms", r.ttft()}, {"TPOT", "tpot_ms", r.tpot()}, {"E2E", "e2e_ms", r.e2e()}} {
		text += fmt.Sprintf("; %s %s ms", m.name, show(m.ms))
		if limit := c.target(r, m.target); limit > 0 && m.ms > limit {
			text += fmt.Sprintf(" (MISSED %g)", limit)
		} else if limit > 0 {
			text += fmt.Sprintf(" (limit %g)", limit)
		}
	}
	return text
}

func (c *plainCheck) alternative(string) string {
	var chosen, best map[string]any
	for _, a := range c.example.regret["alternatives"].([]any) {
		switch a := a.(map[string]any); {
		case a["chosen"] == true:
			chosen = a
		case best == nil:
			best = a
		}
	}
	return fmt.Sprintf("   best other main/%.0f: E2E %s ms, chosen %s (estimated); avoidable by signals %s",
		best["replica"], show(best["e2e_ms"].(float64)), show(chosen["e2e_ms"].(float64)),
		show(c.example.regret["avoidable_ms"].(float64)))
}

func (c *plainCheck) exactAlternative(string) string {
	text, best := "", []float64{math.Inf(-1), 0, 0}
	for _, g := range c.exact {
		if g["decision"] != c.example.Decision {
			continue
		}
		for _, a := range g["alternatives"].([]any) {
			a := a.(map[string]any)
			own, all := a["own"].(map[string]any), a["all"].(map[string]any)
			value := []float64{own["slo_gained"].(float64) - own["slo_lost"].(float64), own["completed"].(float64),
				own["e2e_ms"].(float64)}
			if slices.Compare(value, best) <= 0 {
				continue
			}
			best = value
			choice, ok := a["verdict"].(string)
			if !ok {
				choice = fmt.Sprintf("%s/%.0f", a["deployment"], a["replica"])
			}
			text = fmt.Sprintf("   re-simulated, best %s: own E2E %s ms less; all: SLOs gained %.0f, lost %.0f, "+
				"E2E %s ms less", choice, show(value[2]), all["slo_gained"], all["slo_lost"],
				show(all["e2e_ms"].(float64)))
			moves, known := g["sensitivity"].(map[string]any)
			if known && a["insensitive"] == true {
				text += fmt.Sprintf(", within the run's own sensitivity (%s)", show(moves["e2e_ms"].(float64)))
			} else if known {
				text += fmt.Sprintf(" (own sensitivity %s)", show(moves["e2e_ms"].(float64)))
			}
		}
	}
	return text
}

func (c *plainCheck) classStrength(line string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(line, "class "), ":")
	met := len(slices.DeleteFunc(slices.Clone(c.meeting), func(r *plainRequest) bool { return r.Class != name }))
	all := len(c.only(func(r *plainRequest) bool { return r.Class == name }))
	text := fmt.Sprintf("class %s: %d of %d met their targets", name, met, all)
	if others := len(c.requests) - all; others > 0 {
		text += fmt.Sprintf(", others %d of %d", len(c.meeting)-met, others)
	}
	return text
}

func (c *plainCheck) prefixes(string) string {
	expected := sum(c.requests, func(r *plainRequest) float64 { return r.Expected })
	found := sum(c.requests, func(r *plainRequest) float64 { return min(r.Expected, r.Cached) })
	return fmt.Sprintf("prefixes: %.0f of %.0f expected cached tokens were cached", found, expected)
}

func (c *plainCheck) waiting(string) string {
	wait := sum(c.requests, func(r *plainRequest) float64 {
		s := r.split()
		return r.e2e() - s["prefill"] - s["decode"]
	})
	all := sum(c.requests, (*plainRequest).e2e)
	return fmt.Sprintf("waiting (admission, flow, frontend, queue, preempted): %s of %s ms E2E of completed"+
		" requests (%s); the rest is prefill and decode.", show(wait), show(all), share(wait, all))
}

func (c *plainCheck) headroom(string) string {
	chosen := sum(c.requests, func(r *plainRequest) float64 {
		for _, a := range r.regret["alternatives"].([]any) {
			if a := a.(map[string]any); a["chosen"] == true {
				return a["e2e_ms"].(float64)
			}
		}
		return math.NaN() // the record must have the choice
	})
	saved := c.sumRegret("hindsight_ms")
	return fmt.Sprintf("routing, one decision at a time: the best candidate saves %s of %s ms estimated E2E (%s);"+
		" avoidable with visible signals: %s. Another policy may save more.",
		show(saved), show(chosen), share(saved, chosen), c.avoidable())
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
		text := fmt.Sprintf("%s%s, %.3f s to %.3f s, severity %.2f: %s", a["type"], where, a["start_us"].(float64)/1e6,
			a["end_us"].(float64)/1e6, a["severity"], a["text"])
		if text == line {
			return text
		}
	}
	return "no such anomaly"
}

// explainCommand is about the first example: its decision, its request, or a second before and after
// its arrival.
func (c *plainCheck) explainCommand(line string) string {
	of := c.missing
	if len(c.byPattern) > 0 {
		of = c.byPattern[0]
	}
	r := c.worst(of)
	from := max(0, r.Arrival/1e6-1)
	for _, what := range []string{r.Decision, r.ID, fmt.Sprintf("%.1fs:%.1fs", from, from+2)} {
		if text := "blis-summarize --explain " + what + " RUN"; text == line {
			return text
		}
	}
	return "no such command"
}

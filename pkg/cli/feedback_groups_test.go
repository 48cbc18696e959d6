package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blis/pkg/attribution"
)

// replicaRow counts the requests and the losses of a replica. The metrics record has the rest.
func (c *plainCheck) replicaRow(line string) string {
	fields := strings.Fields(line)
	all := c.only(func(r *plainRequest) bool { return fmt.Sprintf("main/%d", r.Replica) == fields[0] })
	lost := float64(len(slices.DeleteFunc(slices.Clone(all), func(r *plainRequest) bool { return !c.lost(r) })))
	n := float64(len(all))
	copy(fields[1:], []string{fmt.Sprint(len(all)), fmt.Sprintf("%.1f", 100*n/float64(len(c.requests))),
		fmt.Sprint(lost), fmt.Sprintf("%.1f", 100*lost/max(1, n)), fields[5],
		dashUnless(n > 0, 100*sum(all, func(r *plainRequest) float64 { return r.Cached })/
			max(1, sum(all, func(r *plainRequest) float64 { return r.Input })))})
	return aligned(line, fields)
}

// idleReplicas names those without a request; the number of all is that of the line.
func (c *plainCheck) idleReplicas(line string) string {
	var all int
	fmt.Sscanf(line[strings.Index(line, " of "):], " of %d", &all)
	counts := make([]int, all)
	for _, r := range c.requests {
		counts[r.Replica]++
	}
	var idle []string
	for i, n := range counts {
		if n == 0 {
			idle = append(idle, fmt.Sprint(i))
		}
	}
	return fmt.Sprintf("replicas: %d of %d got no request (main/%s); the busiest got %.1f %%.", len(idle), all,
		strings.Join(idle, ", "), 100*float64(slices.Max(counts))/float64(len(c.requests)))
}

func dashUnless(known bool, x float64) string {
	if !known {
		return "-"
	}
	return fmt.Sprintf("%.1f", x)
}

// lossWindow is the shortest time with 90 % of the misses, if it is at most half of the run.
func (c *plainCheck) lossWindow(string) string {
	var arrivals []float64
	for _, r := range c.missing {
		arrivals = append(arrivals, r.Arrival)
	}
	slices.Sort(arrivals)
	first, last := c.requests[0].Arrival, c.requests[0].Arrival
	for _, r := range c.requests {
		first, last = min(first, r.Arrival), max(last, r.Arrival)
	}
	from, until := first, last
	for i, begin := range arrivals {
		for k := i; k < len(arrivals); k++ {
			if 10*(k-i+1) >= 9*len(arrivals) && arrivals[k]-begin < until-from {
				from, until = begin, arrivals[k]
			}
		}
	}
	if 2*(until-from) > last-first {
		return ""
	}
	return fmt.Sprintf("when: 90.0 %% of the misses arrived from %.1f s to %.1f s.", from/1e6, until/1e6)
}

// A text with a parent says what changed in the configuration and in the patterns.
func TestTextComparesSetups(t *testing.T) {
	dir := t.TempDir()
	workload, parent, run := filepath.Join(dir, "w"), filepath.Join(dir, "parent"), filepath.Join(dir, "run")
	ran(t, Gen, "--scenario", "sanity", "--requests", "700", "-o", workload)
	ran(t, Sim, "--set", "deployments.main.engine.max_num_seqs=8", workload, "-o", parent)
	ran(t, Sim, "--set", "routing.params.queue-depth=5", workload, "-o", run)
	text := ran(t, Summarize, "--parent", parent, run)
	for _, want := range []string{"changed since the parent: deployments.main.engine.max_num_seqs 8 -> 256, ",
		"policies.routing.params.queue-depth 2 -> 5", "patterns since the parent: ", "batch_slots_full is gone (",
		"engine: main max_num_seqs 256, "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// A text about sessions says where their time went.
func TestTextAboutSessions(t *testing.T) {
	workload := piped(t, Gen, nil, 0, "--scenario", "deep-research", "--requests", "20")
	text := string(piped(t, Summarize, piped(t, Sim, workload, 0), 0))
	for _, want := range []string{"[SESSIONS]\n20 sessions: ", "of the sessions' time: model calls ", "; tools "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// No hint is there twice or sets what is set already, and a simulation accepts each.
func TestHintsAreDistinctAndAccepted(t *testing.T) {
	dir := t.TempDir()
	workload, run := filepath.Join(dir, "w"), filepath.Join(dir, "run")
	for _, scenario := range []string{"mixed-slo", "unequal-tenants", "code"} {
		ran(t, Gen, "--scenario", scenario, "--requests", "1000", "-o", workload)
		ran(t, Sim, "--set", "deployments.main.replicas=3", "--set", "routing={type: round-robin}", workload, "-o", run)
		var d struct{ Hints []attribution.Hint }
		must(t, json.Unmarshal([]byte(ran(t, Summarize, "--format", "json", run)), &d))
		seen := map[string]bool{}
		for _, h := range d.Hints {
			if seen[h.Command] || h.Advice == "" {
				t.Errorf("%s: %+v is there before or has no advice", scenario, h)
			}
			seen[h.Command] = true
			args := []string{"--print-config", "--set", "deployments.main.replicas=3"}
			for _, s := range h.Settings() {
				args = append(args, "--set", s)
			}
			ran(t, Sim, args...)
		}
		if len(seen) < 3 {
			t.Errorf("%s has %d hints", scenario, len(seen))
		}
	}
}

// --try measures what the command of a hint gives.
func TestTryMeasuresHints(t *testing.T) {
	dir := t.TempDir()
	workload, run, hinted := filepath.Join(dir, "w"), filepath.Join(dir, "run"), filepath.Join(dir, "hinted")
	ran(t, Gen, "--scenario", "sanity", "--requests", "300", "-o", workload)
	ran(t, Sim, "--set", "deployments.main.engine.max_num_seqs=3", "--seed", "5", workload, "-o", run)
	text := ran(t, Summarize, "--try", workload, run)
	setting := regexp.MustCompile(`--set '(.*)' WORKLOAD`).FindStringSubmatch(text)
	if setting == nil {
		t.Fatalf("no hint in\n%s", text)
	}
	ran(t, Sim, "--replay", run, "--set", setting[1], workload, "-o", hinted)
	score := regexp.MustCompile(`fitness: (\S+)`).FindStringSubmatch(ran(t, Summarize, hinted))[1]
	if want := "measured: fitness " + score + " (+"; !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}
	piped(t, Summarize, nil, exitUsage, "--try", workload)
	piped(t, Summarize, nil, exitUsage, "--try", workload, "--format", "csv", run)
}

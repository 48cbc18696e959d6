package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// plainRun is a run as encoding/json reads it, without the packages that write the texts: every
// number is counted again for each use.
type plainRun struct {
	header struct {
		Classes []struct {
			Name    string             `json:"name"`
			Prio    float64            `json:"priority"`
			Targets map[string]float64 `json:"targets"`
		} `json:"slo_classes"`
		Run struct {
			Key struct {
				Policy   string
				Workload uint64 `json:"workload_seed"`
				Sim      uint64 `json:"sim_seed"`
				Jitter   uint64 `json:"jitter_seed"`
			}
			Config struct {
				Deployments []struct {
					Replicas int
					Engine   struct {
						Block int `json:"block_size"`
					}
				}
				Policies map[string]struct{ Type string }
			}
		}
	}
	digest    string // of the workload
	metrics   map[string]any
	empty     map[*plainRequest]bool // whether each found an empty queue
	requests  []*plainRequest
	anomalies []map[string]any
	exact     []map[string]any // regrets
}

// plainRequest is an outcome with the decisions about it. Times are in µs, -1 where missing.
type plainRequest struct {
	ID, State, Tenant, Class, Decision                    string
	Arrival, Admitted, Routed, Enqueued, Scheduled, First float64
	End, Preempted                                        float64
	Replica                                               int
	Input, Output, Cached, Expected, Preemptions          float64
	index                                                 int // among the routing decisions
	routing, regret                                       map[string]any
}

func readPlainly(t *testing.T, run []byte) *plainRun {
	t.Helper()
	p := &plainRun{}
	decisions, regrets := map[string]map[string]any{}, map[string]map[string]any{}
	indexes := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(run))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var m map[string]any
		must(t, json.Unmarshal(lines.Bytes(), &m))
		switch m["kind"] {
		case "header":
			must(t, json.Unmarshal(lines.Bytes(), &p.header))
		case "decision":
			if m["stage"] == "routing" {
				decisions[m["request"].(string)] = m
				indexes[m["request"].(string)] = len(indexes)
			}
		case "regret":
			if m["method"] == "estimated" {
				regrets[m["request"].(string)] = m
			} else {
				p.exact = append(p.exact, m)
			}
		case "anomaly":
			p.anomalies = append(p.anomalies, m)
		case "metrics":
			p.metrics = m
		case "end":
			p.digest = m["workload_digest"].(string)
		case "outcome":
			r := readRequest(m)
			r.routing, r.regret, r.index = decisions[r.ID], regrets[r.ID], indexes[r.ID]
			p.requests = append(p.requests, r)
		}
	}
	return p
}

func readRequest(outcome map[string]any) *plainRequest {
	n := func(name string) float64 {
		if x, ok := outcome[name].(float64); ok {
			return x
		}
		return -1
	}
	s := func(name string) string { x, _ := outcome[name].(string); return x }
	return &plainRequest{ID: s("id"), State: s("state"), Tenant: s("tenant"), Class: s("slo_class"),
		Decision: s("decision"), Arrival: n("arrival_us"), Admitted: n("admitted_us"), Routed: n("routed_us"),
		Enqueued: n("enqueued_us"), Scheduled: n("scheduled_us"), First: n("first_token_us"),
		End: max(n("completed_us"), n("ended_us")), Preempted: max(n("preempted_us"), 0), Replica: int(n("replica")),
		Input: n("input_tokens"), Output: n("output_tokens"), Cached: n("cached_tokens"),
		Expected: n("expected_cached_tokens"), Preemptions: n("preemptions")}
}

// ttft, tpot and e2e are in ms, -1 without one.
func (r *plainRequest) ttft() float64 { return since(r.Arrival, r.First) }
func (r *plainRequest) e2e() float64  { return since(r.Arrival, r.End) }
func (r *plainRequest) tpot() float64 {
	if r.Output < 2 {
		return -1
	}
	return (r.End - r.First) / 1000 / (r.Output - 1)
}

func since(a, b float64) float64 {
	if b < 0 {
		return -1
	}
	return (b - a) / 1000
}

// target is that of the request's class, 0 without one.
func (p *plainRun) target(r *plainRequest, metric string) float64 {
	for _, c := range p.header.Classes {
		if c.Name == r.Class {
			return c.Targets[metric]
		}
	}
	return 0
}

// missed are the targets that the request missed, and the largest excess in ms.
func (p *plainRun) missed(r *plainRequest) (targets []string, excess float64) {
	for _, c := range []struct {
		name       string
		ms, factor float64
	}{{"ttft_ms", r.ttft(), 1}, {"tpot_ms", r.tpot(), r.Output - 1}, {"e2e_ms", r.e2e(), 1}} {
		if limit := p.target(r, c.name); limit > 0 && c.ms > limit {
			targets = append(targets, c.name)
			excess = max(excess, (c.ms-limit)*c.factor)
		}
	}
	return targets, excess
}

func (p *plainRun) lost(r *plainRequest) bool { targets, _ := p.missed(r); return len(targets) > 0 }

// split is the time of a completed request by part, in ms.
func (r *plainRequest) split() map[string]float64 {
	decode := r.End - r.First
	inDecode := min(decode, r.Preempted)
	prefill := r.First - r.Scheduled
	inPrefill := min(prefill, r.Preempted-inDecode)
	return map[string]float64{"admission": (r.Admitted - r.Arrival) / 1000,
		"frontend": (r.Enqueued - r.Admitted) / 1000, "queue": (r.Scheduled - r.Enqueued) / 1000,
		"prefill": (prefill - inPrefill) / 1000, "decode": (decode - inDecode) / 1000,
		"preempted": (inDecode + inPrefill) / 1000}
}

// queues are the queue lengths of all replicas when r was routed.
func (p *plainRun) queues(r *plainRequest) []float64 {
	q := make([]float64, p.header.Run.Config.Deployments[0].Replicas)
	for _, o := range p.requests {
		if (o.Routed < r.Routed || o.Routed == r.Routed && o.index < r.index) && o.Scheduled > r.Routed {
			q[o.Replica]++
		}
	}
	return q
}

// ahead are the requests that entered a batch of the replica of r while r waited for its first token.
func (p *plainRun) ahead(r *plainRequest) (all []*plainRequest) {
	for _, o := range p.requests {
		if o != r && o.Replica == r.Replica && o.Scheduled >= r.Enqueued && o.Scheduled < r.First {
			all = append(all, o)
		}
	}
	return all
}

func (r *plainRequest) work() float64 { return r.Input - r.Cached + r.Output }

// recomputed are prompt tokens of r that had been computed before: what the best tenth of its tenant
// finds cached at least, the smaller of its tokens and its share of the prompt, less what r found.
func (p *plainRun) recomputed(r *plainRequest) float64 {
	of := p.only(func(o *plainRequest) bool { return o.Tenant == r.Tenant })
	best := func(value func(*plainRequest) float64) float64 {
		var all []float64
		for _, o := range of {
			all = append(all, value(o))
		}
		slices.Sort(all)
		return all[len(all)-1-(len(all)-1)/10]
	}
	share := best(func(o *plainRequest) float64 { return o.Cached / o.Input })
	tokens := best(func(o *plainRequest) float64 { return o.Cached })
	return max(0, min(math.Floor(share*r.Input), tokens)-r.Cached)
}

// sum adds up a value of all requests.
func sum(all []*plainRequest, value func(*plainRequest) float64) (total float64) {
	for _, r := range all {
		total += value(r)
	}
	return total
}

func mean(all []*plainRequest, value func(*plainRequest) float64) float64 {
	return sum(all, value) / float64(len(all))
}

// only are the requests for which keep is true.
func (p *plainRun) only(keep func(*plainRequest) bool) (all []*plainRequest) {
	for _, r := range p.requests {
		if keep(r) {
			all = append(all, r)
		}
	}
	return all
}

// quantile interpolates between the values that are not negative.
func quantile(all []*plainRequest, percent float64, value func(*plainRequest) float64) float64 {
	var xs []float64
	for _, r := range all {
		if x := value(r); x >= 0 {
			xs = append(xs, x)
		}
	}
	slices.Sort(xs)
	at := percent / 100 * float64(len(xs)-1)
	low := int(math.Floor(at))
	return xs[low] + (xs[min(low+1, len(xs)-1)]-xs[low])*(at-float64(low))
}

// candidate is the chosen replica, or the first other one, as the router saw it.
func (r *plainRequest) candidate(chosen bool) map[string]any {
	for _, c := range r.routing["considered"].([]any) {
		if c := c.(map[string]any); (int(c["replica"].(float64)) == r.Replica) == chosen {
			return c
		}
	}
	return nil
}

// show formats a number as the texts do.
func show(x float64) string {
	if math.Abs(x) < 99.95 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func share(a, b float64) string { return fmt.Sprintf("%.1f %%", 100*a/b) }

// patternOf are the conditions of the patterns, written independently.
var patternOf = map[string]func(p *plainRun, r *plainRequest) bool{
	"overload":     func(p *plainRun, r *plainRequest) bool { return slices.Min(p.queues(r)) >= 8 },
	"stale_signal": stale,
	"hot_prefix": func(p *plainRun, r *plainRequest) bool {
		q := p.queues(r)
		return q[r.Replica] >= 2*slices.Min(q)+4 && !stale(p, r) && r.candidate(true)["matched_blocks"].(float64) > 0
	},
	"behind_lower_class": func(p *plainRun, r *plainRequest) bool {
		q, ahead := p.queues(r), p.ahead(r)
		total := sum(ahead, (*plainRequest).work)
		lower := sum(ahead, p.lowerClass(r))
		return q[r.Replica] < 2*slices.Min(q)+4 && total >= 2000 && lower >= 0.3*total && p.matters(r, lower/total)
	},
	"prefix_unseen": func(p *plainRun, r *plainRequest) bool {
		q, ahead := p.queues(r), p.ahead(r)
		if q[r.Replica] >= 2*slices.Min(q)+4 {
			return false
		}
		total := sum(ahead, (*plainRequest).work)
		own := p.recomputed(r)
		return own >= 256 && own >= 0.3*r.Input || total >= 2000 && sum(ahead, p.recomputed) >= 0.3*total
	},
	"behind_tenant abuser": func(p *plainRun, r *plainRequest) bool {
		q, ahead := p.queues(r), p.ahead(r)
		total := sum(ahead, (*plainRequest).work)
		heavy := sum(ahead, ofTenant("abuser"))
		return q[r.Replica] < 2*slices.Min(q)+4 && total >= 2000 && heavy >= 0.3*total && p.matters(r, heavy/total)
	},
}

// matters reports whether r meets its TTFT target, or waits at most half as long if it did not miss that, where it
// saves a share of its wait and of the time since its queue was empty.
func (p *plainRun) matters(r *plainRequest, share float64) bool {
	if p.empty == nil {
		p.empty = map[*plainRequest]bool{}
		for _, o := range p.requests {
			p.empty[o] = p.queues(o)[o.Replica] == 0
		}
	}
	since := 0.0
	for _, o := range p.requests {
		if o.Replica == r.Replica && p.empty[o] &&
			(o == r || o.Routed < r.Routed || o.Routed == r.Routed && o.index < r.index) {
			since = max(since, o.Routed)
		}
	}
	wait := r.Scheduled - r.Enqueued
	left := max(0, wait-share*(r.Scheduled-since))
	if missed, _ := p.missed(r); !slices.Contains(missed, "ttft_ms") {
		return left <= wait/2
	}
	return r.First-r.Arrival-wait+left <= 1000*p.target(r, "ttft_ms")
}

func stale(p *plainRun, r *plainRequest) bool {
	q := p.queues(r)
	mine, c := q[r.Replica], r.candidate(true)
	age, _ := c["age_us"].(float64)
	return mine >= 2*slices.Min(q)+4 && age >= 100_000 &&
		math.Abs(c["queue_depth"].(float64)-mine) >= max(4, math.Floor(mine/2))
}

// lowerClass is the work of requests whose class has a lower priority than that of r.
func (p *plainRun) lowerClass(r *plainRequest) func(*plainRequest) float64 {
	priority := func(r *plainRequest) float64 {
		for _, c := range p.header.Classes {
			if c.Name == r.Class {
				return c.Prio
			}
		}
		return 0
	}
	return func(o *plainRequest) float64 {
		if priority(o) >= priority(r) {
			return 0
		}
		return o.work()
	}
}

func ofTenant(name string) func(*plainRequest) float64 {
	return func(r *plainRequest) float64 {
		if r.Tenant != name {
			return 0
		}
		return r.work()
	}
}

// check compares each line of the text that has a number with the same line written from the run.
func (p *plainRun) check(t *testing.T, text string) {
	t.Helper()
	c := &plainCheck{plainRun: p}
	for _, r := range p.requests {
		if p.lost(r) {
			c.missing = append(c.missing, r)
		} else {
			c.meeting = append(c.meeting, r)
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			c.section = line
			continue
		}
		if c.section == "[NOTES]" {
			if want, _ := p.metrics["warnings"].([]any); !slices.Contains(want, any(line)) && line != "" {
				t.Errorf("the run has no warning %q", line)
			}
			continue
		}
		want, known := c.line(line)
		switch {
		case strings.ContainsAny(line, "0123456789") && !known:
			t.Errorf("no check covers the numbers of %q", line)
		case known && want != line:
			t.Errorf("from the run:\n%s\nin the text:\n%s", want, line)
		}
	}
}

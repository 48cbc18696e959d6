package attribution

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"blis/pkg/llmtext"
	"blis/pkg/stream"
)

// Query asks about a decision, a request, or an interval of time. The zero value asks nothing.
type Query struct {
	// Decision or Request is an id, or the beginning of one with llmtext.CutMark at the end.
	Decision, Request string
	FromUS, UntilUS   stream.Micros
	// percentile asks about the request at this percentile of a latency, 0 if q does not.
	percentile float64
	latency    string // ttft, tpot or e2e
	text       string
	request    string // the id of the request, once it is known
	ambiguous  bool
	// Records about the request; with a percentile, about all requests: it is known only at the end.
	decisions []stream.Decision
	regrets   []stream.Regret
	preempted []stream.Preemption
}

// UnmarshalText reads the id of a decision (dec-000913), two times since the workload's origin
// (11.8s:14.2s), a percentile of a latency (e2e.p99; p99 is that of TTFT), slowest, which is e2e.p100, or
// else the id of a request.
func (q *Query) UnmarshalText(text []byte) error {
	*q = Query{text: string(text)}
	from, until, isWindow := strings.Cut(q.text, ":")
	begin, beginErr := time.ParseDuration(from)
	end, endErr := time.ParseDuration(until)
	switch {
	case q.text == "":
		return errors.New("must be a decision (dec-000913), a request (req-000042), a time (11.8s:14.2s) or " +
			"a percentile of a latency (ttft.p99, tpot.p99, e2e.p99)")
	case isWindow && beginErr == nil && endErr == nil:
		if begin < 0 || end <= begin {
			return fmt.Errorf("must be a time window from 0s or later that ends after it begins, is %s", q.text)
		}
		q.FromUS, q.UntilUS = stream.Micros(begin.Microseconds()), stream.Micros(end.Microseconds())
	case strings.HasPrefix(q.text, "dec-"):
		q.Decision = q.text
	default:
		q.Request = q.text
		q.latency, q.percentile = percentileOf(q.text)
	}
	return nil
}

// percentileOf splits a percentile such as p99.9, ttft.p99 or slowest; the number is 0 if text is none.
func percentileOf(text string) (latency string, percentile float64) {
	if text == "slowest" {
		return "e2e", 100
	}
	latency, digits, named := strings.Cut(text, ".p")
	if !named {
		latency, digits, named = "ttft", strings.TrimPrefix(text, "p"), strings.HasPrefix(text, "p")
	}
	if !named || !slices.Contains([]string{"ttft", "tpot", "e2e"}, latency) {
		return "", 0
	}
	p, err := strconv.ParseFloat(digits, 64)
	if strings.Trim(digits, "0123456789.") != "" || err != nil || p > 100 {
		return "", 0
	}
	return latency, p
}

// IsSet reports whether q asks anything. q may be nil.
func (q *Query) IsSet() bool { return q != nil && q.text != "" }

// IsWindow reports whether q asks about an interval of time.
func (q *Query) IsWindow() bool { return q.UntilUS > 0 }

func (q *Query) String() string { return q.text }

// SetQuery makes the Analyzer keep what it takes to answer q. It is called before the first record.
func (a *Analyzer) SetQuery(q *Query) { a.query = q }

// matchesID reports whether id is the one asked for, which may be a beginning and CutMark.
func matchesID(asked, id string) bool {
	prefix, isPrefix := strings.CutSuffix(asked, llmtext.CutMark)
	return asked != "" && (id == asked || isPrefix && strings.HasPrefix(id, prefix))
}

// collect keeps a decision that q asks about. q may be nil.
func (q *Query) collect(d *stream.Decision) {
	if !q.IsSet() || q.IsWindow() {
		return
	}
	if q.request == "" && (matchesID(q.Decision, d.ID) || matchesID(q.Request, d.Request)) {
		q.request = strings.Clone(d.Request)
	}
	switch {
	case q.wants(d.Request):
		k := *d
		k.Scorers, k.Considered = slices.Clone(d.Scorers), slices.Clone(d.Considered)
		for i := range k.Considered {
			k.Considered[i].Terms = slices.Clone(k.Considered[i].Terms)
		}
		q.decisions = append(q.decisions, k)
	case matchesID(q.Request, d.Request):
		q.ambiguous = true
	}
}

// wants reports whether records about a request are kept. q may be nil.
func (q *Query) wants(request string) bool {
	return q.IsSet() && (q.percentile > 0 || q.request != "" && request == q.request)
}

// keepOnly drops the records about other requests.
func (q *Query) keepOnly(request string) {
	q.decisions = slices.DeleteFunc(q.decisions, func(d stream.Decision) bool { return d.Request != request })
	q.regrets = slices.DeleteFunc(q.regrets, func(g stream.Regret) bool { return g.Request != request })
	q.preempted = slices.DeleteFunc(q.preempted, func(p stream.Preemption) bool { return p.Request != request })
}

// Preemption takes the preemption of a request; only full traces have it.
func (a *Analyzer) Preemption(p *stream.Preemption) {
	if q := a.query; q.wants(p.Request) {
		q.preempted = append(q.preempted, *p)
	}
}

// RequestDetail is all that is known of a request.
type RequestDetail struct {
	Example
	// Redirects is how often it was routed again since its replica went down or left. Moved: once it was queued. Its
	// times are then those before, and what is known of other requests is not of the replica where it was then: there
	// is none of it.
	Redirects int64
	Moved     bool
	// Decisions are those about it, with all their candidates. ActualQueues are the actual queues
	// of the candidates of the last routing decision.
	Decisions    []stream.Decision
	Regrets      []stream.Regret
	ActualQueues []int64
	// Times are in µs, stream.Never where they did not come.
	Admitted, Routed, Enqueued, Scheduled, FirstToken, Ended stream.Micros
	// Preempted are the times of its preemptions, of full traces.
	Preempted []stream.Micros
	// Prefill is nil without a prefill replica. With one, Enqueued and Scheduled are times at the decode replica.
	Prefill *PrefillDetail
	// Loaded are the prompt tokens from KV tiers, among those that count as cached, and FromStorage those of them from
	// storage.
	Loaded, FromStorage int64
	// Ahead are the requests whose prompts its replica had to compute before its own: they were in the queue or being
	// prefilled when it was enqueued, or came later and overtook it. Their tokens are uncached prompt tokens. Requests
	// whose prompts another replica computed are not among them.
	Ahead RequestGroup
	// Started are the requests that entered a batch of its replica while it waited there for its first token. Their
	// tokens are uncached prompt tokens and output tokens.
	Started RequestGroup
	// Running is how many other requests ran in the replica's batches when it entered one.
	Running int64
	// Interfering are uncached prompt tokens of the requests that entered the replica's batches while it decoded,
	// and InterferingRecomputed how many of them had been computed before.
	Interfering, InterferingRecomputed int64
}

// PrefillDetail is what a prefill replica did for a request. Times are in µs, stream.Never where they did not come.
type PrefillDetail struct {
	Replica                                                       string
	Enqueued, Scheduled, Computed, TransferStarted, TransferEnded stream.Micros
	// Blocks moved to the decode replica, which had DecodeCached tokens of the prompt.
	Blocks, DecodeCached int64
}

// RequestGroup is a group of requests: how many, their tokens, the largest by tokens, and the share of the tokens of
// each tenant.
type RequestGroup struct {
	Count, Tokens int64
	Largest       []Work
	Tenants       []Share
}

// Work is a number of tokens that a request makes a replica compute.
type Work struct {
	Request string
	Tokens  int64
}

// Share is a part of a whole, from 0 to 1.
type Share struct {
	Name string
	Part float64
}

// Detail answers a query about a request or a decision. It is called after Find.
func (a *Analyzer) Detail() (*RequestDetail, error) {
	a.measure()
	q := a.query
	at, err := a.findQueried()
	if err != nil {
		return nil, err
	}
	r := a.requests.at(at)
	q.keepOnly(r.id())
	d := &RequestDetail{Example: a.example(r), Redirects: int64(r.redirects),
		Decisions: q.decisions, Regrets: q.regrets,
		Admitted: r.admitted(), Routed: r.routed(), Enqueued: r.enqueued(),
		Scheduled: r.scheduled(), FirstToken: r.firstToken(), Ended: r.ended(), Prefill: a.prefillDetail(r),
		Loaded: int64(r.loaded), FromStorage: int64(r.promoted)}
	for i := range q.preempted {
		d.Preempted = append(d.Preempted, q.preempted[i].AtUS)
	}
	for k := range q.decisions {
		if x := &q.decisions[k]; x.Stage == stream.StageRouting {
			d.Moved = d.Redirects > 0 && d.Enqueued != never && x.AtUS > d.Enqueued
			d.ActualQueues = nil
			for c := range x.Considered {
				replica := a.topology.number(x.Considered[c].Deployment, x.Considered[c].Replica)
				d.ActualQueues = append(d.ActualQueues, a.queueAt(replica, x.AtUS, at))
			}
		}
	}
	if d.Moved {
		return d, nil
	}
	d.Ahead, d.Started, d.Running = a.requestsBefore(at)
	d.Interfering, d.InterferingRecomputed = r.contention.interfering, r.contention.interferingRecomputed
	return d, nil
}

// prefillDetail is what a prefill replica did for r, nil without one.
func (a *Analyzer) prefillDetail(r *request) *PrefillDetail {
	p := r.prefill
	if p == nil || r.replica == missing {
		return nil
	}
	return &PrefillDetail{a.prefillReplica(r), p.enqueued, p.scheduled, p.computed, p.started,
		p.transferred, p.blocks, int64(p.cached)}
}

// prefillReplica is the prefill replica of r, which has one and a replica that decodes.
func (a *Analyzer) prefillReplica(r *request) string {
	return fmt.Sprintf("%s/%d", stream.PrefillPool(a.topology.replicas[r.replica].deployment), r.prefill.replica)
}

// findQueried finds the request that the query is about.
func (a *Analyzer) findQueried() (at int, err error) {
	q, found := a.query, 0
	at = -1
	for i, r := range a.requests.all() {
		match := r.id() == q.request
		if q.request == "" {
			match = matchesID(q.Request, r.id()) || matchesID(q.Decision, r.decision()) ||
				matchesID(q.Decision, r.admission.id)
		}
		if match {
			if found++; at < 0 {
				at = i
			}
		}
	}
	if at < 0 && q.percentile > 0 {
		at = a.atPercentile(q.latency, q.percentile)
	}
	switch {
	case at < 0 && q.Decision != "":
		return 0, fmt.Errorf("--explain: this run has no decision %s; it has %s", q.Decision,
			a.idRange(func(r *request) string { return r.decision() }))
	case at < 0:
		return 0, fmt.Errorf("--explain: this run has no request %s; it has %s%s%s", q.Request,
			a.idRange(func(r *request) string { return r.id() }), a.p99Hint(), withUnits(q.Request))
	case found > 1 || q.ambiguous:
		return 0, fmt.Errorf("--explain: %s is the beginning of several ids; give the whole id", q.text)
	}
	return at, nil
}

// idRange is the first and the last id.
func (a *Analyzer) idRange(id func(*request) string) string {
	first, last := "", ""
	for _, r := range a.requests.all() {
		first, last = cmp.Or(first, id(r)), cmp.Or(id(r), last)
	}
	if first == "" {
		return "none"
	}
	return first + " to " + last
}

// p99Hint is how to ask for the p99 of TTFT, which most want to have explained; "" without first tokens.
func (a *Analyzer) p99Hint() string {
	at := a.atPercentile("ttft", 99)
	if at < 0 {
		return ""
	}
	return fmt.Sprintf(", and the p99 of TTFT (--explain p99) is that of %s", a.requests.at(at).id())
}

// atPercentile is the request at this percentile of a latency, -1 if no request has the latency.
func (a *Analyzer) atPercentile(latency string, percentile float64) int {
	type row struct {
		at int
		ms float64
	}
	var rows []row
	for i, r := range a.requests.all() {
		if ms, ok := a.namedLatency(latency, r); ok && !r.verdict.excluded {
			rows = append(rows, row{i, ms})
		}
	}
	if rows == nil {
		return -1
	}
	slices.SortStableFunc(rows, func(x, y row) int { return cmp.Compare(x.ms, y.ms) })
	rank := math.Ceil(float64(percentile*float64(len(rows))) / 100)
	return rows[max(1, int(rank))-1].at
}

// namedLatency is the TTFT, TPOT or E2E of a request, in ms; ok is false if it has none.
func (a *Analyzer) namedLatency(name string, r *request) (ms float64, ok bool) {
	switch {
	case name == "ttft":
		return latencyMS(r.arrival(), r.firstToken()), r.firstToken() != never
	case !a.completed(r):
		return 0, false
	case name == "e2e":
		return latencyMS(r.arrival(), r.ended()), true
	}
	steps := r.tokens.output - 1
	return latencyMS(r.firstToken(), r.ended()) / float64(steps), steps > 0 && r.firstToken() != never
}

// withUnits is the time window that a name without units may mean, "" if it is none.
func withUnits(name string) string {
	from, until, isWindow := strings.Cut(name, ":")
	_, fromErr := strconv.ParseFloat(from, 64)
	_, untilErr := strconv.ParseFloat(until, 64)
	if !isWindow || fromErr != nil || untilErr != nil {
		return ""
	}
	return fmt.Sprintf("; times have units, such as %ss:%ss", from, until)
}

// queueAt is the actual queue of a replica when request i was routed.
func (a *Analyzer) queueAt(replica int32, at stream.Micros, i int) (n int64) {
	for k, o := range a.requests.all() {
		before := o.routed() < at || o.routed() == at && k < i
		left := o.leftQueue()
		if o.routed() != never && o.replica == replica && before && (left == never || left > at) {
			n++
		}
	}
	return n
}

// requestsBefore finds RequestDetail.Ahead and Started of request i, and how many others were in batches of its
// replica when it entered one.
func (a *Analyzer) requestsBefore(i int) (ahead, started RequestGroup, running int64) {
	r := a.requests.at(i)
	entered, from, until := r.scheduled(), r.enqueued(), r.firstTokenOrEnd()
	aheadTenants, startedTenants := make([]int64, len(a.names.list)), make([]int64, len(a.names.list))
	for k, o := range a.requests.all() {
		s := o.scheduled()
		if o == r || o.replica != r.replica || o.replica == missing || s == never {
			continue
		}
		if s <= entered && (o.ended() == never || o.ended() > entered) {
			running++
		}
		if from == never {
			continue
		}
		if prefilled := o.firstTokenOrEnd(); (prefilled == never || prefilled > from) && o.prefill == nil &&
			entersBefore(o, r, k < i) {
			ahead.add(o, int64(o.tokens.input-o.tokens.cached), aheadTenants)
		}
		if s >= from && s < until {
			started.add(o, o.ownWork(), startedTenants)
		}
	}
	ahead.finish(aheadTenants, a.names.list)
	started.finish(startedTenants, a.names.list)
	return ahead, started, running
}

// entersBefore reports whether o, which entered a batch, did so before r, or before r left the queue without one. In
// the same batch those come first that were enqueued first; isEarlier: o is before r in the stream.
func entersBefore(o, r *request, isEarlier bool) bool {
	entered := r.leftQueue()
	if entered == never || o.scheduled() != entered {
		return entered == never || o.scheduled() < entered
	}
	if o.enqueued() != r.enqueued() {
		return o.enqueued() < r.enqueued()
	}
	return isEarlier
}

// add counts a request with some tokens; tenants are the tokens of each.
func (g *RequestGroup) add(o *request, tokens int64, tenants []int64) {
	g.Count++
	g.Tokens += tokens
	g.Largest = append(g.Largest, Work{o.id(), tokens})
	tenants[o.labels.tenant] += tokens
}

// maxLargest is how many requests RequestGroup.Largest has.
const maxLargest = 3

// finish keeps the largest requests and the shares of the tenants.
func (g *RequestGroup) finish(tenants []int64, names []string) {
	slices.SortStableFunc(g.Largest, func(x, y Work) int { return cmp.Compare(y.Tokens, x.Tokens) })
	g.Largest = g.Largest[:min(len(g.Largest), maxLargest)]
	for n, name := range names {
		if tenants[n] > 0 && name != "" {
			g.Tenants = append(g.Tenants, Share{name, float64(tenants[n]) / float64(g.Tokens)})
		}
	}
	slices.SortStableFunc(g.Tenants, func(x, y Share) int { return cmp.Compare(y.Part, x.Part) })
}

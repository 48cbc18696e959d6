package attribution

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"blis/pkg/stream"
)

// Query is what somebody wants to know of a run: a decision, a request, or a time.
// The zero value is none.
type Query struct {
	// Decision or Request is an id, or the beginning of one and a ~.
	Decision, Request string
	FromUS, UntilUS   stream.Micros
	text              string
	decisions         []stream.Decision
	regrets           []stream.Regret
	preempted         []stream.Micros
	request           string // whom it is about, as soon as that is known
	ambiguous         bool
}

// UnmarshalText reads the id of a decision (dec-000913), two times since the workload's
// origin (11.8s:14.2s), or else the id of a request.
func (q *Query) UnmarshalText(text []byte) error {
	*q = Query{text: string(text)}
	from, until, times := strings.Cut(q.text, ":")
	a, errA := time.ParseDuration(from)
	b, errB := time.ParseDuration(until)
	switch {
	case q.text == "":
		return fmt.Errorf("must be a decision (dec-000913), a request (req-000042) or a time (11.8s:14.2s)")
	case times && errA == nil && errB == nil:
		if a < 0 || b <= a {
			return fmt.Errorf("must be a time from 0s on that ends after it begins, is %s", q.text)
		}
		q.FromUS, q.UntilUS = stream.Micros(a.Microseconds()), stream.Micros(b.Microseconds())
	case strings.HasPrefix(q.text, "dec-"):
		q.Decision = q.text
	default:
		q.Request = q.text
	}
	return nil
}

// IsSet reports whether there is a question.
func (q *Query) IsSet() bool { return q != nil && q.text != "" }

// IsWindow reports whether it is about a time.
func (q *Query) IsWindow() bool { return q.UntilUS > 0 }

func (q *Query) String() string { return q.text }

// SetQuery makes in keep what it takes to answer q. It is called before the first record.
func (in *Analyzer) SetQuery(q *Query) { in.question = q }

// matches reports whether id is the one asked for.
func matches(asked, id string) bool {
	begin, short := strings.CutSuffix(asked, "~")
	return asked != "" && (id == asked || short && strings.HasPrefix(id, begin))
}

// hear keeps a decision that the question is about.
func (q *Query) hear(d *stream.Decision) {
	if !q.IsSet() || q.IsWindow() {
		return
	}
	if q.request == "" && (matches(q.Decision, d.ID) || matches(q.Request, d.Request)) {
		q.request = strings.Clone(d.Request)
	}
	switch {
	case q.request == d.Request:
		k := *d
		k.Scorers, k.Considered = slices.Clone(d.Scorers), slices.Clone(d.Considered)
		for i := range k.Considered {
			k.Considered[i].Terms = slices.Clone(k.Considered[i].Terms)
		}
		q.decisions = append(q.decisions, k)
	case matches(q.Request, d.Request):
		q.ambiguous = true
	}
}

// Preemption takes a request that lost its place; only full traces have it.
func (in *Analyzer) Preemption(p *stream.Preemption) {
	if q := in.question; q.IsSet() && q.request != "" && p.Request == q.request {
		q.preempted = append(q.preempted, p.AtUS)
	}
}

// RequestDetail is what is known of a request that a question is about.
type RequestDetail struct {
	Example
	// Decisions are those about it, with all that they say of candidates; Queues are the
	// true queues of these candidates, as long as Considered of the last of routing.
	Decisions []stream.Decision
	Regrets   []stream.Regret
	Queues    []int64
	// Times are µs, stream.Never where they did not come.
	Admitted, Routed, Enqueued, Scheduled, First, Ended stream.Micros
	// Preempted is when it lost its place, of full traces.
	Preempted []stream.Micros
	// Behind are those that entered a batch of its replica from when it came there to its
	// first token: how many, the largest by work, and what part of the work each tenant has.
	Behind  int64
	Largest []Work
	Tenants []Share
	// Beside is how many were in the replica's batches when it entered one.
	Beside int64
}

// Work is what a request makes a replica compute: prompt tokens that were not cached,
// and the answer's.
type Work struct {
	Request string
	Tokens  int64
}

// Share is a part of something, from 0 to 1.
type Share struct {
	Name string
	Part float64
}

// Detail tells about the request that the question is about. It is called after Find.
func (in *Analyzer) Detail() (*RequestDetail, error) {
	q := in.question
	at, found := -1, 0
	for i := range in.rows {
		r := in.rows[i]
		if q.request != "" && r.id == q.request || q.request == "" && (matches(q.Request, r.id) || matches(q.Decision, r.decision) || matches(q.Decision, r.admission)) {
			if found++; at < 0 {
				at = i
			}
		}
	}
	switch {
	case at < 0 && q.Decision != "":
		return nil, fmt.Errorf("--explain: there is no decision %s in this run; it has %s", q.Decision, in.ids(func(r *row) string { return r.decision }))
	case at < 0:
		return nil, fmt.Errorf("--explain: there is no request %s in this run; it has %s", q.Request, in.ids(func(r *row) string { return r.id }))
	case found > 1 || q.ambiguous:
		return nil, fmt.Errorf("--explain: %s is the beginning of several ids", q.text)
	}
	r := in.rows[at]
	t := &RequestDetail{Example: in.exemplar(int32(at), int(in.by[at])), Decisions: q.decisions, Regrets: q.regrets, Preempted: q.preempted,
		Admitted: r.admitted, Routed: r.routed, Enqueued: r.enqueued, Scheduled: r.scheduled, First: r.first, Ended: r.ended}
	for k := range q.decisions {
		if d := &q.decisions[k]; d.Stage == stream.StageRouting {
			t.Queues = nil
			for c := range d.Considered {
				t.Queues = append(t.Queues, in.queueAt(in.plan.number(d.Considered[c].Deployment, d.Considered[c].Replica), d.AtUS, at))
			}
		}
	}
	in.ahead(t, r)
	return t, nil
}

// ids says which ids there are.
func (in *Analyzer) ids(id func(*row) string) string {
	first, last := "", ""
	for i := range in.rows {
		if s := id(in.rows[i]); s != "" {
			if first == "" {
				first = s
			}
			last = s
		}
	}
	if first == "" {
		return "none"
	}
	return first + " to " + last
}

// queueAt is how many were truly waiting at a replica when row was routed.
func (in *Analyzer) queueAt(replica int32, at stream.Micros, row int) (n int64) {
	for k := range in.rows {
		o := in.rows[k]
		before := o.routed < at || o.routed == at && k < row
		if o.routed != never && o.replica == replica && before && (o.left() == never || o.left() > at) {
			n++
		}
	}
	return n
}

// ahead finds whom r waited behind and who was in a batch when it entered one.
func (in *Analyzer) ahead(t *RequestDetail, r *row) {
	until := r.first
	if until == never {
		until = r.ended
	}
	tenants, all := map[int32]int64{}, int64(0)
	for k := range in.rows {
		o := in.rows[k]
		if o == r || o.replica != r.replica || o.replica == nowhere || o.scheduled == never {
			continue
		}
		if r.scheduled != never && o.scheduled <= r.scheduled && (o.ended == never || o.ended > r.scheduled) {
			t.Beside++
		}
		if r.enqueued == never || o.scheduled < r.enqueued || o.scheduled >= until {
			continue
		}
		t.Behind++
		t.Largest = append(t.Largest, Work{o.id, o.work()})
		tenants[o.tenant] += o.work()
		all += o.work()
	}
	slices.SortStableFunc(t.Largest, func(a, b Work) int { return cmp.Compare(b.Tokens, a.Tokens) })
	t.Largest = t.Largest[:min(len(t.Largest), 3)]
	for n, name := range in.names.list {
		if w := tenants[int32(n)]; w > 0 && name != "" {
			t.Tenants = append(t.Tenants, Share{name, float64(w) / float64(all)})
		}
	}
	slices.SortStableFunc(t.Tenants, func(a, b Share) int { return cmp.Compare(b.Part, a.Part) })
}

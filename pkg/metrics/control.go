package metrics

import (
	"fmt"

	"blis/pkg/stream"
)

// Control is what the control plane did beside sending requests to replicas.
type Control struct {
	// Delays is how often admission put requests off.
	Delays int64 `json:"delays"`
	// SignalAgeMS is how old the values were that policies were shown of replicas,
	// one for each value, replica and look; absent where all are immediate.
	SignalAgeMS *Age  `json:"signal_age_ms,omitempty"`
	Flow        *Flow `json:"flow,omitempty"`
	// Rules are the expressions and branches of the policies; Fallbacks is how
	// often one failed, or a filter kept nobody, and something safe was done instead.
	Rules     []Rule `json:"rules,omitempty"`
	Fallbacks int64  `json:"fallbacks"`
}

// Age is of signals, in ms.
type Age struct {
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// Flow is what flow control did: Queued requests waited, up to Peak at a time for
// one model, Rejected would have had to wait in a full queue, Expired waited too
// long.
type Flow struct {
	Queued   int64 `json:"queued"`
	Peak     int64 `json:"peak"`
	Rejected int64 `json:"rejected"`
	Expired  int64 `json:"expired"`
}

// Rule is an expression or a branch of a policy: where in the policies it
// stands, its text, how often it was evaluated (a filter or a score once for each
// candidate), how often it was true (a condition), decided (a leaf) or gave a value
// (a number), and how often it failed (a filter that keeps nobody: once a decision).
type Rule struct {
	Path      string `json:"path"`
	Rule      string `json:"rule"`
	Evaluated int64  `json:"evaluated"`
	Hits      int64  `json:"hits"`
	Failed    int64  `json:"failed"`
}

// Shadow compares what the router expected to be cached, by its shadow of the
// caches or by what it last saw of them, with what was, over the requests that
// entered a batch: OverTokens were expected and not
// there, UnderTokens there and not expected. Diverged is the number of requests
// that have either.
type Shadow struct {
	Requests       int64 `json:"requests"`
	Diverged       int64 `json:"diverged"`
	ExpectedTokens int64 `json:"expected_tokens"`
	CachedTokens   int64 `json:"cached_tokens"`
	OverTokens     int64 `json:"over_tokens"`
	UnderTokens    int64 `json:"under_tokens"`
}

// Expects says that the outcomes are those of a router that expects something to be
// cached, be it never anything.
func (a *Accumulator) Expects() { a.expects = true }

func (s *Shadow) add(o *stream.Outcome) {
	if o.ScheduledUS.IsZero() {
		return
	}
	s.Requests++
	s.ExpectedTokens += o.ExpectedCachedTokens
	s.CachedTokens += o.CachedTokens
	switch d := o.ExpectedCachedTokens - o.CachedTokens; {
	case d > 0:
		s.OverTokens += d
		s.Diverged++
	case d < 0:
		s.UnderTokens -= d
		s.Diverged++
	}
}

// Control counts what the control plane did.
func (a *Accumulator) Control(c *Control) { a.control = c }

// Warning says that a policy's expressions failed or its filters kept nobody, "" if
// neither happened.
func (c *Control) Warning() string {
	if c == nil || c.Fallbacks == 0 {
		return ""
	}
	worst := c.Rules[0]
	for _, r := range c.Rules {
		if r.Failed > worst.Failed {
			worst = r
		}
	}
	return fmt.Sprintf("policies: expressions failed or filters kept nobody %d times, and the fallback decided; %s did so %d times in %d evaluations: %s",
		c.Fallbacks, worst.Path, worst.Failed, worst.Evaluated, worst.Rule)
}

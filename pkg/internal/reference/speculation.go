package reference

// Speculation is speculative decoding: after each step, a drafter proposes tokens for each request, which its next step
// computes behind the newest token. That step yields a token and one more for each draft before the first wrong one.
type Speculation struct {
	// Tokens is the number of drafts. Schedule, if any, has it by the number of requests in the step before.
	Tokens   int
	Schedule []int
	// Lookahead is the number of tokens behind those of a step for which a request has blocks, and BudgetSlots what it
	// takes of the budget besides its tokens.
	Lookahead, BudgetSlots int
	// HashLookahead is the number of tokens behind a block that its hash covers. DropLastHit computes the last block of
	// a hit again.
	HashLookahead int
	DropLastHit   bool
	// Rates has the probability that each draft is right if those before it are. Draw returns the random number of a
	// token of the output of a request.
	Rates []float64
	Draw  func(id string, token int) float64
	// DraftUS is the time of a draft: constant, and for each request in the step.
	DraftUS [2]float64
}

// drafting is what a request has for speculative decoding.
type drafting struct {
	// drafts are proposed for its next step, or padded: none are, but their places are computed.
	drafts int
	padded bool
	// flying is the number of its tokens in the step in progress and the batch ahead.
	flying int
	// inPrompt: its last step left tokens to compute.
	inPrompt bool
}

// slots is the number of tokens that a request has room for if it computes n.
func (c *Config) slots(n int) int {
	if c.Speculation == nil {
		return n
	}
	if n += c.Speculation.Lookahead; c.MaxModelLen > 0 {
		n = min(n, c.MaxModelLen)
	}
	return n
}

// mostSlots is the most tokens that a request has room for until its end.
func (c *Config) mostSlots(input, output int) int {
	n := input + output - 1 // the last token is not computed
	if s := c.Speculation; s != nil {
		if n += s.Tokens + s.Lookahead; c.Async { // the drafts of two steps, and one step too many
			n += s.Tokens + 1
		}
		if c.MaxModelLen > 0 {
			n = min(n, c.MaxModelLen)
		}
	}
	return n
}

// budgetSlots is what a request in a batch takes of the budget besides its tokens.
func (c *Config) budgetSlots() int {
	if c.Speculation == nil {
		return 0
	}
	return c.Speculation.BudgetSlots
}

// hashLookahead is the number of tokens behind a block that its hash covers.
func (c *Config) hashLookahead() int {
	if c.Speculation == nil {
		return 0
	}
	return c.Speculation.HashLookahead
}

// maxTokens is the length at which an output ends if no token ends it, and whether there is one.
func (c *Config) maxTokens(q *request) (most int, ok bool) {
	if !q.EOS || c.MaxModelLen > 0 && q.Input+q.Output >= c.MaxModelLen {
		return q.Output, true
	}
	return c.MaxModelLen - q.Input, c.MaxModelLen > 0
}

// hasAllOutput reports whether a request is sure to have its maximum output when its steps have ended.
func (c *Config) hasAllOutput(q *request) bool {
	most, ok := c.maxTokens(q)
	return ok && q.inFlight > 0 && q.computed+2-q.inFlight >= q.Input+most
}

// pads reports whether a waiting request that computes one token behind hits gets the places of drafts.
func (r *replica) pads(b *batch, q *request, hits int) bool {
	s := r.config.Speculation
	if s == nil || s.Schedule != nil || q.length()-hits != 1 {
		return false
	}
	running := false
	for _, p := range b.entries {
		if p.wasInPrompt && !p.admitted {
			return false
		}
		running = running || !p.admitted
	}
	if !running && hits == 0 {
		return false
	}
	return r.config.MaxModelLen == 0 || hits+1+s.Tokens+1 <= r.config.MaxModelLen
}

// canUseDrafts reports whether the drafts after a step that computes n tokens of a request may be computed.
func (c *Config) canUseDrafts(q *request, n int) bool {
	if q.computed+n < q.visible() {
		return false
	}
	sure := q.outcome.Generated + 1
	if q.inFlight > 0 {
		sure++
	}
	most, ok := c.maxTokens(q)
	return !ok || sure < most
}

// draftsOf is the number of drafts among the next n tokens of a request.
func (r *replica) draftsOf(b *batch, q *request, n int) int {
	if r.config.Speculation == nil {
		return 0
	}
	if r.config.canUseDrafts(q, n) {
		b.usesDrafts = true
	}
	drafts := min(q.drafting.drafts, max(0, q.computed+n-q.length()))
	if drafts < q.drafting.drafts {
		r.drafts.Cut++
	}
	if q.drafting.padded {
		r.drafts.Padded++
	}
	return drafts
}

// forgetDrafts forgets the drafts of a request that is preempted. The tokens of the step in progress still come.
func (r *replica) forgetDrafts(q *request) {
	if r.config.Speculation == nil {
		return
	}
	q.drafting, q.inFlight = drafting{}, 0
	if r.step == nil {
		return
	}
	for i := range r.step.entries {
		if p := &r.step.entries[i]; p.request == q {
			p.stale = true
			r.drafts.Stale++
		}
	}
}

// propose gives each request in a new batch the drafts for its next step.
func (r *replica) propose(b *batch) {
	s := r.config.Speculation
	if s == nil || len(b.entries) == 0 {
		return
	}
	n := s.Tokens
	if s.Schedule != nil {
		n = s.Schedule[min(len(b.entries), len(s.Schedule)-1)]
	}
	if b.usesDrafts || s.Lookahead == 0 {
		b.Proposals = int64(n)
	} else {
		r.drafts.Unused++
	}
	for i := range b.entries {
		p := &b.entries[i]
		if p.request.drafting.inPrompt = !p.emitsToken; p.emitsToken {
			p.request.drafting.drafts = n
		}
	}
}

// yield gives a request the tokens of its entry in a step that ended at now, and reports whether it got any.
func (r *replica) yield(p entry, now int64) bool {
	q := p.request
	if !p.stale {
		q.drafting.flying -= p.tokens
	}
	if !p.emitsToken {
		return false
	}
	accepted := r.accepted(p)
	if p.drafts > 0 {
		r.drafts.Verifications++
		r.drafts.Drafted += p.drafts
		r.drafts.Accepted += accepted
	}
	got := 0
	for ; got <= accepted && !q.final(); got++ {
		q.addToken(now, r.seenUS)
	}
	if !p.stale {
		q.inFlight -= 1 + p.drafts
		q.computed -= 1 + p.drafts - got
		r.async.LateHashes += r.register(q, q.computed-q.drafting.flying)
	}
	return true
}

// accepted is the number of drafts of an entry that are right.
func (r *replica) accepted(p entry) (accepted int) {
	q, s := p.request, r.config.Speculation
	for accepted < p.drafts && !p.padded {
		rate := s.Rates[accepted]
		if q.DraftAcceptance != nil {
			rate = *q.DraftAcceptance
		}
		if s.Draw(q.ID, q.outcome.Generated+accepted) >= rate {
			break
		}
		accepted++
	}
	return accepted
}

// DraftCounts counts steps of requests that computed drafts, the drafts and those that were right, and what is rare.
type DraftCounts struct {
	Verifications, Drafted, Accepted int
	// Padded requests, those cut by the budget or the length of the model, stale ones and dropped hits.
	Padded, Cut, Stale, Dropped, Unused int
}

func (d *DraftCounts) add(e DraftCounts) {
	d.Verifications += e.Verifications
	d.Drafted += e.Drafted
	d.Accepted += e.Accepted
	d.Padded += e.Padded
	d.Cut += e.Cut
	d.Stale += e.Stale
	d.Dropped += e.Dropped
	d.Unused += e.Unused
}

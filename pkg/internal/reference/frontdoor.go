package reference

import "math/rand/v2"

// FrontDoor are the limits of a server, nil for none: for the requests that it has admitted and that have not ended,
// and for the tokens of the prompts of those without a token. It exists in clusters without Disaggregation in which no
// request is redirected. RunnerSeqs is max_num_seqs if MaxNumSeqs is max_num_active_seqs, else 0; it limits nothing.
type FrontDoor struct {
	Reqs, Tokens *int
	RunnerSeqs   int
}

// rejected rejects a request at its server, at which it comes or is tokenized, if a limit is reached, and reports
// whether it did.
func (s *simulation) rejected(q *request) bool {
	reqs, tokens := 0, 0
	for _, x := range s.requests {
		if x.stage >= stageQueued && !x.final() && x.outcome.Replica == q.outcome.Replica {
			if reqs++; x.outcome.Generated == 0 {
				tokens += x.Input
			}
		}
	}
	d := &s.config.Door
	switch {
	case d.Reqs != nil && reqs >= *d.Reqs:
		q.outcome.Reason = "max_num_queued_reqs"
	case d.Tokens != nil && tokens >= *d.Tokens:
		q.outcome.Reason = "max_num_queued_tokens"
	default:
		return false
	}
	q.outcome.State = Rejected
	s.count(q.outcome.Replica, -1)
	s.flow.due = true
	return true
}

// RandomFrontDoor is a random case with limits: of Random, or with flow control, failures, auto-scaling or a host.
func RandomFrontDoor(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x646f6f72))}
	c, requests := pick(d, Random, Random, RandomFlow, RandomHosts, RandomRetries, RandomFailures, RandomScaling)(seed)
	if c.Scaling != nil {
		c.Scaling.Redirect = false
	}
	if c.Failures != nil {
		for i := range c.Failures.Events {
			c.Failures.Events[i].Redirect = false
		}
	}
	longest := 0
	for _, r := range requests {
		longest = max(longest, r.Input)
	}
	if d.percent(70) {
		c.Door.Reqs = new(pick(d, 0, 1, 2, 3, 5, 8, 20))
	}
	if c.Door.Reqs == nil || d.percent(40) {
		c.Door.Tokens = new(pick(d, 0, 1, d.between(1, longest), longest, 2*longest, 4*longest))
	}
	if d.percent(30) {
		c.Door.RunnerSeqs = c.MaxNumSeqs + d.between(0, 5)
	}
	return c, requests
}

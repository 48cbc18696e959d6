package reference

import "testing"

// TestRandomGrammars: the random cases have what is rare, and obey the laws.
func TestRandomGrammars(t *testing.T) {
	const cases = 600
	counts := map[string]int{}
	for seed := range uint64(cases) {
		c, requests := RandomGrammars(seed)
		if c.Speculation != nil {
			c.Speculation.Draw = func(id string, token int) float64 { return float64((len(id)+7*token)%10) / 10 }
		}
		r := Run(c, requests)
		checkGrammars(t, seed, c, requests, r)
		g := r.Grammars
		for name, n := range map[string]int{"waits": g.Waits, "shared": g.Shared, "queued": g.Queued,
			"skipped": g.Skipped, "idle": g.Idle, "deferred": g.Deferred, "extended": g.Extended,
			"formed late": g.FormedLate, "left early": g.LeftEarly} {
			if n > 0 {
				counts[name]++
			}
		}
	}
	t.Logf("of %d cases: %v", cases, counts)
	for name, least := range map[string]int{"waits": cases / 2, "shared": cases / 4, "queued": cases / 4,
		"skipped": cases / 2, "idle": cases / 4, "deferred": cases / 5, "extended": cases / 10,
		"formed late": cases / 10, "left early": 5} {
		if counts[name] < least {
			t.Errorf("%s in %d of %d cases, want at least %d", name, counts[name], cases, least)
		}
	}
}

// checkGrammars: no request runs before its grammar is compiled, which takes at least its time for the first one, and
// a step has a mask for each request with a grammar that gets a token at most.
func checkGrammars(t *testing.T, seed uint64, c Config, requests []Request, r Result) {
	t.Helper()
	of, first := map[string]string{}, map[string]bool{}
	for i, q := range requests {
		of[q.ID] = q.Grammar
		o := r.Outcomes[i]
		if o.ScheduledUS == Never {
			continue
		}
		if c.Replicas == 1 && q.Grammar != "" && !first[q.Grammar] && o.GrammarUS < c.Grammars.CompileUS(q.Grammar) {
			earlier := false
			for k, p := range r.Outcomes {
				earlier = earlier || k != i && requests[k].Grammar == q.Grammar && p.EnqueuedUS != Never &&
					p.EnqueuedUS <= o.EnqueuedUS
			}
			if !earlier {
				t.Errorf("seed %d: %s waits %d µs for the first compilation", seed, o.ID, o.GrammarUS)
			}
		}
		first[q.Grammar] = true
		if wait := o.ScheduledUS - o.EnqueuedUS; o.GrammarUS < 0 || o.GrammarUS > wait ||
			q.Grammar == "" && o.GrammarUS > 0 {
			t.Errorf("seed %d: %s waits %d µs for its grammar of %d in the queue", seed, o.ID, o.GrammarUS, wait)
		}
	}
	drafts := 0
	if c.Speculation != nil {
		drafts = c.Speculation.Tokens
	}
	for _, steps := range r.Steps {
		for i, s := range steps {
			structured := 0
			for _, x := range s.Shares {
				if of[x.ID] != "" {
					structured++
				}
			}
			if s.Masks > structured*(1+drafts) || s.Masks == 0 && s.MaskWaitUS > 0 ||
				i > 0 && s.StartUS < steps[i-1].EndUS {
				t.Errorf("seed %d: step %d has %d masks for %d requests: %+v", seed, i, s.Masks, structured, s)
			}
		}
	}
}

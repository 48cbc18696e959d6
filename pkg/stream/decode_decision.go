package stream

import (
	"slices"

	"blis/pkg/registry"
)

// Decision decodes the record at hand into d. What the line leaves out is absent
// in d. The memory of its lists is used again.
func (r *Reader) Decision(d *Decision) error {
	r.scan.reset(r.line)
	return r.located(d.decode(&r.scan))
}

// decode reads one line into d.
func (d *Decision) decode(s *scanner) error {
	*d = Decision{Kind: KindDecision, Replica: Nowhere, Scorers: d.Scorers[:0], Considered: d.Considered[:0]}
	m := members{object: decisionObject}
	for s.each(&m) {
		if !d.decodeWhat(s, m.field) {
			d.decodeChoice(s, m.field)
		}
	}
	if err := s.finish(); err != nil {
		return err
	}
	if !slices.Contains(stages, d.Stage) {
		return registry.Unknown("stage", d.Stage, stages)
	}
	return nil
}

// decodeWhat reads f if it says what was decided about, by whom and why.
func (d *Decision) decodeWhat(s *scanner, f *Field) bool {
	switch f.Name {
	case "kind":
		s.kind(f)
	case "id":
		d.ID = s.text(f)
	case "stage":
		d.Stage = s.name(f)
	case "at_us":
		d.AtUS = s.micros(f)
	case "request":
		d.Request = s.text(f)
	case "verdict":
		d.Verdict = s.name(f)
	case "delay_us":
		d.DelayUS = s.integer(f)
	case "reason":
		d.Reason = s.name(f)
	case "rule":
		d.Rule = s.name(f)
	default:
		return false
	}
	return true
}

// decodeChoice reads f, which is one of the others.
func (d *Decision) decodeChoice(s *scanner, f *Field) {
	switch f.Name {
	case "deployment":
		d.Deployment = s.name(f)
	case "replica":
		d.Replica = Index(s.integer(f))
	case "score":
		d.Score = s.number(f)
	case "candidates":
		d.Candidates = s.integer(f)
	case "expected_cached_tokens":
		d.ExpectedCachedTokens = s.integer(f)
	case "scorers":
		for n := 0; s.element(f, n); n++ {
			d.Scorers = append(d.Scorers, s.name(f))
		}
	case "considered":
		for n := 0; s.element(f, n); n++ {
			if n < cap(d.Considered) {
				d.Considered = d.Considered[:n+1]
			} else {
				d.Considered = append(d.Considered, Candidate{})
			}
			if d.Considered[n].decode(s); s.err != nil {
				s.within(f, n)
				return
			}
		}
	}
}

// decode reads one object into c; what it leaves out is absent in c.
func (c *Candidate) decode(s *scanner) {
	terms := c.Terms[:0]
	*c = NewCandidate("", 0)
	c.Terms = terms
	m := members{object: candidateObject}
	for s.each(&m) {
		switch f := m.field; f.Name {
		case "deployment":
			c.Deployment = s.name(f)
		case "replica":
			c.Replica = Index(s.integer(f))
		case "filtered":
			c.Filtered = s.boolean(f)
		case "score":
			c.Score = Number(s.number(f))
		case "terms":
			for n := 0; s.element(f, n); n++ {
				c.Terms = append(c.Terms, s.number(f))
			}
		case "inflight":
			c.Inflight = Index(s.integer(f))
		case "queue_depth":
			c.QueueDepth = Index(s.integer(f))
		case "running":
			c.Running = Index(s.integer(f))
		case "kv_util":
			c.KVUtil = Number(s.number(f))
		case "hit_rate":
			c.HitRate = Number(s.number(f))
		case "recent_ttft_ms":
			c.RecentTTFTMS = Number(s.number(f))
		case "recent_tpot_ms":
			c.RecentTPOTMS = Number(s.number(f))
		case "est_wait_ms":
			c.EstWaitMS = Number(s.number(f))
		case "matched_blocks":
			c.Matched = Index(s.integer(f))
		case "cached_blocks":
			c.Cached = Index(s.integer(f))
		case "age_us":
			c.AgeUS = s.integer(f)
		}
	}
}

// UnmarshalJSON decodes a candidate, of which what the line leaves out is absent.
func (c *Candidate) UnmarshalJSON(line []byte) error {
	type plain Candidate
	*c = NewCandidate("", 0)
	return decodeStrictly(line, (*plain)(c))
}

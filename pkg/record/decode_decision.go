package record

import "math"

// Decision decodes the record at hand into d. What the line leaves out is absent
// in d.
func (r *Reader) Decision(d *Decision) error {
	*d = Decision{Replica: Nowhere}
	return r.Decode(d)
}

// UnmarshalJSON decodes a candidate, of which what the line leaves out is absent.
func (c *Candidate) UnmarshalJSON(line []byte) error {
	type plain Candidate
	none := Number(math.NaN())
	*c = Candidate{Score: none, KVUtil: none, QueueDepth: Nowhere, Running: Nowhere, Matched: Nowhere, Cached: Nowhere}
	return decodeStrictly(line, (*plain)(c))
}

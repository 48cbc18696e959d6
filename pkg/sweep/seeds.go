package sweep

import "bytes"

// seedCheck finds out, from results in the order of their points, whether seeds have an effect.
type seedCheck struct {
	write    func(*Result) error
	previous *Result
	// pairs are results that follow one that differs only in its seed; equal are those with the same metrics.
	pairs, equal int
}

// add writes a result.
func (c *seedCheck) add(r *Result) error {
	if p := c.previous; p != nil && p.Metrics != nil && r.Metrics != nil && p.Seed != r.Seed &&
		p.ConfigDigest == r.ConfigDigest && p.Policy == r.Policy && p.WorkloadDigest == r.WorkloadDigest {
		c.pairs++
		if bytes.Equal(p.Metrics, r.Metrics) {
			c.equal++
		}
	}
	c.previous = r
	return c.write(r)
}

// haveNoEffect reports whether there were results that differ only in their seed, all with the same metrics.
func (c *seedCheck) haveNoEffect() bool { return c.pairs > 0 && c.equal == c.pairs }

package recording

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"blis/pkg/stream"
)

// gaps are the times between the chunks of an output, in s.
type gaps struct {
	sum  float64
	n    int
	list []float64
	// null says that some are unknown.
	null bool
}

// UnmarshalJSON reads a list of numbers, or null for none.
func (g *gaps) UnmarshalJSON(text []byte) error {
	g.list = nil
	g.null = len(text) > 0 && text[0] == '[' && bytes.Contains(text, []byte("null"))
	if err := json.Unmarshal(text, &g.list); err != nil {
		return err
	}
	g.sum, g.n = 0, len(g.list)
	for _, s := range g.list {
		g.sum += s
	}
	return nil
}

// setITLs sets the inter-token latencies of c if every chunk was one token.
func (g *gaps) setITLs(c *request) {
	if int64(g.n) != c.OutputTokens-1 || slices.ContainsFunc(g.list,
		func(s float64) bool { return !(s >= 0) || s > 1e9 }) {
		return
	}
	for _, s := range g.list {
		us := int64(math.Floor(s*1e6 + 0.5))
		if n := len(c.ITLUS); n > 0 && c.ITLUS[n-1][0] == us {
			c.ITLUS[n-1][1]++
		} else {
			c.ITLUS = append(c.ITLUS, [2]int64{us, 1})
		}
		c.ITLMaxUS = max(c.ITLMaxUS, stream.Micros(us))
	}
}

// scale multiplies all gaps, to convert them to s.
func (g *gaps) scale(by float64) {
	for i := range g.list {
		g.list[i] *= by
	}
	g.sum *= by
}

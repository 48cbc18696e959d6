package recording

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"blis/pkg/stream"
)

// gaps are the times between the pieces of an answer, in s: n in list, sum in all.
type gaps struct {
	sum  float64
	n    int
	list []float64
	// null: there is one among them, so that the others are not all.
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

// into gives c the gaps between its tokens, if each came by itself.
func (g *gaps) into(c *call) {
	if int64(g.n) != c.OutputTokens-1 || slices.ContainsFunc(g.list, func(s float64) bool { return !(s >= 0) || s > 1e9 }) {
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

// scale multiplies all of them, to make them s.
func (g *gaps) scale(by float64) {
	for i := range g.list {
		g.list[i] *= by
	}
	g.sum *= by
}

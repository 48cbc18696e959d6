package gen

import (
	"fmt"
	"math/rand/v2"
	"sort"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// maxPrefixGroups bounds the groups of one client; each takes some 40 bytes.
const maxPrefixGroups = 1 << 20

// maxPopularity keeps sums of weights finite.
const maxPopularity = 1e12

// prefixes chooses what a client's prompts begin with.
type prefixes struct {
	// groups are the shared prefixes at full length; shares is the running sum
	// of their popularity.
	groups []stream.Segment
	shares []float64
	reuse  float64
	habit  *habit // nil if each prompt takes what it draws
}

// newPrefixes checks the client's prefix spec, which stands at path, and makes
// it ready to draw; nil if it has none.
func newPrefixes(seed uint64, c *Client, path string, fault fault) (*prefixes, error) {
	s := c.PrefixSpec
	if s == nil {
		return nil, nil
	}
	length, err := s.PrefixLength.Length()
	if err != nil {
		return nil, inside(path+".prefix_length", err, fault)
	}
	if !(s.ReuseProb >= 0 && s.ReuseProb <= 1) {
		return nil, fault(path+".reuse_prob", "must be between 0 and 1, is %g", s.ReuseProb)
	}
	if err := s.checkGroups(path, fault); err != nil {
		return nil, err
	}
	p := &prefixes{reuse: s.ReuseProb, habit: newHabit(seed, c)}
	for _, g := range s.PrefixGroups {
		p.add(seed, g.GroupID, g.Popularity, length)
	}
	for i := range s.NumPrefixGroups {
		p.add(seed, fmt.Sprintf("%s.%d", c.ID, i), 1, length)
	}
	return p, nil
}

// add draws the group's length from the group's own stream, so that a group is
// the same in every client and beside any others.
func (p *prefixes) add(seed uint64, id string, popularity float64, length *dist.Length) {
	tokens := length.Draw(dist.NewStream(seed, "prefix-group/"+id))
	p.groups = append(p.groups, stream.Segment{ID: id, Tokens: tokens})
	if n := len(p.shares); n > 0 {
		popularity += p.shares[n-1]
	}
	p.shares = append(p.shares, popularity)
}

// choose returns the prefix of a group at full length, or false for none. Both
// draws happen every time, so that ReuseProb changes no choice of group.
func (p *prefixes) choose(r *rand.Rand) (stream.Segment, bool) {
	if p == nil {
		return stream.Segment{}, false
	}
	reused := r.Float64() < p.reuse
	at := r.Float64() * p.shares[len(p.shares)-1]
	// Rounding may take at up to the last share itself.
	i := min(sort.Search(len(p.shares), func(i int) bool { return p.shares[i] > at }), len(p.groups)-1)
	return p.groups[p.habit.group(i, reused)], reused
}

// begin appends to prompt the prefix of a group, or none. A prompt of tokens that
// is too short for the whole prefix has as much of it as leaves one token of its
// own.
func (p *prefixes) begin(prompt []stream.Segment, tokens int64, r *rand.Rand) []stream.Segment {
	g, reused := p.choose(r)
	if !reused || tokens == 1 {
		return prompt
	}
	return append(prompt, stream.Segment{ID: g.ID, Tokens: min(g.Tokens, tokens-1)})
}

// checkGroups reports the first fault in how groups are given.
func (s *PrefixSpec) checkGroups(path string, fault fault) error {
	switch {
	case len(s.PrefixGroups) > 0 && s.NumPrefixGroups != 0:
		return fault(path+".num_prefix_groups", "must not stand beside prefix_groups")
	case len(s.PrefixGroups) == 0 && (s.NumPrefixGroups < 1 || s.NumPrefixGroups > maxPrefixGroups):
		return fault(path+".num_prefix_groups", "must be between 1 and %d where prefix_groups lists none, is %d", maxPrefixGroups, s.NumPrefixGroups)
	}
	seen := map[string]bool{}
	for i, g := range s.PrefixGroups {
		at := elementPath(path+".prefix_groups", i)
		switch {
		case g.GroupID == "":
			return fault(at+".group_id", "must be given")
		case seen[g.GroupID]:
			return fault(at+".group_id", "%q is taken by an earlier group", g.GroupID)
		case !(g.Popularity > 0 && g.Popularity <= maxPopularity):
			return fault(at+".popularity", "must be above 0 and at most %g, is %g", maxPopularity, g.Popularity)
		}
		seen[g.GroupID] = true
	}
	return nil
}

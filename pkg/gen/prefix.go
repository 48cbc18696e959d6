package gen

import (
	"fmt"
	"math/rand/v2"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// maxPrefixGroups bounds the groups of one client; each takes about 40 bytes.
const maxPrefixGroups = 1 << 20

// maxPopularity keeps sums of weights finite.
const maxPopularity = 1e12

// prefixes chooses the shared prefixes of a client's prompts.
type prefixes struct {
	// groups holds the prefixes at full length, popularity their weights.
	groups           []stream.Segment
	popularity       dist.Weights
	reuseProbability float64
	state            reuseState
}

// newPrefixes validates the prefix spec of c; nil if it has none or is invalid.
func newPrefixes(seed uint64, c *Client, at field) *prefixes {
	s := c.PrefixSpec
	if s == nil {
		return nil
	}
	length := at.length("prefix_length", &s.PrefixLength)
	between(at, "reuse_probability", s.ReuseProbability, 0, 1)
	if s.checkGroups(at); at.err != nil {
		return nil
	}
	p := &prefixes{reuseProbability: s.ReuseProbability,
		state: reuseState{c.derived.reuseProbability, c.stream(seed, "prefix-habit"), -1}}
	for _, g := range s.PrefixGroups {
		p.addGroup(seed, g.GroupID, g.Popularity, length)
	}
	for i := range s.NumPrefixGroups {
		p.addGroup(seed, fmt.Sprintf("%s.%d", c.ID, i), 1, length)
	}
	return p
}

// addGroup draws the group's length from the group's own stream, so a group is the same in every
// client.
func (p *prefixes) addGroup(seed uint64, id string, popularity float64, length *dist.Length) {
	tokens := length.Draw(dist.NewStream(seed, "prefix-group/"+id))
	p.groups = append(p.groups, stream.Segment{ID: id, Tokens: tokens})
	p.popularity.Add(popularity)
}

// choose returns the full prefix of a group, or false for none. It makes both draws in any case, so
// that ReuseProbability does not change the choice of groups.
func (p *prefixes) choose(r *rand.Rand) (stream.Segment, bool) {
	if p == nil {
		return stream.Segment{}, false
	}
	reused := r.Float64() < p.reuseProbability
	i := p.popularity.Index(r.Float64())
	return p.groups[p.state.choose(i, reused)], reused
}

// appendTo appends the prefix of a group, or none, to a prompt of the given length. A prefix that
// is too long is cut so that one token of the prompt is its own.
func (p *prefixes) appendTo(prompt []stream.Segment, tokens int64, r *rand.Rand) []stream.Segment {
	g, reused := p.choose(r)
	if !reused || tokens == 1 {
		return prompt
	}
	return append(prompt, stream.Segment{ID: g.ID, Tokens: min(g.Tokens, tokens-1)})
}

// checkGroups reports the first invalid group.
func (s *PrefixSpec) checkGroups(at field) {
	switch {
	case len(s.PrefixGroups) > 0 && s.NumPrefixGroups != 0:
		at.fail("num_prefix_groups", "cannot be combined with prefix_groups")
	case len(s.PrefixGroups) == 0 && (s.NumPrefixGroups < 1 || s.NumPrefixGroups > maxPrefixGroups):
		at.fail("num_prefix_groups", "must be between 1 and %d without prefix_groups, is %d", maxPrefixGroups,
			s.NumPrefixGroups)
	}
	seen := map[string]bool{}
	for i, g := range s.PrefixGroups {
		group := at.at("prefix_groups").element(i)
		switch {
		case g.GroupID == "":
			group.fail("group_id", "must be given")
		case seen[g.GroupID]:
			group.fail("group_id", "%q is taken by an earlier group", g.GroupID)
		case !(g.Popularity > 0 && g.Popularity <= maxPopularity):
			group.fail("popularity", "must be above 0 and at most %g, is %g", maxPopularity, g.Popularity)
		}
		seen[g.GroupID] = true
	}
}

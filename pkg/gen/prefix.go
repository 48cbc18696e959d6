package gen

import (
	"fmt"
	"math/rand/v2"
	"sort"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// maxPrefixGroups bounds the groups of one client; each takes about 40 bytes.
const maxPrefixGroups = 1 << 20

// maxPopularity keeps sums of weights finite.
const maxPopularity = 1e12

// prefixes chooses the shared prefixes of a client's prompts.
type prefixes struct {
	// groups holds the prefixes at full length, cumulative the running sum of their popularity.
	groups           []stream.Segment
	cumulative       []float64
	reuseProbability float64
	state            *reuseState // nil if prompts are independent
}

// newPrefixes validates the prefix spec of c, which is at path; nil if it has none.
func newPrefixes(seed uint64, c *Client, path string, errorf errorFunc) (*prefixes, error) {
	s := c.PrefixSpec
	if s == nil {
		return nil, nil
	}
	length, err := s.PrefixLength.Length()
	if err != nil {
		return nil, paramError(path+".prefix_length", err, errorf)
	}
	if !(s.ReuseProbability >= 0 && s.ReuseProbability <= 1) {
		return nil, errorf(path+".reuse_probability", "must be between 0 and 1, is %g", s.ReuseProbability)
	}
	if err := s.checkGroups(path, errorf); err != nil {
		return nil, err
	}
	p := &prefixes{reuseProbability: s.ReuseProbability, state: newReuseState(seed, c)}
	for _, g := range s.PrefixGroups {
		p.addGroup(seed, g.GroupID, g.Popularity, length)
	}
	for i := range s.NumPrefixGroups {
		p.addGroup(seed, fmt.Sprintf("%s.%d", c.ID, i), 1, length)
	}
	return p, nil
}

// addGroup draws the group's length from the group's own stream, so a group is the same in every
// client.
func (p *prefixes) addGroup(seed uint64, id string, popularity float64, length *dist.Length) {
	tokens := length.Draw(dist.NewStream(seed, "prefix-group/"+id))
	p.groups = append(p.groups, stream.Segment{ID: id, Tokens: tokens})
	if n := len(p.cumulative); n > 0 {
		popularity += p.cumulative[n-1]
	}
	p.cumulative = append(p.cumulative, popularity)
}

// choose returns the full prefix of a group, or false for none. It makes both draws in any case, so
// that ReuseProbability does not change the choice of groups.
func (p *prefixes) choose(r *rand.Rand) (stream.Segment, bool) {
	if p == nil {
		return stream.Segment{}, false
	}
	reused := r.Float64() < p.reuseProbability
	target := r.Float64() * p.cumulative[len(p.cumulative)-1]
	// Rounding may make at equal to the last sum.
	i := min(sort.Search(len(p.cumulative), func(i int) bool { return p.cumulative[i] > target }), len(p.groups)-1)
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
func (s *PrefixSpec) checkGroups(path string, errorf errorFunc) error {
	switch {
	case len(s.PrefixGroups) > 0 && s.NumPrefixGroups != 0:
		return errorf(path+".num_prefix_groups", "cannot be combined with prefix_groups")
	case len(s.PrefixGroups) == 0 && (s.NumPrefixGroups < 1 || s.NumPrefixGroups > maxPrefixGroups):
		return errorf(path+".num_prefix_groups", "must be between 1 and %d without prefix_groups, is %d",
			maxPrefixGroups, s.NumPrefixGroups)
	}
	seen := map[string]bool{}
	for i, g := range s.PrefixGroups {
		at := elementPath(path+".prefix_groups", i)
		switch {
		case g.GroupID == "":
			return errorf(at+".group_id", "must be given")
		case seen[g.GroupID]:
			return errorf(at+".group_id", "%q is taken by an earlier group", g.GroupID)
		case !(g.Popularity > 0 && g.Popularity <= maxPopularity):
			return errorf(at+".popularity", "must be above 0 and at most %g, is %g", maxPopularity, g.Popularity)
		}
		seen[g.GroupID] = true
	}
	return nil
}

package metrics

import (
	"slices"

	"blis/pkg/stat"
)

// part divides the run by class, tenant or model.
type part struct {
	written string
	// names are in ascending order; totals and groups go with them.
	names  []string
	totals []totals
	groups []*Group
	// of has the place in names of each group of the Accumulator; none where
	// it names nothing.
	of []int
}

const none = -1

// part divides by a name of the key. us is the duration.
func (a *Accumulator) part(written string, us int64, name func(*key) string) *part {
	p := &part{written: written, of: make([]int, len(a.totals))}
	for i := range a.totals {
		p.names = append(p.names, name(&a.totals[i].key))
	}
	slices.Sort(p.names)
	p.names = slices.Compact(p.names)
	if len(p.names) > 0 && p.names[0] == "" {
		p.names = p.names[1:]
	}
	p.totals = make([]totals, len(p.names))
	for i := range a.totals {
		at, found := slices.BinarySearch(p.names, name(&a.totals[i].key))
		p.of[i] = none
		if found {
			p.of[i] = at
			p.totals[at].add(&a.totals[i])
		}
	}
	for i := range p.totals {
		p.groups = append(p.groups, p.totals[i].group(us))
	}
	return p
}

// named is the part as the tree has it, nil if it has no group.
func (p *part) named() map[string]*Group {
	if len(p.names) == 0 {
		return nil
	}
	tree := make(map[string]*Group, len(p.names))
	for i, name := range p.names {
		tree[name] = p.groups[i]
	}
	return tree
}

// deal gives each group its distribution of the measure. samples are sorted;
// keys, as long, is scratch.
func (p *part) deal(samples []stat.Tagged, keys []uint64, m *measure) {
	ends := make([]int, len(p.groups)+1)
	for i := range samples {
		if g := p.of[samples[i].Tag]; g != none {
			ends[g+1]++
		}
	}
	for g := range p.groups {
		ends[g+1] += ends[g]
	}
	for i := range samples {
		if g := p.of[samples[i].Tag]; g != none {
			keys[ends[g]] = samples[i].Key
			ends[g]++
		}
	}
	from := 0
	for g, group := range p.groups {
		*m.branch(group) = m.covered(m.of(keys[from:ends[g]]), &p.totals[g])
		from = ends[g]
	}
}

// groupsOf returns the whole and all groups of its parts.
func groupsOf(whole *Group, parts []*part) []*Group {
	all := []*Group{whole}
	for _, p := range parts {
		all = append(all, p.groups...)
	}
	return all
}

package metrics

import (
	"slices"

	"blis/pkg/stat"
)

// grouping divides the run by class, tenant or model.
type grouping struct {
	name string
	// names are in ascending order; totals and groups have the same order.
	names  []string
	totals []totals
	groups []*Group
	// groupIndex maps each group of the Accumulator to its index in names, noGroup if it
	// has no name.
	groupIndex []int
}

const noGroup = -1

// groupBy divides by a part of the key. us is the duration.
func (a *Accumulator) groupBy(name string, us int64, of func(*key) string) *grouping {
	p := &grouping{name: name, groupIndex: make([]int, len(a.totals))}
	for i := range a.totals {
		p.names = append(p.names, of(&a.totals[i].key))
	}
	slices.Sort(p.names)
	p.names = slices.Compact(p.names)
	if len(p.names) > 0 && p.names[0] == "" {
		p.names = p.names[1:]
	}
	p.totals = make([]totals, len(p.names))
	for i := range a.totals {
		at, found := slices.BinarySearch(p.names, of(&a.totals[i].key))
		p.groupIndex[i] = noGroup
		if found {
			p.groupIndex[i] = at
			p.totals[at].add(&a.totals[i])
		}
	}
	for i := range p.totals {
		p.groups = append(p.groups, p.totals[i].group(us))
	}
	return p
}

// tree returns the groups by name, nil if there are none.
func (p *grouping) tree() map[string]*Group {
	if len(p.names) == 0 {
		return nil
	}
	tree := make(map[string]*Group, len(p.names))
	for i, name := range p.names {
		tree[name] = p.groups[i]
	}
	return tree
}

// distribute calls use for each group with the keys of its samples, those whose tags are included; nil
// includes all. samples are sorted; keys has the same length and is scratch memory.
func (p *grouping) distribute(samples []stat.Keyed, keys []uint64, included []bool, use func(g int, sorted []uint64)) {
	if len(p.groups) == 0 {
		return
	}
	group := p.groupIndex
	if included != nil {
		group = slices.Clone(group)
		for tag := range group {
			if !included[tag] {
				group[tag] = noGroup
			}
		}
	}
	ends := make([]int, len(p.groups)+1)
	for i := range samples {
		if g := group[samples[i].Tag]; g != noGroup {
			ends[g+1]++
		}
	}
	for g := range p.groups {
		ends[g+1] += ends[g]
	}
	for i := range samples {
		if g := group[samples[i].Tag]; g != noGroup {
			keys[ends[g]] = samples[i].Key
			ends[g]++
		}
	}
	from := 0
	for g := range p.groups {
		use(g, keys[from:ends[g]])
		from = ends[g]
	}
}

// allGroups returns the whole run and all groups.
func allGroups(whole *Group, groupings []*grouping) []*Group {
	all := []*Group{whole}
	for _, p := range groupings {
		all = append(all, p.groups...)
	}
	return all
}

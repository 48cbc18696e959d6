package metrics

import "slices"

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

// sums returns for each group the sum of values of the groups of the Accumulator, of those that are included; nil
// includes all.
func (p *grouping) sums(values []int64, included []bool) []int64 {
	sums := make([]int64, len(p.groups))
	for tag, n := range values {
		if g := p.groupIndex[tag]; g != noGroup && (included == nil || included[tag]) {
			sums[g] += n
		}
	}
	return sums
}

// allGroups returns the whole run and all groups.
func allGroups(whole *Group, groupings []*grouping) []*Group {
	all := []*Group{whole}
	for _, p := range groupings {
		all = append(all, p.groups...)
	}
	return all
}

package insight

import "slices"

// repeated finds for each request how many tokens of its prompt were computed that had
// been before: those that the router expected to be cached and that were gone, or,
// where it does not look at prefixes, those by which the request falls short of the
// part of their prompts that the luckiest tenth of its tenant found cached.
func (in *Insight) repeated() {
	lucky := in.lucky()
	for i := range in.rows {
		r := in.rows[i]
		switch {
		case r.scheduled == never:
		case r.blind():
			r.again = max(0, int64(lucky[r.tenant]*float64(r.input))-int64(r.cached))
		default:
			r.again = max(0, int64(r.expected)-int64(r.cached))
		}
	}
}

// lucky is the part of the prompt, from 0 to 1, that one in ten of each tenant's
// requests found cached.
func (in *Insight) lucky() map[int32]float64 {
	found := map[int32][]float64{}
	for i := range in.rows {
		if r := in.rows[i]; r.scheduled != never {
			found[r.tenant] = append(found[r.tenant], float64(r.cached)/float64(r.input))
		}
	}
	part := map[int32]float64{}
	for tenant, all := range found {
		slices.Sort(all)
		part[tenant] = all[len(all)-1-(len(all)-1)/10]
	}
	return part
}

package attribution

import "slices"

// repeated finds for each request how many tokens of its prompt were computed that had
// been before: those that the router expected to be cached and that were gone, or,
// where it does not look at prefixes, those by which the request falls short of what
// the luckiest tenth of its tenant found cached: the least of them in tokens, and as a
// part of the prompt.
func (in *Analyzer) repeated() {
	lucky := in.lucky()
	for i := range in.rows {
		r := in.rows[i]
		switch {
		case r.scheduled == never:
		case r.blind():
			best := lucky[r.tenant]
			r.again = max(0, min(int64(best.part*float64(r.input)), best.tokens)-int64(r.cached))
		default:
			r.again = max(0, int64(r.expected)-int64(r.cached))
		}
	}
}

// found is what one in ten found cached, or more: tokens, and as a part of the prompt,
// from 0 to 1.
type found struct {
	tokens int64
	part   float64
}

// lucky finds it for each tenant.
func (in *Analyzer) lucky() map[int32]found {
	tokens, parts := map[int32][]int64{}, map[int32][]float64{}
	for i := range in.rows {
		if r := in.rows[i]; r.scheduled != never {
			tokens[r.tenant] = append(tokens[r.tenant], int64(r.cached))
			parts[r.tenant] = append(parts[r.tenant], float64(r.cached)/float64(r.input))
		}
	}
	best := map[int32]found{}
	for tenant, all := range tokens {
		slices.Sort(all)
		slices.Sort(parts[tenant])
		at := len(all) - 1 - (len(all)-1)/10
		best[tenant] = found{all[at], parts[tenant][at]}
	}
	return best
}

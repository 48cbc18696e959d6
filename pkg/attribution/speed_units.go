package attribution

import "slices"

// speedUnit is a replica that is compared with its peers, which serve the same model and have another number in group:
// all others, or those with other hardware. counts are its requests in each company, medians those of companies with
// enough of them.
type speedUnit struct {
	deployment *deployment
	group      int32
	counts     map[company]int
	medians    map[company]speedSample
	fit        stepFit
	fastest    float64 // TPOT in ms of its fastest request, 0 without any
}

// speedUnits are all replicas, each a group of its own.
func (a *Analyzer) speedUnits() (all []speedUnit) {
	a.stats.speeds.fastest = map[string]float64{}
	for n := range a.topology.replicas {
		all = append(all, speedUnit{deployment: a.topology.deploymentOf(int32(n)), group: int32(n),
			counts: map[company]int{}, medians: map[company]speedSample{}})
	}
	return all
}

// samplesByCompany are the samples of one unit. Lists are empty between units, and keep their memory.
type samplesByCompany struct {
	lists map[company]*[]speedSample
	// last is the list of the company in which the last request was: most are in the same one as that before.
	last      *[]speedSample
	lastOwner company
}

// add adds a sample in a company.
func (x *samplesByCompany) add(c company, s speedSample) {
	if x.last == nil || c != x.lastOwner {
		if x.lists == nil {
			x.lists = map[company]*[]speedSample{}
		}
		if x.lists[c] == nil {
			x.lists[c] = new([]speedSample)
		}
		x.last, x.lastOwner = x.lists[c], c
	}
	*x.last = append(*x.last, s)
}

// measureSpeed finds the counts, medians and fit of a unit, which has these requests. samples is scratch: those of all
// units at once would take 16 bytes a request.
func (a *Analyzer) measureSpeed(u *speedUnit, requests []*request, samples *samplesByCompany) {
	for _, r := range requests {
		if tpot := a.tpotMS(r); tpot != 0 {
			a.addSpeed(u, tpot, r.decoding(), samples)
		}
	}
	u.endSamples(samples)
}

// addSpeed adds the TPOT of a request to its unit.
func (a *Analyzer) addSpeed(u *speedUnit, tpot float64, d decoding, samples *samplesByCompany) {
	if fastest := a.stats.speeds.fastest; u.fastest == 0 || tpot < u.fastest {
		u.fastest = tpot
		if model := u.deployment.Model; fastest[model] == 0 || tpot < fastest[model] {
			fastest[model] = tpot
		}
	}
	samples.add(d.company(), speedSample{tpot, d.concurrent})
	u.fit.add(d.features(), tpot)
}

// endSamples finds the counts and medians of a unit from its samples.
func (u *speedUnit) endSamples(samples *samplesByCompany) {
	for c, list := range samples.lists { // in any order: a company has its own entries
		if len(*list) == 0 {
			continue
		}
		u.counts[c] = len(*list)
		if len(*list) >= speedSamples {
			u.medians[c] = medianSample(*list)
		}
		*list = (*list)[:0]
	}
}

// slowerThanPeers compares each unit with its peers.
func (a *Analyzer) slowerThanPeers(units []speedUnit) (slower []float64, configured []bool) {
	peers := map[string]map[company]*fastestPeers{}
	for i := range units {
		u := &units[i]
		model := u.deployment.Model
		if peers[model] == nil {
			peers[model] = map[company]*fastestPeers{}
		}
		for c, sample := range u.medians { // in any order: a company has its own entry
			peers[model][c] = peers[model][c].with(u.group, sample)
		}
	}
	for i := range units {
		u := &units[i]
		factor, measured := u.slowerThan(peers[u.deployment.Model], units, a.slowerByConfiguration(u.deployment))
		slower, configured = append(slower, factor), append(configured, !measured)
	}
	return slower, configured
}

// slowerThan is by what factor a unit is slower than its peers, and whether that was measured; else it is configured.
func (u *speedUnit) slowerThan(peers map[company]*fastestPeers, all []speedUnit, configured float64) (
	factor float64, measured bool) {
	factor = configured
	ratios := u.ratios(peers, speedSample.same)
	if len(ratios) > 0 {
		factor, measured = median(ratios), true
	}
	if covered, all := u.comparable(peers); 2*covered >= all && len(ratios) > 0 {
		return factor, measured
	}
	if least := u.ratios(peers, speedSample.most); len(least) > 0 {
		if bound := slices.Max(least); bound >= slowByFit && bound > factor {
			factor, measured = bound, true
		}
	}
	if fitted := u.slowerThanFit(all); fitted >= slowByFit && fitted > factor {
		factor, measured = fitted, true
	}
	return factor, measured
}

// comparable is how many requests of a unit were in a company that a peer had, and how many there are.
func (u *speedUnit) comparable(peers map[company]*fastestPeers) (covered, all int) {
	for c, n := range u.counts { // sums of integers
		all += n
		if f := peers[c]; f != nil && f.besides(u.group).tpot > 0 && n >= speedSamples {
			covered += n
		}
	}
	return covered, all
}

// ratios are, for each company of a unit, the factors by which its TPOT is above what the fastest peer would need
// there, by an estimate from another company that is 0 where there is none.
func (u *speedUnit) ratios(peers map[company]*fastestPeers,
	estimate func(peer, own speedSample, of, in company) float64) (ratios []float64) {
	for c, s := range u.medians { // the callers do not depend on the order
		best := 0.0
		for other, f := range peers {
			if ms := estimate(f.besides(u.group), s, other, c); ms > 0 && (best == 0 || ms < best) {
				best = ms
			}
		}
		if best > 0 {
			ratios = append(ratios, s.tpot/best)
		}
	}
	return ratios
}

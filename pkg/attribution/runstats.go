package attribution

import (
	"cmp"
	"slices"

	"blis/pkg/stat"
)

// runStats is what conditions need to know about the whole run.
type runStats struct {
	medianInput int64
	ttft        *medianTime // see medianTTFT
	// ranks are those of the priorities of the classes of all requests, by the number of the class; the lowest
	// priority has rank 0.
	ranks       map[int32]int
	heavyTenant int32
	// heavyPrompts is the share of the heavy tenant in all prompt tokens that were computed.
	heavyPrompts float64
	// othersLose: those that are not the heavy tenant lose at least half as often as it.
	othersLose bool
	// hotReplicas are those that get at least twice an even share of the requests.
	hotReplicas []bool
	speeds      speeds
	// steps are those of each deployment, by id; none where they are not known.
	steps map[string]stepTimes
	// prefillRates are the prompt tokens for each µs that each replica computed.
	prefillRates []float64
	// transferHeldUS is by how much longer the requests of each replica held blocks for transfers than to decode.
	transferHeldUS []int64
	// linksFull: transfers kept the links of the pools of these deployments, by id, busy nearly all the time.
	linksFull map[string]bool
	// prefillBusy has the share of the time in which the prefill replicas of deployments, by id, compute; see
	// prefillIdle.
	prefillBusy map[string]float64
	// hasStops: outcomes say how long which limit stopped their queue.
	hasStops bool
}

func (a *Analyzer) computeStats() {
	s := &a.stats
	s.ranks = a.priorityRanks()
	own, all := 0.0, 0.0
	for _, r := range a.requests.all() {
		tokens := float64(r.tokens.input - r.tokens.cached)
		if all += tokens; r.labels.tenant == s.heavyTenant {
			own += tokens
		}
	}
	s.heavyPrompts = own / max(1, all)
	inputs := make([]int32, 0, a.requests.len())
	sent := make([]int64, len(a.topology.replicas))
	for _, r := range a.requests.all() {
		inputs = append(inputs, r.tokens.input)
		if r.replica != missing {
			sent[r.replica]++
		}
	}
	if len(inputs) > 0 {
		s.medianInput = int64(stat.Nth(inputs, (len(inputs)-1)/2))
	}
	replicas, total := map[string]int64{}, map[string]int64{} // by deployment
	for n, id := range a.topology.replicas {
		replicas[id.deployment]++
		total[id.deployment] += sent[n]
	}
	for n, id := range a.topology.replicas {
		all := replicas[id.deployment]
		s.hotReplicas = append(s.hotReplicas, all > 1 && sent[n]*all >= 2*total[id.deployment] && sent[n] > 0)
	}
}

// heavyTenant is a tenant with at least 30 % of all work and twice its share of the requests, the one that has most
// more than that share; else the one with the most work, if that is at least 30 % and three times that of any other
// tenant, or 1.4 times its share of the requests and 1.25 times an even share; else missing.
func (a *Analyzer) heavyTenant() int32 {
	work, sent, total := make([]int64, len(a.names.list)), make([]int64, len(a.names.list)), int64(0)
	tenants := 0
	for _, r := range a.requests.all() {
		n, tokens := r.labels.tenant, r.work()
		if sent[n] == 0 {
			tenants++
		}
		work[n] += tokens
		sent[n]++
		total += tokens
	}
	if tenants < 2 || total == 0 { // a recording may lack tokens
		return missing
	}
	most, second, heaviest, weight := missing, int64(0), missing, 0.0
	for n, name := range a.names.list {
		w := work[n]
		if w == 0 {
			continue
		}
		share := float64(w) / float64(total)
		each := share / (float64(sent[n]) / float64(a.requests.len()))
		if name != "" && share >= 0.3 && each >= 2 && each > weight {
			heaviest, weight = int32(n), each
		}
		switch {
		case most == missing || w > work[most]:
			if most != missing {
				second = work[most]
			}
			most = int32(n)
		default:
			second = max(second, w)
		}
	}
	if heaviest != missing {
		return heaviest
	}
	share, shareSent := float64(work[most])/float64(total), float64(sent[most])/float64(a.requests.len())
	isUneven := share >= 1.25/float64(tenants) && share >= 1.4*shareSent
	if a.names.list[most] == "" || share < 0.3 || work[most] < 3*second && !isUneven {
		return missing
	}
	return most
}

// othersLose finds runStats.othersLose.
func (a *Analyzer) othersLose() bool {
	var own, others attainment
	for _, r := range a.requests.all() {
		switch {
		case !r.verdict.judged:
		case r.labels.tenant == a.stats.heavyTenant:
			own.add(r)
		default:
			others.add(r)
		}
	}
	lostOwn, lostOthers := own.all-own.met, others.all-others.met
	return lostOthers > 0 && 2*lostOthers*own.all >= lostOwn*others.all
}

// measureRecomputed finds how many tokens of each prompt had been computed before: those that
// the router expected to be cached and were evicted. Where the router does not read or use prefixes, or late, it
// is the shortfall from what the best decile of the tenant's requests finds cached, as the
// smaller of its tokens and its share of the prompt.
func (a *Analyzer) measureRecomputed() {
	var best map[int32]bestDecile
	a.withRouting(func(r *request) {
		t, c := &r.tokens, &r.contention
		switch {
		case r.scheduled() == never:
		case r.prefixIgnored() || a.draws != "" || a.indexSmall(r) || r.seen().cacheAgeUS >= staleUS:
			if best == nil {
				best = a.bestDeciles()
			}
			d := best[r.labels.tenant]
			c.recomputed = max(0, min(int64(d.share*float64(t.input)), d.tokens)-int64(t.cached))
		default:
			c.recomputed = max(0, int64(t.expected)-int64(t.cached))
		}
	})
}

// bestDecile is what the best tenth of a tenant's requests finds cached at least: tokens, and as
// a share of the prompt from 0 to 1.
type bestDecile struct {
	tokens int64
	share  float64
}

func (a *Analyzer) bestDeciles() map[int32]bestDecile {
	tokens, shares := map[int32][]int64{}, map[int32][]float64{}
	for _, r := range a.requests.all() {
		if n := r.labels.tenant; r.scheduled() != never {
			tokens[n] = append(tokens[n], int64(r.tokens.cached))
			shares[n] = append(shares[n], float64(r.tokens.cached)/float64(r.tokens.input))
		}
	}
	best := map[int32]bestDecile{}
	for tenant, all := range tokens {
		at := len(all) - 1 - (len(all)-1)/10
		best[tenant] = bestDecile{stat.Nth(all, at), stat.Nth(shares[tenant], at)}
	}
	return best
}

// markBursts marks the requests that arrived in a burst of their tenant: at least ten in the last
// second, at more than three times the rate of the last minute. That is the rule of the signal
// tenant.burst, except that here the minute is at most as long as the run so far: within its
// first three seconds there is no burst.
func (a *Analyzer) markBursts() {
	sizes, begin := make([]int, len(a.names.list)), never
	for _, r := range a.requests.all() {
		sizes[r.labels.tenant]++
		if begin == never || r.arrival() < begin {
			begin = r.arrival()
		}
	}
	byTenant := make([][]*request, len(sizes))
	for tenant, n := range sizes {
		byTenant[tenant] = make([]*request, 0, n)
	}
	for _, r := range a.requests.all() {
		byTenant[r.labels.tenant] = append(byTenant[r.labels.tenant], r)
	}
	for _, sent := range byTenant {
		slices.SortStableFunc(sent, func(x, y *request) int { return cmp.Compare(x.arrival(), y.arrival()) })
		second, minute := 0, 0 // the first request within each
		for k, r := range sent {
			at := r.arrival()
			for sent[second].arrival() <= at-1e6 {
				second++
			}
			for sent[minute].arrival() <= at-60e6 {
				minute++
			}
			inSecond, inMinute := int64(k+1-second), int64(k+1-minute)
			r.contention.inBurst = inSecond >= 10 && inSecond*int64(min(60e6, at-begin)) > 3e6*inMinute
		}
	}
}

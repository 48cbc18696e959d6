package reference

import (
	"math/rand/v2"
	"slices"
)

// TenantLimits are the parameters of an admission policy with limits of tenants: token-bucket with a bucket for each,
// rate-limit with a window for each, or tenant-quota. Own and OwnRefills are those of single tenants.
type TenantLimits struct {
	Policy string
	// Limit is the capacity of a bucket, the admissions in a window, or the share of the requests in flight, 0 for
	// 1 / tenants.
	Limit float64
	Own   map[string]float64
	// PerSecond are the tokens that a bucket gains, one for each request or InputTokens.
	PerSecond   float64
	OwnRefills  map[string]float64
	InputTokens bool
	WindowUS    int64
	// MinInflight are the requests in flight up to which there is no quota.
	MinInflight float64
}

// limitedRequest is a decision about a request of a tenant.
type limitedRequest struct {
	tenant   string
	at       int64
	cost     float64
	admitted bool
}

// tenantHistory is what limits of tenants count: all decisions, and the tenants that have sent a request.
type tenantHistory struct {
	decisions []limitedRequest
	arrived   map[string]bool
}

// own is the limit of a tenant: its own one if it has one.
func own(limits map[string]float64, tenant string, others float64) float64 {
	if x, ok := limits[tenant]; ok {
		return x
	}
	return others
}

// rejects reports whether a request exceeds the limit of its tenant.
func (l *TenantLimits) rejects(q *request, s *simulation, now int64) bool {
	x := limitedRequest{tenant: q.Tenant, at: now, cost: 1}
	if l.InputTokens {
		x.cost = float64(q.Input)
	}
	switch l.Policy {
	case "token-bucket":
		x.admitted = l.tokens(s.tenants.decisions, q.Tenant, now) >= x.cost
	case "rate-limit":
		n := 0
		for _, d := range s.tenants.decisions {
			if d.tenant == q.Tenant && d.admitted && d.at > now-l.WindowUS {
				n++
			}
		}
		x.admitted = float64(n) < own(l.Own, q.Tenant, l.Limit)
	default:
		x.admitted = l.withinQuota(q, s)
	}
	s.tenants.decisions = append(s.tenants.decisions, x)
	return !x.admitted
}

// tokens are those in the bucket of a tenant: it is full at the first decision, and gains some until each further one.
func (l *TenantLimits) tokens(decisions []limitedRequest, tenant string, now int64) float64 {
	capacity := own(l.Own, tenant, l.Limit)
	perUS := own(l.OwnRefills, tenant, l.PerSecond) / 1e6
	tokens, last := capacity, int64(Never)
	gain := func(at int64) {
		if last != Never {
			tokens = min(capacity, tokens+float64(perUS*float64(at-last)))
		}
		last = at
	}
	for _, d := range decisions {
		if d.tenant != tenant {
			continue
		}
		gain(d.at)
		if d.admitted {
			tokens -= d.cost
		}
	}
	gain(now)
	return tokens
}

// withinQuota reports whether the tenant has at most its share of the requests in flight. Its sheddable requests count
// only for sheddable ones. A request that was aborted in a batch is in flight until its step ends.
func (l *TenantLimits) withinQuota(q *request, s *simulation) bool {
	all, mine := 0, 0
	for _, x := range s.requests {
		isLeaving := slices.ContainsFunc(s.replicas, func(r *replica) bool { return slices.Contains(r.aborted, x) })
		if x.outcome.AdmittedUS == Never || x.final() && !isLeaving {
			continue
		}
		all++
		if x.Tenant == q.Tenant && (q.Sheddable || !x.Sheddable) {
			mine++
		}
	}
	share := own(l.Own, q.Tenant, l.Limit)
	if _, isOwn := l.Own[q.Tenant]; !isOwn && l.Limit == 0 {
		share = 1 / float64(len(s.tenants.arrived))
	}
	return float64(all) <= l.MinInflight || float64(mine) <= float64(share*float64(all))
}

// RandomTenantLimits draws a case like Random or RandomSessions with several tenants and their limits.
func RandomTenantLimits(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x6c696d69))}
	c, requests := Random(seed)
	if d.percent(30) {
		c, requests = RandomSessions(seed)
	}
	names := pick(d, []string{"b", "a"}, []string{"", "x", "y"}, []string{"a", "a", "a", "b", "c"})
	first, last, tokens := requests[0].ArrivalUS, requests[0].ArrivalUS, 0
	for i := range requests {
		r := &requests[i]
		r.Tenant, r.Sheddable = pick(d, names...), d.percent(40)
		if i > 0 && r.Session != "" && r.Session == requests[i-1].Session {
			r.Tenant, r.Sheddable = requests[i-1].Tenant, requests[i-1].Sheddable
		}
		first, last, tokens = min(first, r.ArrivalUS), max(last, r.ArrivalUS), tokens+r.Input
	}
	gap := max(1, (last-first)/int64(len(requests)))
	l := &TenantLimits{Policy: pick(d, "token-bucket", "rate-limit", "tenant-quota"), Own: map[string]float64{},
		OwnRefills: map[string]float64{}}
	draw := func() float64 { return float64(d.between(0, 5)) }
	refill := func() float64 { return pick(d, 0, 0.1, 0.5, 2) * 1e6 / float64(gap) }
	switch l.Policy {
	case "token-bucket":
		cost := 1.0
		if l.InputTokens = d.percent(50); l.InputTokens {
			cost = max(1, float64(tokens)/float64(len(requests)))
		}
		draw = func() float64 { return cost * pick(d, 0.5, 1, 1.5, 4) }
		each := refill
		refill = func() float64 { return cost * each() }
	case "rate-limit":
		l.WindowUS = gap * pick[int64](d, 1, 3, 10, 100)
	default:
		draw = func() float64 { return pick(d, 0.05, 0.3, 0.5, 1) }
		l.MinInflight = pick(d, 0.0, 1, 3)
	}
	if l.Limit = draw(); l.Policy == "tenant-quota" && d.percent(40) {
		l.Limit = 0
	}
	l.PerSecond = refill()
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if d.percent(40) {
			l.Own[name] = draw()
		}
		if d.percent(40) {
			l.OwnRefills[name] = refill()
		}
	}
	c.TenantLimits = l
	return c, requests
}

package policy

import "math"

var tenantQuotaParams = []Param{
	{Name: "share", Kind: Number, Min: 0, Max: 1, Search: [2]float64{0.05, 1}, Default: auto, Auto: true,
		Doc: "share of the requests in flight that a tenant may have; auto is 1 / tenants seen"},
	{Name: "shares", Kind: Table, Keys: "tenant", Min: 0, Max: 1, Search: [2]float64{0.05, 1},
		Default: map[string]float64{}, Doc: "share of single tenants; others have the parameter share"},
	{Name: "min_inflight", Kind: Number, Unit: "requests", Min: 0, Max: 1e9, Search: [2]float64{0, 1000},
		Default: auto, Auto: true,
		Doc: "requests in flight up to which no quota applies; auto is 8 per replica of the cluster"},
}

// tenantQuota counts a tenant's sheddable requests only against further sheddable ones. Any other
// request is rejected only if the tenant exceeds its share without them.
type tenantQuota struct {
	needs
	share, minInflight float64
	shares             map[string]float64 // of single tenants
}

func newTenantQuota(b *builder, s *Spec) Admitter {
	v := b.params(s, tenantQuotaParams)
	floor := v.number("min_inflight")
	if math.IsNaN(floor) {
		floor = 8 * float64(b.env.Replicas)
	}
	b.tenants = append(b.tenants, sortedKeys(v.table("shares"))...)
	return tenantQuota{needs(NeedRequest | NeedTenant), v.number("share"), floor, v.table("shares")}
}

func (q tenantQuota) Admit(v *View) Verdict {
	share := limitOf(q.shares, v.Request.Tenant, q.share)
	if math.IsNaN(share) {
		share = 1 / float64(max(1, v.Cluster.Tenants))
	}
	inflight := float64(v.Cluster.Inflight)
	if inflight <= q.minInflight {
		return admitUpTo("requests in flight", inflight, q.minInflight)
	}
	active := v.Tenant.Active
	if v.Request.Tier != Sheddable {
		active -= v.Tenant.ActiveSheddable
	}
	return admitUpTo("requests of the tenant in flight", float64(active), float64(share*inflight))
}

func (q tenantQuota) Clone() Admitter { return q }

// limitOf is the limit of a tenant or class: its own one, or that of others.
func limitOf(own map[string]float64, name string, others float64) float64 {
	if len(own) > 0 {
		if x, ok := own[name]; ok {
			return x
		}
	}
	return others
}

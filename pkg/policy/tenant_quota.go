package policy

import "math"

var tenantQuotaParams = []Param{
	{Name: "share", Kind: Number, Min: 0, Max: 1, Search: [2]float64{0.05, 1}, Default: auto, Auto: true, Doc: "of the requests in flight that a tenant may have; auto is an equal one for each tenant seen"},
	{Name: "min_inflight", Kind: Number, Unit: "requests", Min: 0, Max: 1e9, Search: [2]float64{0, 1000}, Default: auto, Auto: true, Doc: "up to which there are no quotas; auto is 8 for each replica of the cluster"},
}

// tenantQuota counts a tenant's sheddable requests only against those: another
// one is rejected if the tenant is above its share without them.
type tenantQuota struct {
	reads
	share, least float64
}

func newTenantQuota(b *builder, s *Spec) Admitter {
	v := b.params(s, tenantQuotaParams)
	least := v.number("min_inflight")
	if math.IsNaN(least) {
		least = 8 * float64(b.env.Replicas)
	}
	return tenantQuota{reads(NeedRequest | NeedTenant), v.number("share"), least}
}

func (q tenantQuota) Admit(v *View) Verdict {
	share := q.share
	if math.IsNaN(share) {
		share = 1 / float64(max(1, v.Cluster.Tenants))
	}
	inflight := float64(v.Cluster.Inflight)
	if inflight <= q.least {
		return upTo("requests in flight", inflight, q.least)
	}
	active := v.Tenant.Active
	if v.Request.Tier != Sheddable {
		active -= v.Tenant.ActiveSheddable
	}
	return upTo("requests of the tenant in flight", float64(active), float64(share*inflight))
}

func (q tenantQuota) Clone() Admitter { return q }

package reference

import "math/rand/v2"

// RandomFlow draws a case like Random, RandomSessions or RandomProfiles with flow control, in which requests have
// tenants, priorities and targets.
func RandomFlow(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x666c6f77))}
	c, requests := Random(seed)
	switch {
	case d.percent(30):
		c, requests = RandomSessions(seed)
	case d.percent(25):
		c, requests = RandomProfiles(seed, pick(d, Plugins()...))
	}
	if c.Named.Capacity == 0 {
		c.Named.Capacity = c.usable()
	}
	step := c.stepTime(batchOf(4, 1, 8))
	f := &Flow{Saturation: pick(d, 0.1, 0.2, 0.4, 0.6, 1, 2), Bands: d.percent(60)}
	f.Order = pick(d, "fifo", "priority", "deadline", "fcfs-ordering-policy", "edf-ordering-policy",
		"slo-deadline-ordering-policy")
	f.Fairness = pick(d, "none", "round-robin", "round-robin", "global-strict-fairness-policy",
		"round-robin-fairness-policy", "round-robin-fairness-policy")
	if d.percent(25) {
		f.Capacity = d.between(1, 8)
	}
	if d.percent(35) {
		f.TTLUS = max(1, step*pick[int64](d, 1, 3, 10, 40))
	}
	f.Detector, f.Limit = d.detector(&c), d.limit()
	if f.Limit != nil && c.SnapshotUS > 0 && f.Limit.Numbers["minCeiling"] == 0 && f.Limit.Numbers["maxCeiling"] > 0 {
		f.Limit.Numbers["minCeiling"] = 0.1 // the lowest priority would wait for ever
	}
	c.Flow = f
	d.assignTenants(requests, step)
	return c, requests
}

// detector draws a saturation detector or none.
func (d *generator) detector(c *Config) *Plugin {
	if d.percent(35) {
		return nil
	}
	p := d.filter(c, pick(d, "utilization-detector", "concurrency-detector", "concurrency-detector"))
	delete(p.Numbers, "headroom") // which only filters have
	switch p.Words["concurrencyMode"] {
	case "requests":
		delete(p.Numbers, "maxTokenConcurrency")
	case "tokens":
		delete(p.Numbers, "maxConcurrency")
	}
	return &p
}

// limit draws a usage limit policy or none.
func (d *generator) limit() *Plugin {
	switch pick(d, 0, 1, 2, 2, 3, 3) {
	case 1:
		return &Plugin{Name: "static-usage-limit-policy",
			Numbers: map[string]float64{"threshold": pick(d, 0.2, 0.5, 1.5)}}
	case 2:
		return &Plugin{Name: "priority-holdback-policy", Words: map[string]string{"domain": pick(d, "rank", "value")},
			Numbers: map[string]float64{"minCeiling": pick(d, 0, 0.1, 0.3, 0.5), "maxCeiling": pick(d, 0.6, 0.8, 1)}}
	case 3:
		return &Plugin{Name: "soft-reflective-ceiling-policy"}
	}
	return nil
}

// assignTenants gives requests tenants, priorities and targets, the same to all of a session.
func (d *generator) assignTenants(requests []Request, step int64) {
	tenants := pick(d, []string{"b", "a", "c"}, []string{"", "x"}, []string{"d", "c", "b", "a", "e", ""})
	levels := pick(d, []float64{0, 10, 50, 100}, []float64{1, 2}, []float64{-5, 0, 0.5, 3, 7})
	for i := range requests {
		r := &requests[i]
		r.Tenant, r.Priority = pick(d, tenants...), pick(d, levels...)
		if d.percent(70) {
			r.TTFTTargetMS = float64(max(1, step*pick[int64](d, 1, 5, 20))) / 1000
		}
		if i > 0 && r.Session != "" && r.Session == requests[i-1].Session {
			before := requests[i-1]
			r.Tenant, r.Priority, r.TTFTTargetMS = before.Tenant, before.Priority, before.TTFTTargetMS
		}
	}
}

package cluster

// The versions with prefill_schedule_interval: for data-parallel ranks in lockstep, and for all engines.
var (
	jointIntervalSince = version{0, 24}
	intervalSince      = version{0, 33}
)

// prefillInterval checks whether prompts in some steps only go with the rest of the deployment.
func (c *resolver) prefillInterval(d *Deployment, at string) error {
	e := &d.Engine
	if e.PrefillScheduleInterval <= 1 {
		return nil
	}
	field := at + ".engine.prefill_schedule_interval"
	if err := c.since(e, field, jointIntervalSince); err != nil {
		return err
	}
	switch {
	case e.Preset != "" && !d.Lockstep() && versionOf(e.Preset).before(intervalSince):
		return c.errorf(field, "without data-parallel ranks in lockstep it exists since vLLM %d.%d, but engine.preset "+
			"is %s", intervalSince.major, intervalSince.minor, e.Preset)
	case len(d.KVTiers) > 0:
		return c.errorf(field, "above 1 is not supported with kv_tiers")
	case d.Architecture != "": // a pool, too
		return c.errorf(field, "above 1 is not supported for a disaggregated deployment")
	case e.MergedRanks() > 1:
		return c.errorf(field, "above 1 is not supported with merge_data_parallel_ranks")
	}
	return nil
}

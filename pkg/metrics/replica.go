package metrics

// addReplicas adds what only replicas report: their own branch, cost and cache occupancy.
func (a *Accumulator) addReplicas(r *Raw, all *totals) {
	if len(a.replicas) == 0 {
		return
	}
	var up, gpu, blockUS, capacity, peak float64
	for i := range a.replicas {
		t := &a.replicas[i]
		x := t.tree()
		r.Replicas = append(r.Replicas, x)
		up += float64(t.UpUS)
		gpu += float64(t.UpUS) * float64(t.GPUs)
		blockUS += t.BlockUS
		capacity += float64(t.Blocks) * float64(t.UpUS)
		if x.KVUtilMax != nil {
			peak = max(peak, *x.KVUtilMax)
		}
	}
	r.Cost = &Cost{GPUS: gpu / 1e6, ReplicaS: up / 1e6}
	if tokens := all.completedInput + all.completedOutput; tokens > 0 {
		perToken := gpu / float64(tokens) // µs per token are s per million tokens
		r.Cost.PerMillion = &perToken
	}
	if capacity > 0 {
		mean := blockUS / capacity
		r.KV.UtilMean, r.KV.UtilMax = &mean, &peak
	}
}

func (t *ReplicaTotals) tree() Replica {
	var mean *float64
	if capacity := float64(t.Blocks) * float64(t.UpUS); capacity > 0 {
		share := t.BlockUS / capacity
		mean = &share
	}
	return Replica{
		Deployment: t.Deployment, Index: t.Index, Requests: t.Requests, Completed: t.Completed,
		Tokens: t.PrefillTokens + t.DecodeTokens, PrefillTokens: t.PrefillTokens, DecodeTokens: t.DecodeTokens,
		PrefixHitRatio: ratio(t.CachedTokens, t.QueriedTokens), Preemptions: t.Preemptions,
		PeakQueue: t.PeakQueue, PeakBatch: t.PeakBatch, Utilization: ratio(t.BusyUS, t.UpUS),
		KVUtilMean: mean, KVUtilMax: ratio(t.PeakBlocks, t.Blocks),
	}
}

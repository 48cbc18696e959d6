package calibrate

// tolerance is by what factor a recording may exceed a capacity, as its times are rounded.
const tolerance = 1.02

func checkCapacity(r *report) {
	d := r.setup.deployment
	for _, run := range r.setup.replays {
		if len(run.requests) == 0 || run.period > 0 {
			continue
		}
		replicas := float64(run.engine.replicas)
		if n := run.decodingProfile().Peak() / replicas; n > tolerance*float64(run.engine.maxSeqs) {
			r.setup.warnf("%s: %.0f sequences decode concurrently, but max_num_seqs is %d: "+
				"the engine settings are not those recorded", run.name, n, run.engine.maxSeqs)
		}
		tokens := run.heldTokens()
		if tokens > tolerance*float64(run.engine.kvTokens) && !run.sharesBlocks() {
			r.setup.warnf("%s: concurrent sequences hold %.0f KV blocks, but the engine has %d: "+
				"set num_gpu_blocks_override or gpu_memory_utilization as recorded, by --cluster",
				run.name, tokens/float64(d.Engine.BlockSize), d.UsableBlocks()*d.Engine.DataParallelSize)
		}
	}
}

// heldTokens is the largest number of tokens that the measured sequences hold at once in the KV blocks of a replica.
func (r *replay) heldTokens() float64 {
	own := func(i int) float64 {
		return r.contextOf(i) - float64(min(r.prefix, r.requests[i].InputTokens))
	}
	return r.profile(r.measured, own).Peak() / float64(r.engine.replicas)
}

// sharesBlocks reports whether sequences hold fewer blocks than their tokens need, because prompts share them.
func (r *replay) sharesBlocks() bool { return r.period > 0 || r.hiddenPrefixes }

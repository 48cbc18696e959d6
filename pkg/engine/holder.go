package engine

// Holder is the request that holds up the wait queue as the last batch was formed,
// though there are seats: the first one that waits, if it does not fit, or the one
// in the batch with the most of its prompt left, if the batch has all the tokens that
// it may. A prompt of room tokens would have blocks in its place. ok is false where
// none does: nobody waits, seats lack, somebody was preempted, or many short
// prompts share what a batch can compute.
func (e *Engine) Holder() (tag int32, room int, ok bool) {
	if len(e.formed) == 0 || e.Waiting() == 0 || e.Running() >= e.cfg.MaxNumSeqs {
		return 0, 0, false
	}
	b := e.formed[len(e.formed)-1]
	if len(b.Preempted) > 0 {
		return 0, 0, false
	}
	room = (e.cache.Free() - e.cfg.WatermarkBlocks) * e.cache.BlockSize()
	if b.Prefill+b.Decode < int64(e.cfg.MaxNumBatchedTokens) {
		return e.seqs[e.wait.heap[0].seq].tag, room, true
	}
	most := int32(0)
	for _, s := range e.singles {
		if q := &e.seqs[s]; q.want() > most {
			tag, most = q.tag, q.want()
		}
	}
	return tag, room, most > 0
}

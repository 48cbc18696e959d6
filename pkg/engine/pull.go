package engine

import (
	"math"
	"slices"

	"blis/pkg/des"
	"blis/pkg/link"
)

// A request whose prompt another replica has computed pulls its blocks from there, as with vLLM's NixlConnector
// (vllm/distributed/kv_transfer/kv_connector/v1/nixl/pull_scheduler.py in 0.33): when it is tried in the queue, the
// blocks that the cache lacks for its prompt are allocated, the partial one too, and the caller, who has the links
// between replicas, moves them. All that is like a load from a tier. Then the request computes the last token again.
//
// With a tier the rules are those of vLLM's MultiConnector (multi_connector.py there) with the NixlConnector before the
// OffloadingConnector: a request whose prompt is to be pulled waits for transfers of its blocks at the tier, too, but
// loads none. The tier gets the blocks that it pulled like all others.

// pull starts the transfer of the prompt of the waiting request s, of which the cache has hit blocks. It returns false
// if the prompt does not fit into the cache together with what prompts in chunks and other transfers still need.
func (e *Engine) pull(s, hit int32) bool {
	o, q := e.offload, &e.seqs[s]
	tokens := q.input + q.generated
	if !e.holdForLoad(q, int(tokens)) {
		return false
	}
	n := (tokens+o.blockSize-1)/o.blockSize - hit
	q.remote, q.pulled = false, true
	x := underWay{Transfer: Transfer{Transfer: link.Transfer{Asked: e.now, Started: e.now, Ended: math.MaxInt64},
		Load: true, Pull: true, Tag: q.tag, Blocks: n}, seq: s}
	o.pulling = append(o.pulling, x)
	e.startLoading(s, hit, &x.Transfer)
	return true
}

// EndPull ends the transfer of the prompt of s at now, after the step that ends then. It returns the requests aborted
// during their transfers whose blocks are now freed; while a step runs, this waits for its end.
func (e *Engine) EndPull(s int32, now des.Time) (left []int32) {
	o := e.offload
	o.pulling = slices.DeleteFunc(o.pulling, func(t underWay) bool { return t.seq == s })
	o.uses[s].loadEnd, e.own.known = now, false
	if e.inFlight {
		return nil
	}
	e.result.Aborted = e.result.Aborted[:0]
	e.dropOrphans(now)
	return e.result.Aborted
}

// Release frees the blocks of s, a request with Hold that has all its output: when the step in flight ends, since
// vLLM's scheduler learns with the output of a step that blocks were sent (Scheduler.update_from_output). Those of an
// aborted request that has not left are free when it leaves.
func (e *Engine) Release(s int32) {
	if e.seqs[s].read = false; e.seqs[s].state != held {
		return
	}
	e.offload.held--
	if e.inFlight {
		e.offload.released = append(e.offload.released, s)
		return
	}
	e.drop(s)
}

// dropReleased frees the blocks that were released during a step.
func (e *Engine) dropReleased() {
	for _, s := range e.offload.released {
		e.drop(s)
	}
	e.offload.released = e.offload.released[:0]
}

// hold keeps the blocks of s, which is in no list, until Release.
func (e *Engine) hold(s int32) {
	e.seqs[s].state = held
	e.offload.held++
}

// KeepBlocks keeps the blocks of s, which is about to be aborted, until Release.
func (e *Engine) KeepBlocks(s int32) { e.seqs[s].read = true }

// Held returns how many requests that have all their output, or are aborted, keep their blocks.
func (e *Engine) Held() int {
	if e.offload == nil {
		return 0
	}
	return e.offload.held
}

// Pulling returns how many transfers from other replicas are under way.
func (e *Engine) Pulling() int { return len(e.offload.pulling) }

// ReadyPull lets the loading s run from now on although blocks of its prompt are arriving. The step that computes it
// first may end only when they have arrived.
func (e *Engine) ReadyPull(s int32, now des.Time) {
	e.offload.uses[s].loadEnd, e.own.known = now, false
}

// AwaitsBlocks reports whether blocks are arriving for a request in the step in flight.
func (e *Engine) AwaitsBlocks() bool {
	for i := range e.offload.pulling {
		s := e.offload.pulling[i].seq
		if e.seqs[s].state != loading && e.offload.uses[s].entered <= e.current.number {
			return true
		}
	}
	return false
}

// Prolong makes the step in flight, which has waited for blocks, end now.
func (e *Engine) Prolong(now des.Time) { e.current.End, e.own.known = max(e.current.End, now), false }

// reportPrompts puts into the result how much of the prompts is computed at the end of the step in flight.
func (e *Engine) reportPrompts() {
	r := &e.result
	r.Prompts = r.Prompts[:0]
	for _, list := range [...][]int32{e.individual, e.finishing} {
		for _, s := range list {
			q := &e.seqs[s]
			n := int(q.computed)
			if q.lastBatch > e.current.number { // it is in the batch formed ahead, too
				n -= int(q.lastTokens)
			}
			if !q.aborted && q.emitted < q.output && e.offload.uses[s].entered <= e.current.number {
				r.Prompts = append(r.Prompts, Prompt{q.tag, n})
			}
		}
	}
}

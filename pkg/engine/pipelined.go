package engine

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/des"
)

// openPipelined notes a new sequence.
func (e *Engine) openPipelined(s int32, r *Request) {
	p, q := e.pipe, &e.seqs[s]
	for len(p.seqs) <= int(q.kv) {
		p.seqs = append(p.seqs, pipelined{})
	}
	most := int64(r.Output)
	if r.EOS {
		if most = math.MaxInt64 / 2; p.MaxModelLen > 0 {
			most = int64(p.MaxModelLen - r.Input)
		}
	}
	q.overruns = e.cfg.AsyncScheduling
	p.seqs[q.kv] = pipelined{maxTokens: most}
}

// pipelinedTokens is the number of tokens that the running s computes in the next batch, at most the budget.
func (e *Engine) pipelinedTokens(s int32, budget int) int {
	p, q := e.pipe, &e.seqs[s]
	x := &p.seqs[q.kv]
	// vLLM's condition for a sequence that is sure to have all its output. It is meant for one batch with drafts in
	// flight: with more batches in flight, some more tokens are scheduled.
	ahead := q.generated - q.emitted
	if ahead > 0 && int64(q.computed)+2-int64(ahead) >= int64(q.input)+x.maxTokens || p.formed < x.nextBatch {
		return 0
	}
	n := min(e.runningTokens(q, int(q.remaining())), budget)
	if p.MaxModelLen > 0 {
		n = min(n, p.MaxModelLen-1-int(q.computed))
	}
	return max(0, e.align(q, int(q.computed), n))
}

// advancePipelined updates the sequences for a finished b, as advance does.
func (e *Engine) advancePipelined(b *batch) {
	p := e.pipe
	for _, s := range e.individual {
		q := &e.seqs[s]
		if q.lastBatch != b.number {
			continue
		}
		f := flight{seq: s, tokens: q.lastTokens, yields: q.remaining() == 0}
		x := &p.seqs[q.kv]
		x.flying += f.tokens
		if f.yields && e.cfg.AsyncScheduling {
			q.generated++
			x.nextBatch = p.formed + int64(p.Cadence)
		}
		b.flights = append(b.flights, f)
	}
}

// finishPipelined gives the sequences of b, which has ended, their tokens.
func (e *Engine) finishPipelined(b *batch) {
	for _, f := range b.flights {
		q := &e.seqs[f.seq]
		x := &e.pipe.seqs[q.kv]
		x.flying -= f.tokens
		if !f.yields {
			continue
		}
		e.receive(q, 1)
		switch {
		case !e.cfg.AsyncScheduling || q.state == waiting:
			q.generated = q.emitted
		default:
			e.cache.Publish(q.kv, int(q.computed-x.flying))
		}
		if q.emitted == q.output {
			e.finished = append(e.finished, f.seq)
		}
	}
}

// forget removes s from the batches in flight.
func (p *pipeline) forget(current *batch, s int32) {
	is := func(f flight) bool { return f.seq == s }
	current.flights = slices.DeleteFunc(current.flights, is)
	for _, b := range p.queue {
		b.flights = slices.DeleteFunc(b.flights, is)
	}
	p.left = true
}

// ends are the running sequences by the number of tokens until they have all their output.
func (e *Engine) pipelinedEnds(ends []des.Event) []des.Event {
	for _, s := range e.individual {
		q := &e.seqs[s]
		ends = append(ends, des.NewEvent(e.cache.Ticks()+int64(q.output-q.emitted), 0, q.admission, s))
	}
	return ends
}

// checkPipeline counts the tokens in flight again.
func (e *Engine) checkPipeline() error {
	if e.pipe == nil {
		return nil
	}
	flying := make([]int32, len(e.seqs))
	for _, b := range e.batches() {
		for _, f := range b.flights {
			flying[f.seq] += f.tokens
		}
	}
	for s := range e.seqs {
		q := &e.seqs[s]
		if q.output == 0 || q.aborted { // unused, or about to be
			continue
		}
		if n := e.pipe.seqs[q.kv].flying; n != flying[s] {
			return fmt.Errorf("engine: sequence %d has %d tokens in flight, the running total says %d", s,
				flying[s], n)
		}
	}
	if n := len(e.batches()); n > e.pipe.Batches {
		return fmt.Errorf("engine: %d batches are in flight, the limit is %d", n, e.pipe.Batches)
	}
	return nil
}

package engine

import (
	"slices"

	"blis/pkg/des"
)

// Pipeline is pipeline parallelism as in vLLM 0.33: the layers are divided into stages, and several batches are in
// flight at once (EngineCore.step_with_batch_queue in vllm/v1/engine/core.py, VllmConfig.max_concurrent_batches in
// vllm/config/vllm.py, AsyncScheduler in vllm/v1/core/sched/async_scheduler.py, PPHandler in
// vllm/v1/worker/gpu/pp_utils.py). It goes with neither Speculation nor Offload.
type Pipeline struct {
	// Layers are the layers of each stage. A stage takes the share of a step's time that it has of all layers.
	Layers []int
	// Batches is the length of the queue of formed batches, with the one whose end the engine waits for. The engine
	// waits when the queue is full. If EmptyBatches is not set, it also waits after a batch without tokens.
	Batches      int
	EmptyBatches bool
	// Cadence counts only with asynchronous scheduling. A batch has no token of a sequence to which one of the
	// Cadence-1 batches before it gives a token. Its first stage waits for the tokens of the batches before these.
	Cadence int
	// A batch reaches the next stage HopUS + HopTokenUS for each of its tokens after it has left a stage.
	HopUS, HopTokenUS float64
	// MaxModelLen is the maximum length of a sequence, 0: none.
	MaxModelLen int
}

// pipeline is the state of the stages and of the batches in flight. All running sequences are individual ones. The
// generated tokens of a sequence include those of its batches in flight with asynchronous scheduling, and not without.
type pipeline struct {
	*Pipeline
	// queue are the formed batches, the oldest one first, without the engine's current one. done and spare are for
	// reuse: those that ended since the last Start, and those that ended before.
	queue, done, spare []*batch
	// formed counts the batches formed, also those without tokens. left: a sequence has left since.
	formed int64
	left   bool
	// freeAt is when each stage has computed all formed batches.
	freeAt []des.Time
	// gives are the batches whose tokens no later batch has waited for, and tokensAt when the others had theirs.
	gives    []giving
	tokensAt des.Time
	// accounted is the time up to which the statistics have the batches in flight.
	accounted des.Time
	seqs      []pipelined // by their number in the cache
}

// giving is a batch that gives tokens, by its number.
type giving struct {
	number int64
	at     des.Time
}

// pipelined is what a sequence has besides the fields of other ones.
type pipelined struct {
	// flying counts its tokens in batches in flight.
	flying int32
	// nextBatch is the number of the first batch that may have its next token.
	nextBatch int64
	maxTokens int64 // of its output, if no token ends it
}

// flight is a sequence in a batch. yields: it gets a token.
type flight struct {
	seq, tokens int32
	yields      bool
}

// span is the time in which a stage computes a batch.
type span struct{ start, end des.Time }

func newPipeline(cfg *Pipeline) *pipeline {
	if cfg == nil {
		return nil
	}
	return &pipeline{Pipeline: cfg, freeAt: make([]des.Time, len(cfg.Layers))}
}

// startPipelined is Start: it forms batches until the queue is full or nothing can be scheduled, and then waits for the
// oldest one.
func (e *Engine) startPipelined(now des.Time) (bool, error) {
	p := e.pipe
	p.spare, p.done = append(p.spare, p.done...), p.done[:0]
	for empty := 0; ; {
		present := e.Running()+e.Waiting() > 0
		if present || p.left {
			formed := e.formNext(now)
			if empty++; formed || len(p.queue[len(p.queue)-1].Preempted) > 0 {
				empty = 0
			}
			if present && empty > p.Batches+p.Cadence && !p.hasTokens() {
				return false, e.noProgress("cannot schedule any request")
			}
			if len(p.queue) < p.Batches && (formed && !p.isOver(now) || p.EmptyBatches && (formed || present)) {
				continue
			}
		} else if len(p.queue) == 0 {
			return false, nil
		}
		oldest := p.queue[0]
		p.queue = slices.Delete(p.queue, 0, 1)
		if !oldest.hasTokens() {
			p.done = append(p.done, oldest)
			continue
		}
		p.done = append(p.done, e.current)
		e.current, e.inFlight = oldest, true
		e.used = e.cache.Total() - e.cache.Free()
		return true, nil
	}
}

// isOver reports whether the oldest batch has ended.
func (p *pipeline) isOver(now des.Time) bool { return !p.queue[0].hasTokens() || p.queue[0].End <= now }

// hasTokens reports whether any batch in the queue computes something.
func (p *pipeline) hasTokens() bool { return slices.ContainsFunc(p.queue, (*batch).hasTokens) }

func (b *batch) hasTokens() bool { return b.Prefill+b.Decode > 0 }

// formNext adds a batch to the queue and reports whether it has any tokens.
func (e *Engine) formNext(now des.Time) bool {
	p := e.pipe
	b := &batch{}
	if last := len(p.spare) - 1; last >= 0 {
		b, p.spare = p.spare[last], p.spare[:last]
	}
	p.formed++
	p.left = false
	formed := e.form(b)
	p.queue = append(p.queue, b)
	if !formed {
		e.lostVictims += len(b.Preempted)
		return false
	}
	b.EarlierVictims, e.lostVictims = e.lostVictims, 0
	e.place(b, now)
	return true
}

// place finds when each stage computes b, which was formed now.
func (e *Engine) place(b *batch, now des.Time) {
	p := e.pipe
	if e.cfg.AsyncScheduling {
		for len(p.gives) > 0 && p.gives[0].number <= p.formed-int64(p.Cadence) {
			p.tokensAt = p.gives[0].at
			p.gives = slices.Delete(p.gives, 0, 1)
		}
	}
	b.Start = max(now, p.freeAt[0], p.tokensAt)
	length := b.length
	if e.slow != nil {
		length = e.slow(b.Start, length)
	}
	hop := des.Micros(p.HopUS + float64(p.HopTokenUS*float64(b.Prefill+b.Decode)))
	all, before := 0, 0
	for _, n := range p.Layers {
		all += n
	}
	b.stages = b.stages[:0]
	at := b.Start
	for i, n := range p.Layers {
		start := max(at, p.freeAt[i])
		end := start + length*des.Time(before+n)/des.Time(all) - length*des.Time(before)/des.Time(all)
		before += n
		b.stages = append(b.stages, span{start, end})
		p.freeAt[i], at = end, end+hop
	}
	b.End = p.freeAt[len(p.freeAt)-1]
	if e.cfg.AsyncScheduling && slices.ContainsFunc(b.flights, func(f flight) bool { return f.yields }) {
		p.gives = append(p.gives, giving{p.formed, b.End})
	}
}

// since is the time from which on the statistics do not have a batch that started at a time.
func (p *pipeline) since(start, now des.Time) des.Time {
	from := max(start, p.accounted)
	p.accounted = max(now, p.accounted)
	return from
}

// stageUS is the time that stages have computed b until now.
func (b *batch) stageUS(now des.Time) (us int64) {
	for _, s := range b.stages {
		us += max(0, min(s.end, now)-s.start)
	}
	return us
}

// stopPipelined accounts for what stages have computed of the batches in flight.
func (e *Engine) stopPipelined(now des.Time) {
	for _, b := range e.batches() {
		e.stats.StageUS += b.stageUS(now)
	}
}

func (p *pipeline) clone() *pipeline {
	if p == nil {
		return nil
	}
	c := *p
	c.queue = slices.Clone(p.queue)
	for i, b := range c.queue {
		c.queue[i] = b.clone()
	}
	c.done, c.spare = nil, nil
	c.freeAt, c.gives, c.seqs = slices.Clone(p.freeAt), slices.Clone(p.gives), slices.Clone(p.seqs)
	return &c
}

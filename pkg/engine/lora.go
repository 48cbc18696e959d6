package engine

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/des"
)

// LoRA is the use of LoRA adapters as in vLLM 0.33: the limit of a batch is Scheduler.schedule in
// vllm/v1/core/sched/scheduler.py, and what is in memory LRUCacheWorkerLoRAManager in vllm/lora/worker_manager.py with
// LRUCacheLoRAModelManager in vllm/lora/model_manager.py.
type LoRA struct {
	// MaxLoras is the number of adapters that the running requests may have, and of slots on the GPU. MaxCPULoras is
	// the number of adapters in the memory of the host, which include those on the GPU.
	MaxLoras, MaxCPULoras int
	// A step waits LoadUS for each adapter that is not in the memory of the host and CopyUS for each that is not on the
	// GPU.
	LoadUS, CopyUS des.Time
}

// lora is the state of the adapters of a replica. Adapters are numbers from 1 on.
type lora struct {
	*LoRA
	// running counts the running requests by adapter, distinct the adapters that have any.
	running  []int32
	distinct int
	// held counts the requests of the replica by adapter, and active lists the adapters that have any. changes counts
	// the changes of active.
	held    []int32
	active  []int32
	changes int64
	// host are the adapters in the memory of the host, the least recently used one first. The last MaxLoras of them are
	// on the GPU, since each use of an adapter is one in both.
	host []int32
	used []usedAdapter // scratch
}

// usedAdapter is an adapter in a batch, with the first request that has it.
type usedAdapter struct {
	adapter   int32
	admission int64
}

func newLoRA(cfg *LoRA) *lora {
	if cfg == nil {
		return nil
	}
	return &lora{LoRA: cfg}
}

// Adapters returns the adapters of all requests at the replica, waiting or running, and how often these changed. The
// list is valid until the next change.
func (e *Engine) Adapters() (active []int32, changes int64) {
	if e.lora == nil {
		return nil, 0
	}
	return e.lora.active, e.lora.changes
}

// open notes the adapter of a new sequence.
func (x *lora) open(adapter int32) {
	if adapter == 0 {
		return
	}
	for len(x.held) <= int(adapter) {
		x.held = append(x.held, 0)
	}
	if x.held[adapter]++; x.held[adapter] == 1 {
		x.active = append(x.active, adapter)
		x.changes++
	}
}

// drop forgets a sequence.
func (x *lora) drop(q *sequence) {
	if q.state != waiting {
		x.leave(q)
	}
	if q.adapter == 0 {
		return
	}
	if x.held[q.adapter]--; x.held[q.adapter] == 0 {
		i := slices.Index(x.active, q.adapter)
		x.active = slices.Delete(x.active, i, i+1)
		x.changes++
	}
}

// enter counts a request that begins to run.
func (x *lora) enter(q *sequence) {
	if q.adapter == 0 {
		return
	}
	for len(x.running) <= int(q.adapter) {
		x.running = append(x.running, 0)
	}
	if x.running[q.adapter]++; x.running[q.adapter] == 1 {
		x.distinct++
	}
}

// leave counts a request that no longer runs.
func (x *lora) leave(q *sequence) {
	if q.adapter == 0 {
		return
	}
	if x.running[q.adapter]--; x.running[q.adapter] == 0 {
		x.distinct--
	}
}

// runs reports whether a running request has this adapter.
func (x *lora) runs(adapter int32) bool {
	return int(adapter) < len(x.running) && x.running[adapter] > 0
}

// hasNoRoom reports whether the running requests have as many adapters as they may and this one is not among them.
func (x *lora) hasNoRoom(adapter int32) bool {
	return adapter != 0 && x.distinct >= x.MaxLoras && !x.runs(adapter)
}

// useAdapters counts the adapters of b, whose sequences are not advanced yet, and brings them to the GPU in the order
// in which their first requests were scheduled. vLLM does so when the step starts, in the order of a set.
func (e *Engine) useAdapters(b *batch) {
	x := e.lora
	x.used = x.used[:0]
	for _, p := range b.drafted {
		x.use(&e.seqs[p.seq])
	}
	for _, s := range e.individual {
		if q := &e.seqs[s]; e.spec == nil && q.lastBatch == b.number {
			x.use(q)
		}
	}
	if b.ticked {
		for d := range e.decoding.All() {
			x.use(&e.seqs[d.Slot])
		}
	}
	slices.SortFunc(x.used, func(u, v usedAdapter) int { return cmp.Compare(u.admission, v.admission) })
	b.Adapters = int64(len(x.used))
	for _, u := range x.used {
		x.load(b, u.adapter)
	}
	b.AdapterUS = des.Time(b.AdapterLoads)*x.LoadUS + des.Time(b.AdapterCopies)*x.CopyUS
	e.stats.AdapterLoads += int64(b.AdapterLoads)
	e.stats.AdapterCopies += int64(b.AdapterCopies)
	e.stats.AdapterUS += b.AdapterUS
}

// use notes that q is in the batch.
func (x *lora) use(q *sequence) {
	if q.adapter == 0 {
		return
	}
	i := slices.IndexFunc(x.used, func(u usedAdapter) bool { return u.adapter == q.adapter })
	if i < 0 {
		x.used = append(x.used, usedAdapter{q.adapter, q.admission})
		return
	}
	x.used[i].admission = min(x.used[i].admission, q.admission)
}

// load makes an adapter of b the most recently used one in the memory of the host and on the GPU.
func (x *lora) load(b *batch, adapter int32) {
	i := slices.Index(x.host, adapter)
	if i < len(x.host)-x.MaxLoras || i < 0 {
		b.AdapterCopies++
	}
	if i < 0 {
		b.AdapterLoads++
		if i = len(x.host); i == x.MaxCPULoras {
			i = 0
		}
	}
	if i < len(x.host) {
		x.host = slices.Delete(x.host, i, i+1)
	}
	x.host = append(x.host, adapter)
}

func (x *lora) clone() *lora {
	if x == nil {
		return nil
	}
	c := *x
	c.running = slices.Clone(x.running)
	c.host, c.held, c.active = slices.Clone(x.host), slices.Clone(x.held), slices.Clone(x.active)
	c.used = nil
	return &c
}

// checkAdapters counts the adapters of the running sequences again.
func (e *Engine) checkAdapters() error {
	x := e.lora
	if x == nil {
		return nil
	}
	running := make([]int32, len(x.running))
	distinct := 0
	for i := range e.seqs {
		q := &e.seqs[i]
		if q.adapter == 0 || q.state == waiting {
			continue
		}
		if running[q.adapter]++; running[q.adapter] == 1 {
			distinct++
		}
	}
	if distinct > x.MaxLoras || distinct != x.distinct || !slices.Equal(running, x.running) {
		return fmt.Errorf("engine: running requests have %d adapters %v, the limit is %d, the running totals say %d %v",
			distinct, running, x.MaxLoras, x.distinct, x.running)
	}
	if len(x.host) > x.MaxCPULoras {
		return fmt.Errorf("engine: %d adapters are in the host's memory, the limit is %d", len(x.host), x.MaxCPULoras)
	}
	return nil
}

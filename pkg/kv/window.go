package kv

// Window says what a sequence holds in a model some of whose layers see only
// the newest tokens: beside each of its first Blocks blocks, which are of the
// layers that see everything, Extra ones for the layers with a window. When it
// has more, the oldest of the window's blocks serve the newest tokens.
//
// That is vLLM's hybrid cache (vllm/v1/core/kv_cache_coordinator.py), but that
// the window's blocks are not found again, so that a hit takes new ones, and that
// a chunk does not hold more than the window while it is computed.
type Window struct{ Blocks, Extra int }

// window keeps what the growing sequences need for their windows.
type window struct {
	blocks, each int32
	blockSize    int64
	// growing[t % blockSize] sequences need each more blocks at tick t; leaving
	// [t % len] of them do so for the last time.
	growing, leaving []int32
}

func newWindow(w Window, blockSize int) window {
	if w.Blocks == 0 || w.Extra == 0 {
		return window{}
	}
	return window{blocks: int32(w.Blocks), each: int32(w.Extra), blockSize: int64(blockSize),
		growing: make([]int32, blockSize), leaving: make([]int32, w.Blocks*blockSize)}
}

// extra returns how many blocks the window of a sequence of so many has.
func (w *window) extra(blocks int32) int32 { return w.each * min(blocks, w.blocks) }

// need returns how many blocks windows, if there are any, take at a tick of this
// class.
func (w *window) need(class int64) int32 {
	return w.each * w.growing[class]
}

// grow counts by more sequences of base + tick tokens that grow.
func (w *window) grow(class, base, tick int64, by int32) {
	// The last tick of need is that before which it has blocks-1 full blocks.
	if last := (int64(w.blocks)-1)*w.blockSize - base; w.each > 0 && last >= tick {
		w.growing[class] += by
		w.leaving[last%int64(len(w.leaving))] += by
	}
}

// pass ends a tick, where there are windows.
func (w *window) pass(tick int64) {
	at := tick % int64(len(w.leaving))
	w.growing[tick%w.blockSize] -= w.leaving[at]
	w.leaving[at] = 0
}

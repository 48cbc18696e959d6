package kv

// Window describes a model in which some layers attend only to a sliding window of the newest tokens.
// Each of the first Blocks blocks of a sequence comes with Extra more blocks for these layers. After
// that, the oldest window blocks are reused for the newest tokens. The zero Window has no such layers.
//
// This simplifies vLLM's hybrid cache (HybridKVCacheCoordinator in vllm/v1/core/kv_cache_coordinator.py).
// There the window's blocks are hashed too, and while a prompt is computed, the window has blocks for all
// its tokens. Here they are never hashed, so that each sequence needs new ones, and they are never more.
type Window struct{ Blocks, Extra int }

// window is a Window with the number of growing sequences whose windows are filling: they have fewer
// than Blocks blocks. Its slices are nil if there are no such layers.
type window struct {
	blocks, extra int32 // of the Window
	blockSize     int64
	// filling[p] is the number of growing sequences of phase p whose windows are filling. At the next
	// tick of that phase, each needs extra blocks.
	filling []int32
	// filledAt[t % len(filledAt)] is the number of those whose last window blocks are taken at tick t.
	// No t is len(filledAt) or more ticks ahead.
	filledAt []int32
}

func newWindow(w Window, blockSize int) window {
	if w.Blocks == 0 || w.Extra == 0 {
		return window{}
	}
	return window{blocks: int32(w.Blocks), extra: int32(w.Extra), blockSize: int64(blockSize),
		filling: make([]int32, blockSize), filledAt: make([]int32, w.Blocks*blockSize)}
}

// size returns how many window blocks a sequence holds that holds the given number of other blocks.
func (w *window) size(blocks int32) int32 { return w.extra * min(blocks, w.blocks) }

// tickNeed returns how many window blocks a tick of this phase takes. extra must not be 0.
func (w *window) tickNeed(phase int64) int32 {
	return w.extra * w.filling[phase]
}

// countFilling adds delta to the counts for a growing sequence of this phase and base, unless its window
// is full at this tick.
func (w *window) countFilling(phase, base, tick int64, delta int32) {
	// At the last tick with window blocks, the sequence has filled all but one of the first blocks.
	if last := (int64(w.blocks)-1)*w.blockSize - base; w.extra > 0 && last >= tick {
		w.filling[phase] += delta
		w.filledAt[last%int64(len(w.filledAt))] += delta
	}
}

// endTick removes the sequences whose windows the tick has filled. extra must not be 0.
func (w *window) endTick(tick int64) {
	at := tick % int64(len(w.filledAt))
	w.filling[tick%w.blockSize] -= w.filledAt[at]
	w.filledAt[at] = 0
}

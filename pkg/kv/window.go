package kv

// Window describes a model in which some layers attend only to a sliding window of the newest tokens.
// Each of the first Blocks blocks of a sequence comes with Extra more blocks for these layers. After
// that, the oldest window blocks are reused for the newest tokens. The zero Window has no such layers.
//
// This simplifies vLLM's hybrid cache (HybridKVCacheCoordinator in vllm/v1/core/kv_cache_coordinator.py).
// There window blocks are hashed and can be hit, and a prompt that is being computed holds them for all its
// tokens. Here they are never hashed, and a sequence never holds more than Blocks·Extra of them.
type Window struct{ Blocks, Extra int }

// window is a Window, with counts of the growing sequences whose windows are filling: those that hold fewer
// than Blocks blocks. The counts are nil if extra is 0.
type window struct {
	blocks, extra int32 // of the Window
	blockSize     int64
	// filling[p] is the number of those that need a block at the ticks of phase p. With it, each takes
	// extra window blocks.
	filling []int32
	// filledAt[t % len(filledAt)] is the number of those that take their last window blocks at tick t,
	// which is less than len(filledAt) ticks ahead.
	filledAt []int32
}

func newWindow(w Window, blockSize int) window {
	if w.Blocks == 0 || w.Extra == 0 {
		return window{}
	}
	return window{blocks: int32(w.Blocks), extra: int32(w.Extra), blockSize: int64(blockSize),
		filling: make([]int32, blockSize), filledAt: make([]int32, w.Blocks*blockSize)}
}

// size returns how many window blocks a sequence holds with the given number of other blocks.
func (w *window) size(blocks int32) int32 { return w.extra * min(blocks, w.blocks) }

// tickNeed returns how many window blocks a tick of this phase takes. extra must not be 0.
func (w *window) tickNeed(phase int64) int32 { return w.extra * w.filling[phase] }

// countFilling counts a growing sequence of this phase and base if its window is filling at this tick. A
// delta of 1 adds it, and one of -1 removes it.
func (w *window) countFilling(phase, base, tick int64, delta int32) {
	// last is the tick at which the window takes its last blocks: w.blocks-1 blocks are full before it.
	if last := (int64(w.blocks)-1)*w.blockSize - base; w.extra > 0 && last >= tick {
		w.filling[phase] += delta
		w.filledAt[last%int64(len(w.filledAt))] += delta
	}
}

// endTick stops counting the sequences that took their last window blocks at tick. extra must not be 0.
func (w *window) endTick(tick int64) {
	at := tick % int64(len(w.filledAt))
	w.filling[tick%w.blockSize] -= w.filledAt[at]
	w.filledAt[at] = 0
}

package kv

// Window describes the blocks of a model in which some layers attend only to the newest tokens.
// Each of a sequence's first Blocks blocks, which belong to the layers with full attention, comes
// with Extra blocks for the layers with a window. Beyond that, the oldest window blocks are reused
// for the newest tokens.
//
// This is vLLM's hybrid cache (vllm/v1/core/kv_cache_coordinator.py) with two differences: the
// window's blocks cannot be found again, so that a hit takes new ones, and a chunk never holds more
// than the window while it is computed.
type Window struct{ Blocks, Extra int }

// window counts what the growing sequences need for their windows.
type window struct {
	blocks, extraPerBlock int32
	blockSize             int64
	// growing[t % blockSize] is the number of sequences that need extraPerBlock more blocks at tick t,
	// leaving[t % len(leaving)] the number of those among them that do not after it.
	growing, leaving []int32
}

func newWindow(w Window, blockSize int) window {
	if w.Blocks == 0 || w.Extra == 0 {
		return window{}
	}
	return window{blocks: int32(w.Blocks), extraPerBlock: int32(w.Extra), blockSize: int64(blockSize),
		growing: make([]int32, blockSize), leaving: make([]int32, w.Blocks*blockSize)}
}

// extra returns how many window blocks a sequence of the given number of blocks has.
func (w *window) extra(blocks int32) int32 { return w.extraPerBlock * min(blocks, w.blocks) }

// demand returns how many window blocks a tick of this phase takes; there must be a window.
func (w *window) demand(phase int64) int32 {
	return w.extraPerBlock * w.growing[phase]
}

// addGrowing adds delta to the number of growing sequences that have base + tick tokens.
func (w *window) addGrowing(phase, base, tick int64, delta int32) {
	// The last tick with demand is the one before which the sequence has blocks-1 full blocks.
	if last := (int64(w.blocks)-1)*w.blockSize - base; w.extraPerBlock > 0 && last >= tick {
		w.growing[phase] += delta
		w.leaving[last%int64(len(w.leaving))] += delta
	}
}

// endTick ends a tick; there must be a window.
func (w *window) endTick(tick int64) {
	at := tick % int64(len(w.leaving))
	w.growing[tick%w.blockSize] -= w.leaving[at]
	w.leaving[at] = 0
}

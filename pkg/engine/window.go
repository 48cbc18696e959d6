package engine

import "blis/pkg/latency"

// window maintains, over the decoding sequences, the sum of min(computed, size): the tokens that
// layers with a sliding window of size tokens attend to.
type window struct {
	size int64
	// full sequences have computed size tokens or more. The other partial ones have computed sum +
	// partial·tick in total; fillsAt[t % (size+1)] of them become full at tick t.
	full, partial, sum int64
	fillsAt            []int32
}

func newWindow(size int) window {
	w := window{size: int64(size)}
	if size > 0 {
		w.fillsAt = make([]int32, size+1)
	}
	return w
}

// clip returns min(n, size), 0 if there is no window.
func (w *window) clip(n int64) int64 { return min(n, w.size) }

// pairs returns, summed over the n tokens after the first c, the tokens that each attends to:
// itself and earlier ones within the window.
func (w *window) pairs(c, n int64) int64 {
	unclipped := max(0, min(n, w.size-c)) // tokens that attend to all earlier ones
	return unclipped*c + unclipped*(unclipped+1)/2 + (n-unclipped)*w.size
}

// EvenBatch is a batch with a chunk of prefill tokens of a prompt whose other tokens are not cached, and with decode
// sequences that have computed context tokens each. size is that of a sliding window, 0 if there is none.
func EvenBatch(prefill, decode, context int64, size int) latency.Batch {
	w := window{size: int64(size)}
	b := latency.Batch{Decode: decode, Context: decode * context, LongestContext: min(decode, 1) * context,
		WindowContext: decode * w.clip(context)}
	if prefill > 0 {
		b.Prefill, b.Chunks, b.Pairs = prefill, 1, prefill*(prefill+1)/2
	}
	if prefill > 0 && size > 0 {
		b.WindowPairs = w.pairs(0, prefill)
	}
	return b
}

// total returns the sum at a tick.
func (w *window) total(tick int64) int64 { return w.sum + w.partial*tick + w.full*w.size }

// add counts a sequence that has computed base + tick tokens from now on.
func (w *window) add(base, tick int64) { w.change(base, tick, 1) }

// remove undoes add.
func (w *window) remove(base, tick int64) { w.change(base, tick, -1) }

func (w *window) change(base, tick int64, by int32) {
	switch {
	case w.size == 0:
	case base+tick >= w.size:
		w.full += int64(by)
	default:
		w.partial += int64(by)
		w.sum += int64(by) * base
		w.fillsAt[(w.size-base)%(w.size+1)] += by
	}
}

// advance moves to the next tick.
func (w *window) advance(tick int64) {
	if w.size == 0 {
		return
	}
	at := tick % (w.size + 1)
	n := int64(w.fillsAt[at])
	w.fillsAt[at] = 0
	w.partial -= n
	w.sum -= n * (w.size - tick)
	w.full += n
}

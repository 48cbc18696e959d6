package engine

// window keeps, for the steady sequences, the sum of min(computed, size): what
// layers with a sliding window of so many tokens look at.
type window struct {
	size int64
	// full sequences have computed size tokens or more. The below others had
	// computed sum + below·tick in all; crossing[t % (size+1)] of them will be
	// full at tick t.
	full, below, sum int64
	crossing         []int32
}

func newWindow(size int) window {
	w := window{size: int64(size)}
	if size > 0 {
		w.crossing = make([]int32, size+1)
	}
	return w
}

// clip returns min(n, size), 0 where there is no window.
func (w *window) clip(n int64) int64 { return min(n, w.size) }

// pairs counts, over n tokens after the first c, the tokens that each attends
// to: itself, and those before it within the window.
func (w *window) pairs(c, n int64) int64 {
	inside := max(0, min(n, w.size-c)) // of the n, those that see all before them
	return inside*c + inside*(inside+1)/2 + (n-inside)*w.size
}

// total returns the sum at a tick.
func (w *window) total(tick int64) int64 { return w.sum + w.below*tick + w.full*w.size }

// add counts a sequence that has computed base + tick tokens from now on.
func (w *window) add(base, tick int64) { w.change(base, tick, 1) }

// remove forgets a sequence that add counted.
func (w *window) remove(base, tick int64) { w.change(base, tick, -1) }

func (w *window) change(base, tick int64, by int32) {
	switch {
	case w.size == 0:
	case base+tick >= w.size:
		w.full += int64(by)
	default:
		w.below += int64(by)
		w.sum += int64(by) * base
		w.crossing[(w.size-base)%(w.size+1)] += by
	}
}

// advance moves to the next tick, which is tick.
func (w *window) advance(tick int64) {
	if w.size == 0 {
		return
	}
	at := tick % (w.size + 1)
	n := int64(w.crossing[at])
	w.crossing[at] = 0
	w.below -= n
	w.sum -= n * (w.size - tick)
	w.full += n
}

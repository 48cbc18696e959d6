package reference

import "slices"

// LoRA limits the adapters of requests.
type LoRA struct {
	// Max is the number of adapters that the running requests may have and that the GPU has slots for. MaxHost, at
	// least Max, is the number in the memory of the host, which has those on the GPU, too.
	Max, MaxHost int
	// LoadUS is the time to bring an adapter into the memory of the host, CopyUS that to bring it from there to the
	// GPU.
	LoadUS, CopyUS int64
	// Factor multiplies the time of a step with adapters, each of which adds EachUS.
	Factor, EachUS float64
}

// AdapterCounts counts what happens to adapters: skipped requests, loads, copies, and adapters that left the GPU since
// they left the memory of the host.
type AdapterCounts struct{ Skipped, Overtaken, Loads, Copies, LeftBoth int }

func (a *AdapterCounts) add(b AdapterCounts) {
	a.Skipped += b.Skipped
	a.Overtaken += b.Overtaken
	a.Loads += b.Loads
	a.Copies += b.Copies
	a.LeftBoth += b.LeftBoth
}

// skipsAdapter passes the first waiting request if the running ones have as many other adapters as they may.
func (r *replica) skipsAdapter(q *request) bool {
	if r.config.LoRA == nil || q.Adapter == "" {
		return false
	}
	running := map[string]bool{}
	for _, other := range r.running {
		if other.Adapter != "" {
			running[other.Adapter] = true
		}
	}
	if running[q.Adapter] || len(running) < r.config.LoRA.Max {
		if len(r.skippedNow) > 0 {
			r.adapters.Overtaken++
		}
		return false
	}
	r.adapters.Skipped++
	r.passedAdapter = true
	r.skippedNow = append(r.skippedNow, q)
	r.waiting = r.waiting[1:]
	return true
}

// returnSkipped puts the requests that were passed back before those behind them.
func (r *replica) returnSkipped() {
	r.waiting = slices.Concat(r.skippedNow, r.waiting)
}

// firstTried is the first waiting request that was not passed, nil if there is none.
func (r *replica) firstTried() *request {
	for _, q := range r.waiting {
		if !slices.Contains(r.skippedNow, q) {
			return q
		}
	}
	return nil
}

// useAdapters brings the adapters of a batch to the GPU, in the order of its requests.
func (r *replica) useAdapters(b *batch) {
	l := r.config.LoRA
	if l == nil {
		return
	}
	var used []string
	for _, p := range b.entries {
		if a := p.request.Adapter; a != "" && !slices.Contains(used, a) {
			used = append(used, a)
		}
	}
	b.Adapters = int64(len(used))
	for _, a := range used {
		if !slices.Contains(r.inHost, a) {
			b.AdapterLoads++
			if len(r.inHost) == l.MaxHost {
				if slices.Contains(r.onGPU, r.inHost[0]) {
					r.adapters.LeftBoth++
				}
				r.onGPU = without(r.onGPU, r.inHost[0])
				r.inHost = r.inHost[1:]
			}
		}
		r.inHost = append(without(r.inHost, a), a)
		if !slices.Contains(r.onGPU, a) {
			b.AdapterCopies++
			if len(r.onGPU) == l.Max {
				r.onGPU = r.onGPU[1:]
			}
		}
		r.onGPU = append(without(r.onGPU, a), a)
	}
	b.AdapterUS = int64(b.AdapterLoads)*l.LoadUS + int64(b.AdapterCopies)*l.CopyUS
	r.adapters.Loads += b.AdapterLoads
	r.adapters.Copies += b.AdapterCopies
}

// without is a list without an element.
func without(list []string, element string) (rest []string) {
	for _, e := range list {
		if e != element {
			rest = append(rest, e)
		}
	}
	return rest
}

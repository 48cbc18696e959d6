package engine

import (
	"blis/pkg/des"
	"blis/pkg/kv"
	"blis/pkg/tier"
)

// TierLoad is what a request loads from KV tiers before its prompt is computed. Times are in µs, from now on where they
// are instants. It begins to load when a batch with room for it is formed.
type TierLoad struct {
	// Tokens of its prompt, behind those in the cache, are loaded.
	Tokens int64
	// Ready is when transfers have ended that now write blocks of its prompt.
	Ready des.Time
	// The links from the storage and from the tier are free at PromoteFree and LoadFree, behind the loads of requests
	// ahead. Its own transfers then take PromoteUS and LoadUS.
	PromoteFree, PromoteUS, LoadFree, LoadUS des.Time
}

// loadsAhead are the loads of requests that are not under way: how long they take on the links, and their tokens.
type loadsAhead struct {
	promoteUS, loadUS des.Time
	tokens            int64
}

// scale extrapolates the loads of sampled requests to n.
func (x *loadsAhead) scale(n, sampled int64) {
	x.promoteUS, x.loadUS, x.tokens = x.promoteUS*n/sampled, x.loadUS*n/sampled, x.tokens*n/sampled
}

// loaded returns when the batch is formed that computes the rest of a prompt whose request loads, and which batch may
// admit from first on if ahead tokens of others are computed before. Steps end only at certain times: that with the
// last tokens of others and those of the sequences that decode, all of which step says how long they take.
func (o *Forecast) loaded(first des.Time, ahead, chunk int64, step func(prefill, decode int64) des.Time) des.Time {
	if full := ahead / chunk; full > 0 {
		first += full * step(chunk, o.Decode)
		ahead -= full * chunk
	}
	nextEnd := func(until des.Time) {
		if until > first && ahead > 0 {
			first += step(ahead, o.Decode)
			ahead = 0
		}
		switch {
		case until <= first:
		case o.Decode == 0:
			first = until
		default:
			us := step(0, o.Decode)
			first += (until - first + us - 1) / us * us
		}
	}
	x := &o.Load
	nextEnd(x.Ready)
	if x.PromoteUS > 0 {
		nextEnd(max(first, x.PromoteFree) + x.PromoteUS)
	}
	if x.LoadUS > 0 {
		nextEnd(max(first, x.LoadFree) + x.LoadUS)
	}
	return first
}

// tierHits returns how many blocks of a prompt, behind those in the cache, a request would load, and how many of these
// are promoted from the storage first. It counts all blocks that the storage has from one on that the tier lacks.
func (e *Engine) tierHits(path kv.Path, cached, tokens int) (blocks, promoted int32) {
	o := e.offload
	lo, hi := int32(cached)/o.blockSize, int32(tokens)/o.blockSize
	at := lo
	for at < hi {
		n, _ := o.store.Lookup(path, o.blockSize, at, hi)
		if at += n; at == hi || o.cfg.Storage == nil {
			break
		}
		below := o.cfg.Storage.store.Readable(path, o.blockSize, at, hi)
		if below == 0 {
			break
		}
		promoted += below
		at += below
	}
	if int(at-lo) < o.cfg.MinLoadBlocks {
		return 0, 0
	}
	return at - lo, promoted
}

// transferTimes returns how long the load of blocks takes, and the promotion of some of them.
func (o *offload) transferTimes(blocks, promoted int32) (promoteUS, loadUS des.Time) {
	if blocks > 0 {
		loadUS = o.loads.Time(float64(float64(blocks) * o.cfg.BlockBytes))
	}
	if promoted > 0 {
		promoteUS = o.cfg.Storage.loads.Time(float64(float64(promoted) * o.cfg.BlockBytes))
	}
	return promoteUS, loadUS
}

// LoadAlone returns the load of blocks from the tier, and of others that are promoted first, by links that are free.
func (e *Engine) LoadAlone(blocks, promoted int32) (x TierLoad) {
	if blocks += promoted; blocks > 0 {
		x.Tokens = int64(blocks * e.offload.blockSize)
		x.PromoteUS, x.LoadUS = e.offload.transferTimes(blocks, promoted)
	}
	return x
}

// loadAhead counts the load of a request ahead, of which the cache has some tokens, and returns its tokens.
func (e *Engine) loadAhead(r InTransit, cached int) (tokens int) {
	n, promoted := e.tierHits(r.Path, cached, r.Input)
	promoteUS, loadUS := e.offload.transferTimes(n, promoted)
	x := &e.own.loads
	x.promoteUS, x.loadUS, x.tokens = x.promoteUS+promoteUS, x.loadUS+loadUS, x.tokens+int64(n*e.offload.blockSize)
	return min(int(n*e.offload.blockSize), r.Input-cached-1)
}

// lookAheadLoads adds the requests that load to o: what they will compute is computed before what waits.
func (e *Engine) lookAheadLoads(o *Forecast) {
	for _, s := range e.loaders {
		q, u := &e.seqs[s], &e.offload.uses[s]
		tokens := int64(q.input + q.generated)
		o.Queued++
		o.QueuedTokens += max(1, tokens-int64((u.hit+u.loaded)*e.offload.blockSize))
		if !e.offload.isPulling(s) { // others are tried before those blocks have come
			e.own.pending.Add(e.cache.Path(q.kv), int(tokens))
		}
	}
}

// forecastLoad returns what r loads if the cache has this many of its tokens when it is tried.
func (e *Engine) forecastLoad(now des.Time, r InTransit, cached int) (x TierLoad) {
	o := e.offload
	for _, s := range e.loaders { // it waits for what others load, but not for what they get from other replicas
		if o.isPulling(s) {
			continue
		}
		if shared := sharedTokens(r.Path, e.cache.Path(e.seqs[s].kv)); shared > e.cache.Match(r.Path, r.Input-1) {
			x.Ready = max(x.Ready, o.uses[s].loadEnd-now)
		}
	}
	blocks, promoted := e.tierHits(r.Path, cached, r.Input)
	if blocks == 0 {
		return x
	}
	lo := int32(cached) / o.blockSize
	for _, list := range [...][]underWay{o.storing, o.below.promoting} {
		for i := range list {
			if list[i].Ended-now > x.Ready && overlaps(list[i].extents, r.Path, o.blockSize, lo, lo+blocks) {
				x.Ready = list[i].Ended - now
			}
		}
	}
	x.Tokens = int64(blocks * o.blockSize)
	x.PromoteUS, x.LoadUS = o.transferTimes(blocks, promoted)
	x.LoadFree = max(0, o.loads.Free()-now) + e.own.loads.loadUS
	if promoted > 0 {
		x.PromoteFree = max(0, o.cfg.Storage.loads.Free()-now) + e.own.loads.promoteUS
	}
	return x
}

// sharedTokens returns the length of the prefix that two paths share.
func sharedTokens(a, b kv.Path) (tokens int) {
	for i := range min(len(a), len(b)) {
		if a[i].Node != b[i].Node {
			break
		}
		tokens = int(min(a[i].End, b[i].End))
	}
	return tokens
}

// overlaps reports whether a list has any of blocks lo to hi of a path.
func overlaps(list []tier.Extent, path kv.Path, blockSize, lo, hi int32) bool {
	for _, span := range path {
		end := min(span.End/blockSize, hi)
		for _, x := range list {
			if x.Node == span.Node && x.Lo < end && lo < x.Hi {
				return true
			}
		}
		if lo = max(lo, end); lo >= hi {
			break
		}
	}
	return false
}

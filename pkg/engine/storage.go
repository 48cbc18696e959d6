package engine

import (
	"fmt"
	"slices"

	"blis/pkg/des"
	"blis/pkg/kv"
	"blis/pkg/link"
	"blis/pkg/tier"
)

// A storage lies below the tier in the memory of the host, as the secondary tiers of vLLM's TieringOffloadingManager do
// (vllm/v1/kv_offload/tiering/manager.py in 0.33): blocks come from that tier, and go there before they are loaded.

// Storage is a tier below those of one replica or of several.
type Storage struct {
	store         *tier.Store
	loads, stores link.FIFO
}

// NewStorage returns an empty storage of this many blocks, with a link in each direction.
func NewStorage(tree *kv.Tree, blocks int, loads, stores link.Speed) *Storage {
	return &Storage{tier.NewLower(tree, blocks), link.NewFIFO(loads), link.NewFIFO(stores)}
}

// Clone returns an independent copy on a clone of the tree.
func (x *Storage) Clone(tree *kv.Tree) *Storage {
	return &Storage{x.store.Clone(tree), x.loads, x.stores}
}

// Store returns its blocks.
func (x *Storage) Store() *tier.Store { return x.store }

// Stats returns the counts of its blocks.
func (x *Storage) Stats() tier.Stats { return x.store.Stats() }

// Check recounts its blocks and returns the first mismatch.
func (x *Storage) Check() error { return x.store.Check() }

// below is what a replica does with a storage: promotions to its tier and copies of blocks of that, in order.
type below struct {
	promoting, copying []underWay
	promoted           []tier.Extent // by the lookup in progress
	stats              TierStats
}

// Storage returns the storage of the replica, nil without one.
func (e *Engine) Storage() *Storage {
	if e.offload == nil {
		return nil
	}
	return e.offload.cfg.Storage
}

// UseStorage makes x, a copy of its storage, that of the replica.
func (e *Engine) UseStorage(x *Storage) { e.offload.cfg.Storage = x }

// StorageUse returns what the replica did with its storage. It has no counts of blocks, which may be of others.
func (e *Engine) StorageUse() TierStats { return e.offload.below.stats }

// lookup returns how many of blocks lo to hi of s the tier has, or gets from the storage, and whether a transfer of one
// of them has not ended.
func (e *Engine) lookup(s, lo, hi int32) (n int32, busy bool) {
	o := e.offload
	path, size, u := e.cache.Path(e.seqs[s].kv), o.blockSize, &o.uses[s]
	n, busy = o.store.Lookup(path, size, lo, hi)
	if o.cfg.Storage == nil || lo+n == hi {
		return n, busy
	}
	storage := o.cfg.Storage.store
	o.below.promoted = o.below.promoted[:0]
	at, own := lo+n, int32(0)
	for protected := lo; at < hi; {
		readable := storage.Readable(path, size, at, hi)
		if readable == 0 {
			break
		}
		own += o.store.Protect(path, size, protected, at)
		protected = at
		next := e.promote(u, path, at, at+readable, own)
		if at == next {
			break
		}
		at = next
		n, others := o.store.Lookup(path, size, at, hi)
		at, busy = at+n, busy || others
	}
	o.store.Unprotect(path, size, lo, at)
	if len(o.below.promoted) == 0 {
		return at - lo, busy
	}
	list := slices.Clone(o.below.promoted)
	storage.Renew(list)
	storage.Read(list)
	e.copyEvicted(e.seqs[s].tag, false)
	e.askBelow(&o.cfg.Storage.loads, e.now, underWay{seq: s, extents: list,
		Transfer: Transfer{Load: true, Storage: true, Tag: e.seqs[s].tag, Blocks: tier.Blocks(list)}})
	return at - lo, true
}

// promote begins to move blocks lo to hi of a path from the storage to the tier, up to the first that the tier has, or
// for which it has no room. It returns the block after them.
func (e *Engine) promote(u *use, path kv.Path, lo, hi, own int32) int32 {
	o := e.offload
	for at := lo; at < hi; at++ {
		x := nodeOf(path, o.blockSize, at)
		if n, _ := o.store.Lookup(path, o.blockSize, at, at+1); n > 0 || !o.store.Promote(&u.User, x, own) {
			return at
		}
		o.below.promoted = append(o.below.promoted, x)
	}
	return hi
}

// nodeOf returns a block of a path.
func nodeOf(path kv.Path, blockSize, at int32) tier.Extent {
	i := 0
	for path[i].End/blockSize <= at {
		i++
	}
	return tier.Extent{Node: path[i].Node, Lo: at, Hi: at + 1}
}

// askBelow starts a transfer between the tier and the storage.
func (e *Engine) askBelow(l *link.FIFO, now des.Time, x underWay) {
	o := e.offload
	x.Transfer.Transfer = l.Ask(now, float64(float64(x.Blocks)*o.cfg.BlockBytes))
	o.started = append(o.started, x.Transfer)
	if x.Load {
		o.below.promoting = append(o.below.promoting, x)
	} else {
		o.below.copying = append(o.below.copying, x)
	}
}

// copyStored copies the blocks to the storage that have been stored at now. They stay in the tier until that has ended.
func (e *Engine) copyStored(now des.Time) {
	o := e.offload
	if o.cfg.Storage == nil || o.cfg.OnEviction {
		return
	}
	for i := range o.storing {
		t := &o.storing[i]
		if t.Ended > now {
			return
		}
		if missing := o.cfg.Storage.store.Copy(t.extents); len(missing) > 0 {
			o.store.Read(missing)
			e.askBelow(&o.cfg.Storage.stores, now, underWay{seq: none, extents: missing,
				Transfer: Transfer{Storage: true, Tag: noTag, Blocks: tier.Blocks(missing)}})
		}
	}
}

// copyEvicted copies to the storage what the tier has evicted for a request.
func (e *Engine) copyEvicted(tag int32, left bool) {
	o := e.offload
	if o.cfg.Storage == nil || !o.cfg.OnEviction || len(o.store.Evicted()) == 0 {
		return
	}
	if missing := o.cfg.Storage.store.CopyEvicted(o.store.Evicted()); len(missing) > 0 {
		e.askBelow(&o.cfg.Storage.stores, e.now, underWay{seq: none, extents: missing,
			Transfer: Transfer{Storage: true, Tag: tag, Left: left, Blocks: tier.Blocks(missing)}})
	}
	o.store.DropEvicted()
}

// endBelow ends the transfers between the tier and the storage that are done at now.
func (e *Engine) endBelow(now des.Time) {
	o := e.offload
	if o.cfg.Storage == nil {
		return
	}
	storage, b := o.cfg.Storage.store, &o.below
	b.promoting = b.end(b.promoting, now, func(list []tier.Extent) {
		storage.EndRead(list)
		o.store.Stored(list, tier.NoRank)
	})
	b.copying = b.end(b.copying, now, func(list []tier.Extent) {
		if !o.cfg.OnEviction {
			o.store.EndRead(list)
		}
		storage.Stored(list, tier.NoRank)
	})
}

// end ends those of a list of transfers on one link that are done at now, its first ones, and returns the others.
func (b *below) end(list []underWay, now des.Time, ended func([]tier.Extent)) []underWay {
	n := 0
	for ; n < len(list) && list[n].Ended <= now; n++ {
		ended(list[n].extents)
		b.stats.count(&list[n].Transfer)
	}
	return slices.Delete(list, 0, n)
}

// checkBelow recounts the storage, and the blocks of the tier that are copied to it.
func (e *Engine) checkBelow() error {
	o := e.offload
	if o.cfg.Storage == nil {
		return nil
	}
	if err := o.cfg.Storage.Check(); err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	var copies int64
	for i := range o.below.copying {
		copies += int64(o.below.copying[i].Blocks)
	}
	if o.cfg.OnEviction {
		copies = 0
	}
	if n := o.store.Reads(); n != copies {
		return fmt.Errorf("engine: transfers to the storage copy %d blocks, the tier counts %d", copies, n)
	}
	return nil
}

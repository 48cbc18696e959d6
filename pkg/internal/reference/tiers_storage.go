package reference

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Storage is below the memory of the hosts: of each replica, or shared by all. Blocks are copied there when they have
// been stored in the memory of a host or, OnEviction, when that evicts them.
type Storage struct {
	Blocks             int
	Shared, OnEviction bool
	Load, Store        Link
}

// StorageCounts counts what happens with storages.
type StorageCounts struct {
	// Refused counts blocks refused for lack of room, Evicted those that made room.
	Refused, Evicted int
	// Promoted counts promotions, NoRoom blocks for which the host has no room, Fetched promotions of blocks that only
	// other replicas had, Pinned blocks that are not evicted from the host since they are copied, and Known copies of
	// which the storage has some blocks or all. Mixed counts promotions of blocks between others of the host.
	Promoted, NoRoom, Fetched, Pinned, Known, Mixed int
}

func (c *StorageCounts) add(b StorageCounts) {
	c.Refused += b.Refused
	c.Evicted += b.Evicted
	c.Promoted += b.Promoted
	c.NoRoom += b.NoRoom
	c.Fetched += b.Fetched
	c.Pinned += b.Pinned
	c.Known += b.Known
	c.Mixed += b.Mixed
}

// storage is the state of a storage.
type storage struct {
	Storage
	blocks []storageBlock
	ranks  int
	// free is when the links are free: to the storage and from it.
	free [2]int64
}

type storageBlock struct {
	hash  string
	index int
	ready bool
	// reads counts the promotions that read it.
	reads, rank int
	from        *host
}

func (x *storage) find(hash string) *storageBlock {
	if x == nil {
		return nil
	}
	for i := range x.blocks {
		if x.blocks[i].hash == hash {
			return &x.blocks[i]
		}
	}
	return nil
}

// shareStorage gives all replicas the storage of the first if they share one.
func (s *simulation) shareStorage() {
	for _, r := range s.replicas {
		if r.host != nil && r.host.storage != nil && r.host.storage.Shared {
			r.host.storage = s.replicas[0].host.storage
		}
	}
}

// promote begins to move a block from the storage to the host for a request that found a run of blocks before it. It
// returns false if the storage lacks it, or the host has no room.
func (h *host) promote(q *request, hash string, index int, run []string) bool {
	b := h.storage.find(hash)
	if b == nil || !b.ready {
		return false
	}
	h.missARC(&q.host, []string{hash})
	h.record(&q.host, q.Priority, []string{hash})
	if !h.makeRoom(1, run) {
		h.counts.Below.NoRoom++
		return false
	}
	evicted := h.evicted
	h.insert(&q.host, hash, index, q.Priority)
	q.host.promoted = append(q.host.promoted, hash)
	h.later = append(h.later, evicted...)
	if b.from != h {
		h.counts.Below.Fetched++
	}
	if len(run) > 0 && h.find(run[0]).state == "ready" {
		h.counts.Below.Mixed++
	}
	b.reads++ // it stays there until it has been read
	return true
}

// askPromotion starts the transfer of promoted blocks, if there are any.
func (h *host) askPromotion(q *request, hashes []string) {
	if len(hashes) == 0 {
		return
	}
	h.counts.Below.Promoted++
	x := h.storage
	x.ranks++
	for _, hash := range hashes {
		x.find(hash).rank = x.ranks
	}
	h.evicted, h.later = h.later, nil
	h.copyEvicted(q)
	t := &transfer{request: q, hashes: hashes}
	t.Load, t.Storage, t.Blocks = true, true, len(hashes)
	h.askStorage(t)
}

// askStorage starts a transfer on a link of the storage, behind those before it.
func (h *host) askStorage(t *transfer) {
	x, link, i := h.storage, h.storage.Store, 0
	if t.Load {
		link, i = x.Load, 1
	}
	us := math.Ceil(link.LatencyUS + float64(t.Blocks*h.BlockBytes)/float64(1000*link.GBPerS))
	t.AskedUS, t.StartedUS, t.Request = h.now, max(h.now, x.free[i]), t.request.ID
	t.EndedUS = t.StartedUS + max(1, int64(us))
	x.free[i] = t.EndedUS
	h.transfers = append(h.transfers, t)
}

// copyEvicted copies to the storage what the host has just evicted.
func (h *host) copyEvicted(q *request) {
	evicted := h.evicted
	h.evicted = nil
	if h.storage == nil || !h.storage.OnEviction || len(evicted) == 0 {
		return
	}
	h.copy(q, evicted)
}

// copy copies blocks to the storage that this lacks, and returns them. What was evicted from the host is evicted in the
// same order there.
func (h *host) copy(q *request, list []hostBlock) (missing []string) {
	x := h.storage
	var all []string
	for _, b := range list {
		all = append(all, b.hash)
		if x.find(b.hash) == nil {
			missing = append(missing, b.hash)
		}
	}
	if len(missing) < len(list) {
		h.counts.Below.Known++
	}
	if len(missing) == 0 {
		return nil
	}
	if !x.makeRoom(len(missing), all, h) {
		h.counts.Below.Refused += len(missing)
		return nil
	}
	x.ranks++
	for _, b := range list {
		if !slices.Contains(missing, b.hash) {
			continue
		}
		if x.OnEviction {
			x.ranks++
		}
		x.blocks = append(x.blocks, storageBlock{hash: b.hash, index: b.index, rank: x.ranks, from: h})
	}
	t := &transfer{request: q, hashes: missing}
	t.Storage, t.Blocks = true, len(missing)
	h.askStorage(t)
	return missing
}

// makeRoom evicts blocks until n more fit, but none of those to be copied. If that is impossible it evicts none.
func (x *storage) makeRoom(n int, copied []string, h *host) bool {
	var idle []storageBlock
	for _, b := range x.blocks {
		if b.ready && b.reads == 0 && !slices.Contains(copied, b.hash) {
			idle = append(idle, b)
		}
	}
	lack := n - (x.Blocks - len(x.blocks))
	if lack > len(idle) {
		return false
	}
	slices.SortFunc(idle, func(a, b storageBlock) int { return cmp.Or(a.rank-b.rank, b.index-a.index) })
	for _, b := range idle[:max(0, lack)] {
		h.counts.Below.Evicted++
		x.blocks = slices.DeleteFunc(x.blocks, func(y storageBlock) bool { return y.hash == b.hash })
	}
	return true
}

// ends returns a transfer that ends at now, nil if there is none: first promotions, then copies to the storage, then
// stores, then loads.
func (h *host) ends(now int64) (first *transfer) {
	order := func(t *transfer) int {
		switch {
		case t.Storage && t.Load:
			return 0
		case t.Storage:
			return 1
		case !t.Load:
			return 2
		}
		return 3
	}
	for _, t := range h.transfers {
		if t.EndedUS == now && (first == nil || order(t) < order(first)) {
			first = t
		}
	}
	return first
}

// wakeFor wakes a replica whose transfer has ended, and those that share its storage if something is there now.
func (s *simulation) wakeFor(t *transfer, r *replica) {
	r.woken = true
	for _, x := range s.replicas {
		if t.Storage && !t.Load && x.host.storage == r.host.storage {
			x.woken = true
		}
	}
}

// endMove changes the states of the blocks of a transfer that has ended.
func (h *host) endMove(t *transfer) {
	var stored []hostBlock
	for _, hash := range t.hashes {
		switch {
		case t.Storage && t.Load:
			h.storage.find(hash).reads--
			h.find(hash).state = "ready"
		case t.Storage:
			h.storage.find(hash).ready = true
			if !h.storage.OnEviction {
				h.find(hash).copies--
			}
		default:
			b := h.find(hash)
			b.state = "ready"
			stored = append(stored, *b)
		}
	}
	if h.storage == nil || h.storage.OnEviction || t.Load || t.Storage {
		return
	}
	for _, hash := range h.copy(t.request, stored) {
		h.find(hash).copies++
	}
}

// setStorage sets a key of the storage in a story.
func (h *Host) setStorage(key, value string) error {
	if h.Storage == nil {
		h.Storage = &Storage{}
	}
	x := h.Storage
	switch key {
	case "storage_mode":
		x.OnEviction = value == "on-eviction"
		return oneOf(value, "write-through", "on-eviction")
	case "storage":
		value, x.Shared = strings.CutSuffix(value, ":shared")
	}
	n, err := numbers(strings.ReplaceAll(value, ":", ","))
	switch {
	case err != nil:
		return err
	case key == "storage" && len(n) == 1:
		x.Blocks = int(n[0])
	case key == "storage_load" && len(n) == 2:
		x.Load = Link{n[0], n[1]}
	case key == "storage_store" && len(n) == 2:
		x.Store = Link{n[0], n[1]}
	default:
		return fmt.Errorf("wrong number of numbers")
	}
	return nil
}

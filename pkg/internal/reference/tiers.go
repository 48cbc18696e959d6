package reference

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Host is memory of the host, below the KV cache of a replica.
type Host struct {
	// Blocks is the number of its blocks, BlockBytes the size of each.
	Blocks, BlockBytes int
	// MinLoad is the least number of blocks that a request loads.
	MinLoad int
	// Eviction is lru, arc, lfu or priority.
	Eviction string
	// Threshold is the share of the cache that must be in use for offers.
	Threshold float64
	// Lazy: there are no offers; blocks are stored when the cache gives them to others.
	Lazy        bool
	Load, Store Link
	// ThrashUS is how long after its store a block is loaded again at most if that is thrashing.
	ThrashUS int64
	// Storage is below it, nil if there is none.
	Storage *Storage
}

// Link is how fast a link is: latency, and 10⁹ bytes a second.
type Link struct{ LatencyUS, GBPerS float64 }

// Transfer is one that ended within the run. Pull: it is a load from another replica. Storage: it is between the
// storage and the memory of the host; as a load it is a promotion.
type Transfer struct {
	Load, Pull, Storage         bool
	Request                     string
	Blocks                      int
	AskedUS, StartedUS, EndedUS int64
	Failed                      bool
	// Again are the blocks of a load that were stored shortly before, or all if the request has left when it ends.
	Again int
}

func (t Transfer) text(replica int) string {
	kind := "store"
	switch {
	case t.Load && t.Storage:
		kind = "promote"
	case t.Load:
		kind = "load"
	case t.Storage:
		kind = "copy"
	}
	end := "ended"
	if t.Failed {
		end = "failed"
	}
	return fmt.Sprintf("replica %d: %s %s %d blocks asked=%d started=%d %s=%d", replica, kind, t.Request, t.Blocks,
		t.AskedUS, t.StartedUS, end, t.EndedUS)
}

// setHost sets a key of the host in a story.
func (c *Config) setHost(key, value string) error {
	if c.Host == nil {
		c.Host = &Host{MinLoad: 1, Eviction: "lru", ThrashUS: 10_000_000}
	}
	switch {
	case key == "eviction":
		c.Host.Eviction = value
		return nil
	case key == "offload":
		c.Host.Lazy = value == "lazy"
		return nil
	case strings.HasPrefix(key, "storage"):
		return c.Host.setStorage(key, value)
	}
	x, err := numbers(strings.ReplaceAll(value, ":", ","))
	switch {
	case err != nil:
		return err
	case key == "host" && len(x) == 3:
		c.Host.Blocks, c.Host.BlockBytes, c.Host.MinLoad = int(x[0]), int(x[1]), int(x[2])
	case key == "offers" && len(x) == 1:
		c.Host.Threshold = x[0]
	case key == "load" && len(x) == 2:
		c.Host.Load = Link{x[0], x[1]}
	case key == "store" && len(x) == 2:
		c.Host.Store = Link{x[0], x[1]}
	default:
		return fmt.Errorf("wrong number of numbers")
	}
	return nil
}

// HostCounts counts what happens with the memory of hosts.
type HostCounts struct {
	// Refused counts blocks refused for lack of room, Evicted those that made room.
	Refused, Evicted int
	// Busy counts attempts to admit a request that wait for a transfer of its blocks, Unfinished those that wait for
	// its own stores.
	Busy, Unfinished int
	// Short counts loads not worth it, NoRoom those for which the cache lacks blocks.
	Short, NoRoom int
	// Waits counts steps that wait for stores, Orphans requests aborted during a load, Whole loads of all tokens.
	Waits, Orphans, Whole int
	// Idle counts batches of a replica whose requests all wait for transfers.
	Idle int
	// Stuck counts batches in which a victim is in the step in flight, Late requests whose blocks are free a step on,
	// Last stores of requests that have left, Flushed those among them of whose blocks the batch takes some.
	Stuck, Late, Last, Flushed int
	// Closed counts offers that are not made, since too little of the cache is in use.
	Closed int
	// Failed counts transfers of replicas that went down or are gone, Moved loads of requests that went elsewhere.
	Failed, Moved int
	// Given counts stores of blocks that the cache has given away.
	Given int
	// Grown and Shrunk count adaptations of the target of arc.
	Grown, Shrunk int
	Below         StorageCounts
}

func (h *HostCounts) add(b HostCounts) {
	h.Refused += b.Refused
	h.Evicted += b.Evicted
	h.Busy += b.Busy
	h.Unfinished += b.Unfinished
	h.Short += b.Short
	h.NoRoom += b.NoRoom
	h.Waits += b.Waits
	h.Orphans += b.Orphans
	h.Whole += b.Whole
	h.Idle += b.Idle
	h.Stuck += b.Stuck
	h.Late += b.Late
	h.Last += b.Last
	h.Flushed += b.Flushed
	h.Closed += b.Closed
	h.Given += b.Given
	h.Grown += b.Grown
	h.Shrunk += b.Shrunk
	h.Failed += b.Failed
	h.Moved += b.Moved
	h.Below.add(b.Below)
}

// host is the memory of a replica's host.
type host struct {
	Host
	blocks []hostBlock
	// ranks counts the ranks given to requests.
	ranks     int
	transfers []*transfer
	// free is when the links are free: to the host and from it.
	free [2]int64
	// wait is when the stores end for which the next step waits.
	wait int64
	// storage is below it, nil if there is none. evicted are the blocks evicted by the last
	// call of makeRoom.
	storage *storage
	evicted []hostBlock
	// later are those evicted by the promotions of the lookup in progress.
	later []hostBlock
	// formed is when a batch was formed last, now the time of what happens.
	formed, now int64
	counts      HostCounts
	done        []Transfer
	// numbers counts the requests that began to leave. left have left since a batch was formed last, late are aborted
	// and have blocks until the next step ends.
	numbers int
	left    []leaver
	late    []*request
	arc     arc
	// storedAt is when the last store of a block was asked for.
	storedAt map[string]int64
}

// leaver is a request that has left, with the blocks that it had: from offered to full they may still be stored.
type leaver struct {
	request       *request
	use           hostUse
	blocks        []int
	hashes        []string
	offered, full int
}

// hostBlock is a block in the host's memory.
type hostBlock struct {
	hash string
	// index is its place in sequences.
	index int
	state string // ready, storing or loading
	// copies counts the transfers that copy it to the storage.
	copies int
	rank   int
	// count is how many requests have used it, priority that of the last one.
	count    int
	priority float64
}

// transfer is a transfer under way.
type transfer struct {
	Transfer
	request *request
	hashes  []string
	blocks  []int // of the cache, of a store
}

// hostUse is what a request does with the host's memory.
type hostUse struct {
	rank int
	used []string
	// inserted are the blocks that it stored, reused those that others had stored, missed those that it offered and
	// the host lacked.
	inserted, reused, missed []string
	// promoted are the blocks that came from the storage for it, fromStorage those of them that a load brings.
	promoted    []string
	fromStorage int
	// number is its place among those that leave, 0 if it does not leave.
	number int
	// offered is the number of blocks that are not offered again in this admission.
	offered int
	// hit and loaded are the blocks that a load found in the cache and brings. pulls: it comes from another replica.
	// reached: it was tried after that.
	hit, loaded    int
	loadEnd        int64
	pulls, reached bool
	// chunked: it computes the tokens with which it was admitted over several steps.
	chunked bool
}

func (h *host) find(hash string) *hostBlock {
	for i := range h.blocks {
		if h.blocks[i].hash == hash {
			return &h.blocks[i]
		}
	}
	return nil
}

// record notes that a request uses blocks of a list. Blocks that it has not used before get its rank if that is higher.
func (h *host) record(u *hostUse, priority float64, hashes []string) {
	for _, hash := range hashes {
		if u.rank == 0 {
			h.ranks++
			u.rank = h.ranks
		}
		b := h.find(hash)
		if b != nil && !slices.Contains(u.inserted, hash) {
			u.reused = append(u.reused, hash)
		}
		if slices.Contains(u.used, hash) {
			continue
		}
		u.used = append(u.used, hash)
		if b != nil {
			b.rank = max(b.rank, u.rank)
			b.count++
			b.priority = priority
		}
	}
}

// ask starts a transfer on a link, behind those before it.
func (h *host) ask(t *transfer, now int64) {
	link, i := h.Store, 0
	if t.Load {
		link, i = h.Load, 1
	}
	us := math.Ceil(link.LatencyUS + float64(t.Blocks*h.BlockBytes)/float64(1000*link.GBPerS))
	t.AskedUS, t.StartedUS, t.Request = now, max(now, h.free[i]), t.request.ID
	t.EndedUS = t.StartedUS + max(1, int64(us))
	h.free[i] = t.EndedUS
	h.transfers = append(h.transfers, t)
	for _, hash := range t.hashes {
		if !t.Load {
			h.storedAt[hash] = now
		} else if at, ok := h.storedAt[hash]; ok && now-at <= h.ThrashUS {
			t.Again++
		}
	}
}

// unused notes that a request has left during its load.
func (h *host) unused(q *request) {
	for _, t := range h.transfers {
		if t.request == q && t.Load && !t.Storage && !t.Pull {
			t.Again = t.Blocks
		}
	}
}

// offer offers the blocks that are full of known tokens when the step of a batch ends.
func (r *replica) offer(b *batch) {
	if r.host.Blocks == 0 || r.host.Lazy {
		return
	}
	for _, p := range b.entries {
		q := p.request
		full := min(p.computed+p.tokens, q.visible()) / r.config.BlockSize
		x := leaver{request: q, use: q.host, blocks: q.tables[0], offered: q.host.offered, full: full}
		for i := range full {
			x.hashes = append(x.hashes, q.hash((i+1)*r.config.BlockSize))
		}
		if !r.offersOpen() {
			r.host.counts.Closed++
			continue
		}
		t, ok := r.host.offer(&x)
		r.host.copyEvicted(q)
		q.host = x.use
		if ok {
			q.host.offered = max(q.host.offered, full)
		}
		if t != nil {
			b.stores = append(b.stores, t)
		}
	}
}

// offersOpen reports whether enough of the cache is in use for offers.
func (r *replica) offersOpen() bool {
	n := len(r.cache.blocks)
	return !r.host.Lazy && float64(n-len(r.cache.free))/float64(n) >= r.host.Threshold
}

// storeGiven stores the blocks that the batch formed at now has taken from others, if the policy is lazy. The batch
// waits for that. Each has a rank of its own.
func (r *replica) storeGiven(b *batch, now int64) {
	h := r.host
	given := r.cache.given
	r.cache.given = nil
	if !h.Lazy {
		return
	}
	var all, missing []string
	var blocks []block
	for _, x := range given {
		if all = append(all, x.tokens); h.find(x.tokens) == nil && !slices.Contains(missing, x.tokens) {
			missing, blocks = append(missing, x.tokens), append(blocks, x)
		}
	}
	if len(missing) == 0 {
		return
	}
	if !h.makeRoom(len(missing), all) {
		h.counts.Refused += len(missing)
		return
	}
	for _, x := range blocks {
		h.ranks++
		h.insert(&hostUse{rank: h.ranks}, x.tokens, x.index, 0)
	}
	t := &transfer{request: &request{}, hashes: missing}
	t.Blocks = len(missing)
	h.ask(t, now)
	h.wait = max(h.wait, t.EndedUS)
	h.counts.Given++
	b.storesLeft = true
}

// offer offers the blocks of a request and returns the store of those that the host lacks, nil if there are none.
// Without room for them ok is false.
func (h *host) offer(x *leaver) (t *transfer, ok bool) {
	if x.offered >= x.full {
		return nil, true
	}
	var missing, used []string
	var blocks []int
	for i := x.offered; i < x.full; i++ {
		b := h.find(x.hashes[i])
		if b == nil {
			missing, blocks = append(missing, x.hashes[i]), append(blocks, x.blocks[i])
		}
		if b == nil || b.state != "storing" {
			used = append(used, x.hashes[i])
		}
	}
	h.missARC(&x.use, missing)
	h.record(&x.use, x.request.Priority, used)
	if !h.makeRoom(len(missing), x.hashes[x.offered:x.full]) {
		h.counts.Refused += len(missing)
		return nil, false
	}
	for i := x.offered; i < x.full; i++ {
		if slices.Contains(missing, x.hashes[i]) {
			h.insert(&x.use, x.hashes[i], i, x.request.Priority)
		}
	}
	if len(missing) == 0 {
		return nil, true
	}
	t = &transfer{request: x.request, hashes: missing, blocks: blocks}
	t.Blocks = len(missing)
	return t, true
}

// insert adds a block to be stored.
func (h *host) insert(u *hostUse, hash string, index int, priority float64) {
	h.blocks = append(h.blocks, hostBlock{hash: hash, index: index, state: "storing", rank: u.rank, count: 1,
		priority: priority})
	h.insertARC(hash)
	u.inserted = append(u.inserted, hash)
}

// offerLeft offers what requests that have left have not offered, and renews the ranks of their blocks. The batch waits
// for a store of blocks that it takes.
func (r *replica) offerLeft(b *batch, now int64) {
	h := r.host
	if h.Blocks == 0 {
		h.left = nil
		return
	}
	slices.SortFunc(h.left, func(x, y leaver) int { return x.use.number - y.use.number })
	for i := range h.left {
		if !r.offersOpen() {
			continue
		}
		t, _ := h.offer(&h.left[i])
		h.copyEvicted(h.left[i].request)
		if t == nil {
			continue
		}
		h.counts.Last++
		b.storesLeft = true
		if slices.ContainsFunc(t.blocks, func(k int) bool { return slices.Contains(r.cache.taken, k) }) {
			h.counts.Flushed++
			h.ask(t, now)
			h.wait = max(h.wait, t.EndedUS)
		} else {
			b.stores = append(b.stores, t)
		}
	}
	for _, x := range h.left {
		if len(x.use.used) == 0 {
			continue
		}
		h.ranks++
		for _, hash := range x.use.used {
			if b := h.find(hash); b != nil {
				b.rank, b.priority = h.ranks, x.request.Priority
			}
		}
		if h.Eviction == "arc" {
			h.finishARC(&x.use)
		}
	}
	h.left = nil
}

// offerIdle is offerLeft if there is no batch to form.
func (r *replica) offerIdle(now int64) {
	var b batch
	r.cache.taken, r.host.now = nil, now
	r.offerLeft(&b, now)
	r.askStores(&b, now)
}

// askStores asks for the stores of a batch at a time.
func (r *replica) askStores(b *batch, at int64) {
	for _, t := range b.stores {
		r.host.ask(t, at)
	}
	b.stores = nil
}

// number numbers a request that begins to leave.
func (h *host) number(q *request) {
	if q.host.number == 0 {
		h.numbers++
		q.host.number = h.numbers
	}
}

// makeRoom evicts blocks until n more fit, but none of those offered. If that is impossible it evicts none.
func (h *host) makeRoom(n int, offered []string) bool {
	var idle []hostBlock
	h.evicted = nil
	for _, b := range h.blocks {
		if b.state == "ready" && b.copies == 0 && !slices.Contains(offered, b.hash) {
			idle = append(idle, b)
		}
	}
	lack := n - (h.Blocks - len(h.blocks))
	if lack > 0 && slices.ContainsFunc(h.blocks, func(b hostBlock) bool { return b.state == "ready" && b.copies > 0 }) {
		h.counts.Below.Pinned++
	}
	if lack > len(idle) {
		return false
	}
	for range max(0, lack) {
		b := h.victim(idle)
		h.counts.Evicted++
		h.evicted = append(h.evicted, b)
		isIt := func(x hostBlock) bool { return x.hash == b.hash }
		h.blocks, idle = slices.DeleteFunc(h.blocks, isIt), slices.DeleteFunc(idle, isIt)
	}
	h.trimARC()
	return true
}

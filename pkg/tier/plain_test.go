package tier

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"blis/pkg/kv"
)

// plain is a store that has its blocks one by one, in lists, as vLLM's manager and policies do.
type plain struct {
	policy        string
	total, ranks  int
	blocks        []*plainBlock
	lists, ghosts [2][]plainKey // of arc, the next block to evict first
	target        float64
	stats         Stats
}

// plainKey identifies a block: the name of its node, which no other node ever has, and its place in the sequence.
type plainKey struct {
	node  string
	index int32
}

type plainBlock struct {
	plainKey
	state       state
	rank, count int
	priority    float64
}

// plainUser is a User.
type plainUser struct {
	rank                           int
	priority                       float64
	used, inserted, reused, missed map[plainKey]bool
}

func (p *plain) find(k plainKey) *plainBlock {
	if i := slices.IndexFunc(p.blocks, func(b *plainBlock) bool { return b.plainKey == k }); i >= 0 {
		return p.blocks[i]
	}
	return nil
}

// use notes that u uses blocks; those that are new to it get its rank if that is higher.
func (p *plain) use(u *plainUser, keys []plainKey) {
	for _, k := range keys {
		if u.rank == 0 {
			p.ranks++
			u.rank = p.ranks
		}
		b := p.find(k)
		if b != nil && !u.inserted[k] {
			u.reused[k] = true
		}
		if u.used[k] {
			continue
		}
		if u.used[k] = true; b != nil {
			b.rank, b.count, b.priority = max(b.rank, u.rank), b.count+1, u.priority
		}
	}
}

func (p *plain) offer(u *plainUser, keys []plainKey) (missing []plainKey, ok bool) {
	var used []plainKey
	for _, k := range keys {
		b := p.find(k)
		if b == nil {
			missing = append(missing, k)
		}
		if b == nil || b.state != storing {
			used = append(used, k)
		}
	}
	p.adapt(u, missing)
	p.use(u, used)
	if !p.makeRoom(len(missing), keys) {
		p.stats.Refused += int64(len(missing))
		return nil, false
	}
	for _, k := range missing {
		p.blocks = append(p.blocks, &plainBlock{k, storing, u.rank, 1, u.priority})
		p.ghosts[0], p.ghosts[1] = drop(p.ghosts[0], k), drop(p.ghosts[1], k)
		p.lists[0] = append(p.lists[0], k)
		u.inserted[k] = true
	}
	p.stats.Peak = max(p.stats.Peak, int32(len(p.blocks)))
	return missing, true
}

func drop(list []plainKey, k plainKey) []plainKey {
	return slices.DeleteFunc(list, func(x plainKey) bool { return x == k })
}

// makeRoom evicts until n more blocks fit, none of those offered.
func (p *plain) makeRoom(n int, offered []plainKey) bool {
	var idle []*plainBlock
	for _, b := range p.blocks {
		if b.state == ready && !slices.Contains(offered, b.plainKey) {
			idle = append(idle, b)
		}
	}
	lack := n - (p.total - len(p.blocks))
	if lack > len(idle) {
		return false
	}
	for range max(0, lack) {
		b := p.victim(idle)
		isVictim := func(x *plainBlock) bool { return x == b }
		p.blocks, idle = slices.DeleteFunc(p.blocks, isVictim), slices.DeleteFunc(idle, isVictim)
		p.stats.Evicted++
	}
	for i, list := range p.ghosts {
		p.ghosts[i] = list[max(0, len(list)-p.total):]
	}
	return true
}

// victim is the idle block to evict next.
func (p *plain) victim(idle []*plainBlock) *plainBlock {
	if p.policy != "arc" {
		return slices.MinFunc(idle, func(a, b *plainBlock) int {
			byKey := 0
			switch p.policy {
			case "lfu":
				byKey = cmp.Compare(a.count, b.count)
			case "priority":
				byKey = cmp.Compare(a.priority, b.priority)
			}
			return cmp.Or(byKey, cmp.Compare(a.rank, b.rank), cmp.Compare(b.index, a.index))
		})
	}
	order := []int{1, 0}
	if len(p.lists[0]) >= int(p.target) {
		order = []int{0, 1}
	}
	for _, list := range order {
		for _, k := range p.lists[list] {
			if b := p.find(k); slices.Contains(idle, b) {
				p.lists[list], p.ghosts[list] = drop(p.lists[list], k), append(p.ghosts[list], k)
				return b
			}
		}
	}
	panic("no block is idle")
}

// adapt changes the target of arc by blocks that u misses for the first time, the last one first.
func (p *plain) adapt(u *plainUser, missing []plainKey) {
	for _, k := range slices.Backward(missing) {
		if u.missed[k] {
			continue
		}
		u.missed[k] = true
		once, often := float64(len(p.ghosts[0])), float64(len(p.ghosts[1]))
		switch {
		case slices.Contains(p.ghosts[0], k):
			p.target = min(p.target+max(1, often/once), float64(p.total))
			p.ghosts[0] = append(drop(p.ghosts[0], k), k)
		case slices.Contains(p.ghosts[1], k):
			p.target = max(p.target-max(1, once/often), 0)
			p.ghosts[1] = append(drop(p.ghosts[1], k), k)
		}
	}
}

// finish renews the rank of the blocks that u has used.
func (p *plain) finish(u *plainUser) {
	p.ranks++
	var used []*plainBlock
	for _, b := range p.blocks {
		if u.used[b.plainKey] {
			b.rank, b.priority = p.ranks, u.priority
			used = append(used, b)
		}
	}
	slices.SortFunc(used, func(a, b *plainBlock) int { return cmp.Compare(b.index, a.index) })
	for _, b := range used {
		from := 0
		if slices.Contains(p.lists[1], b.plainKey) {
			from = 1
		}
		to := from
		if u.reused[b.plainKey] {
			to = 1
		} else if !u.inserted[b.plainKey] {
			continue
		}
		p.lists[from] = drop(p.lists[from], b.plainKey)
		p.lists[to] = append(p.lists[to], b.plainKey)
	}
}

// TestStoreMatchesPlain: random users offer, load, finish and leave. The blocks that a store lacks, has and evicts are
// those of the plain store, and an image has those that it had at the last refresh.
func TestStoreMatchesPlain(t *testing.T) {
	const size, blocks, users = 10, 16, 4
	prompts := [][]kv.Segment{{{ID: "a", Tokens: 35}, {ID: "b", Tokens: 85}}, {{ID: "a", Tokens: 35},
		{ID: "c", Tokens: 85}}, {{ID: "d", Tokens: 120}}, {{ID: "a", Tokens: 35}, {ID: "b", Tokens: 85},
		{ID: "e", Tokens: 20}}}
	type transfer struct {
		list  []Extent
		rank  int32
		keys  []plainKey
		loads *bool // of the user, nil for a store
	}
	type user struct {
		User
		plain plainUser
		path  kv.Path
		names []string // of the nodes of the path
		at    int32
		loads bool
	}
	keys := func(u *user, lo, hi int32) (all []plainKey) {
		for i := lo; i < hi; i++ {
			at := slices.IndexFunc(u.path, func(span kv.Span) bool { return span.End/size > i })
			all = append(all, plainKey{u.names[at], i})
		}
		return all
	}
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		tree, policy, total := kv.NewTree(), Evictions[seed%4], 5+random.IntN(1+int(seed%40))
		s, p := NewStore(tree, total, policy), &plain{policy: policy, total: total}
		s.Growers(func(int32) { t.Fatal("no user grows") })
		image, imaged, watched := kv.NewMemoryImage(tree), map[plainKey]bool{}, seed/4%2 == 0
		if watched {
			s.Watch(image)
		}
		tails := !watched
		if tails {
			s.KeepTails()
		}
		var active [users]user
		start := func(u *user, i, step int) {
			*u = user{}
			input, id, prompt := 0, string(rune('p'+i)), prompts[random.IntN(len(prompts))]
			for _, segment := range prompt {
				input += segment.Tokens
				u.names = append(u.names, segment.ID)
			}
			tail := prompt[len(prompt)-1].ID + id
			if random.IntN(2) == 0 { // tokens of its own: no other request has what follows
				input, tail = input+5, fmt.Sprint(id, step)
			}
			u.path, u.names = tree.Resolve(nil, prompt, input, id), append(u.names, tail)
			u.Priority = float64(random.IntN(3))
			u.plain = plainUser{priority: u.Priority, used: map[plainKey]bool{}, inserted: map[plainKey]bool{},
				reused: map[plainKey]bool{}, missed: map[plainKey]bool{}}
		}
		for i := range active {
			start(&active[i], i, -1)
		}
		var under []transfer
		for step := range 300 {
			i := random.IntN(users)
			u := &active[i]
			switch random.IntN(6) {
			case 0, 1, 2:
				if u.loads || u.at == blocks {
					continue
				}
				hi := min(u.at+1+random.Int32N(5), blocks)
				list, ok := s.Offer(&u.User, u.path, size, u.at, hi)
				missing, plainOK := p.offer(&u.plain, keys(u, u.at, hi))
				var got []plainKey
				for _, x := range list {
					for k := x.Lo; k < x.Hi; k++ {
						at := slices.IndexFunc(u.path, func(span kv.Span) bool { return span.Node == x.Node })
						got = append(got, plainKey{u.names[at], k})
					}
				}
				if ok != plainOK || !slices.Equal(got, missing) {
					t.Fatalf("seed %d, %s, step %d: %v missing, room %v, want %v, %v", seed, policy, step, got, ok,
						missing, plainOK)
				}
				if ok {
					u.at = hi
					under = append(under, transfer{list, u.Rank(), missing, nil})
				}
			case 3:
				n, busy := s.Lookup(u.path, size, u.at, blocks)
				all := keys(u, u.at, blocks)
				found, plainBusy := 0, false
				for found < len(all) && p.find(all[found]) != nil {
					plainBusy = plainBusy || p.find(all[found]).state != ready
					found++
				}
				if int(n) != found || busy != plainBusy {
					t.Fatalf("seed %d, %s, step %d: %d blocks, busy %v, want %d, %v", seed, policy, step, n, busy,
						found, plainBusy)
				}
				if n == 0 || busy || u.loads {
					continue
				}
				u.loads = true
				list := s.Load(&u.User, u.path, size, u.at, u.at+n)
				under = append(under, transfer{list, NoRank, all[:n], &u.loads})
				for _, k := range all[:n] {
					p.find(k).state = loading
				}
				p.use(&u.plain, all[:n])
				u.at += n
			case 4:
				if len(under) == 0 {
					continue
				}
				k := random.IntN(len(under))
				if tails { // transfers of a user end in order
					k = 0
				}
				s.Stored(under[k].list, under[k].rank)
				for _, key := range under[k].keys {
					p.find(key).state = ready
				}
				if under[k].loads != nil {
					*under[k].loads = false
				}
				under = slices.Delete(under, k, k+1)
			case 5:
				if u.loads || random.IntN(3) > 0 {
					continue
				}
				if random.IntN(4) == 0 {
					s.Leave(&u.User)
					tree.Drop(u.path)
				} else {
					path := s.Keep(nil, u.path)
					tree.Drop(u.path)
					s.Finish(&u.User, path, size)
					s.Release(path)
					p.finish(&u.plain)
				}
				start(u, i, step)
			}
			p.stats.Blocks, p.stats.Used = int32(total), int32(len(p.blocks))
			if got := s.Stats(); got != p.stats {
				t.Fatalf("seed %d, %s, step %d: %+v, want %+v", seed, policy, step, got, p.stats)
			}
			if err := s.Check(); err != nil {
				t.Fatalf("seed %d, %s, step %d: %v", seed, policy, step, err)
			}
			if !watched {
				continue
			}
			if random.IntN(300) == 0 {
				for ; len(under) > 0; under = under[1:] {
					s.Stored(under[0].list, under[0].rank)
				}
				s.Clear()
				image.Refresh()
				for i := range active {
					if n := image.Has(active[i].path, size, 0, blocks); n > 0 {
						t.Fatalf("seed %d, %s, step %d: the image has %d blocks of an empty store", seed, policy, step,
							n)
					}
				}
				break
			}
			if random.IntN(5) == 0 {
				image.Refresh()
				clear(imaged)
				for i := range p.blocks {
					imaged[p.blocks[i].plainKey] = p.blocks[i].state != storing
				}
			}
			if random.IntN(9) == 0 {
				image = image.Clone(tree)
				s.watchers = []kv.Watcher{image}
			}
			for i := range active {
				x, want := &active[i], int32(0)
				for all := keys(x, 0, blocks); want < blocks && imaged[all[want]]; {
					want++
				}
				lo := random.Int32N(want + 1)
				if got := image.Has(x.path, size, lo, blocks); got != want-lo {
					t.Fatalf("seed %d, %s, step %d: the image has %d blocks from %d on, want %d", seed, policy, step,
						got, lo, want-lo)
				}
			}
		}
	}
}

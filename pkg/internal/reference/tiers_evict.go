package reference

import (
	"cmp"
	"slices"
)

// victim is the idle block to evict next.
func (h *host) victim(idle []hostBlock) hostBlock {
	if h.Eviction == "arc" {
		return h.victimARC(idle)
	}
	return slices.MinFunc(idle, func(a, b hostBlock) int {
		byKey := 0
		switch h.Eviction {
		case "lfu":
			byKey = a.count - b.count
		case "priority":
			byKey = cmp.Compare(a.priority, b.priority)
		}
		return cmp.Or(byKey, a.rank-b.rank, b.index-a.index)
	})
}

// arc are the lists of vLLM's arc, the next block to evict first. The first list of each pair is for blocks that one
// request has used, the second one for those that several have.
type arc struct {
	blocks, ghosts [2][]string
	// target is the size of the first list.
	target float64
}

// move removes a block from a list and adds it at the end of another.
func move(from, to *[]string, hash string) {
	*from = slices.DeleteFunc(*from, func(x string) bool { return x == hash })
	*to = append(*to, hash)
}

// missARC adapts the target to blocks that were evicted lately, if a request misses them for the first time.
func (h *host) missARC(u *hostUse, missing []string) {
	a := &h.arc
	for _, hash := range slices.Backward(missing) {
		if slices.Contains(u.missed, hash) {
			continue
		}
		u.missed = append(u.missed, hash)
		recent, often := float64(len(a.ghosts[0])), float64(len(a.ghosts[1]))
		switch {
		case slices.Contains(a.ghosts[0], hash):
			a.target = min(a.target+max(1, often/recent), float64(h.Blocks))
			move(&a.ghosts[0], &a.ghosts[0], hash)
			h.counts.Grown++
		case slices.Contains(a.ghosts[1], hash):
			a.target = max(a.target-max(1, recent/often), 0)
			move(&a.ghosts[1], &a.ghosts[1], hash)
			h.counts.Shrunk++
		}
	}
}

func (h *host) insertARC(hash string) {
	if h.Eviction != "arc" {
		return
	}
	for i := range h.arc.ghosts {
		h.arc.ghosts[i] = slices.DeleteFunc(h.arc.ghosts[i], func(x string) bool { return x == hash })
	}
	h.arc.blocks[0] = append(h.arc.blocks[0], hash)
}

// trimARC forgets the oldest ghosts.
func (h *host) trimARC() {
	for i, list := range h.arc.ghosts {
		h.arc.ghosts[i] = list[max(0, len(list)-h.Blocks):]
	}
}

// victimARC is the block to evict next. It moves to the ghosts.
func (h *host) victimARC(idle []hostBlock) hostBlock {
	a, lists := &h.arc, []int{1, 0}
	if len(a.blocks[0]) >= int(a.target) {
		lists = []int{0, 1}
	}
	for _, list := range lists {
		for _, hash := range a.blocks[list] {
			if i := slices.IndexFunc(idle, func(b hostBlock) bool { return b.hash == hash }); i >= 0 {
				move(&a.blocks[list], &a.ghosts[list], hash)
				return idle[i]
			}
		}
	}
	panic("reference: no block is idle")
}

// finishARC moves the blocks that a request has used to the ends of the lists, the last one of its sequence first.
func (h *host) finishARC(u *hostUse) {
	var used []*hostBlock
	for _, hash := range u.used {
		if b := h.find(hash); b != nil {
			used = append(used, b)
		}
	}
	slices.SortFunc(used, func(a, b *hostBlock) int { return b.index - a.index })
	for _, b := range used {
		list := 0
		if slices.Contains(h.arc.blocks[1], b.hash) {
			list = 1
		}
		switch {
		case slices.Contains(u.reused, b.hash):
			move(&h.arc.blocks[list], &h.arc.blocks[1], b.hash)
		case slices.Contains(u.inserted, b.hash):
			move(&h.arc.blocks[list], &h.arc.blocks[list], b.hash)
		}
	}
}

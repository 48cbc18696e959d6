package sim

import (
	"blis/pkg/kv"
	"blis/pkg/policy"
	"blis/pkg/tier"
)

// tierImages are the tiers of a replica at the last refresh of its cache; nil where there is no tier, or nothing that
// can be stale. A storage that replicas share has an image for each of them.
type tierImages struct{ cpu, storage *kv.MemoryImage }

func (t *tierImages) refresh() {
	for _, m := range [...]*kv.MemoryImage{t.cpu, t.storage} {
		if m != nil {
			m.Refresh()
		}
	}
}

// clone returns independent copies on a clone of the tree.
func (t tierImages) clone(tree *kv.Tree) (c tierImages) {
	if t.cpu != nil {
		c.cpu = t.cpu.Clone(tree)
	}
	if t.storage != nil {
		c.storage = t.storage.Clone(tree)
	}
	return c
}

// tiersOf returns the tiers of replica i, nil where it has none.
func (s *simulation) tiersOf(i int32) (cpu, storage *tier.Store) {
	e := s.replicas[i].engine
	if x := e.Storage(); x != nil {
		storage = x.Store()
	}
	return e.TierStore(), storage
}

// watchTiers makes the router's view of the tiers of replica i a copy, if its policies read that.
func watchTiers(s *simulation, i int32) {
	if s.router.needs.all&policy.NeedTierBlocks == 0 {
		return
	}
	cpu, storage := s.tiersOf(i)
	images := &s.telemetry.counters[i].tiers
	watch := func(x *tier.Store, image **kv.MemoryImage) {
		if x == nil {
			return
		}
		if *image == nil {
			*image = kv.NewMemoryImage(s.tree)
		}
		x.Watch(*image)
	}
	if first := int32(s.deployments[s.replicas[i].deployment].first); i > first && storage != nil {
		_, others := s.tiersOf(first)
		s.telemetry.sharedImages = s.telemetry.sharedImages || others == storage
	}
	watch(cpu, &images.cpu)
	watch(storage, &images.storage)
}

// readSharers makes the periodic reads of the other replicas of the deployment of i, whose storage may change with i.
func (o *telemetry) readSharers(s *simulation, i int32, eventsDone bool) {
	d := &s.deployments[s.replicas[i].deployment]
	for k := int32(d.first); k < int32(d.end); k++ {
		if k != i {
			o.readPeriodic(s, k, eventsDone)
		}
	}
}

// matchTiers fills in the blocks of a prompt in the candidates' tiers, behind those in their caches, as of the last
// refresh of these. They are what the replica would load: blocks that a transfer still writes do not count.
func matchTiers(s *simulation, path kv.Path, candidates []policy.Replica) {
	for i := range candidates {
		r := &candidates[i]
		cpu, storage := s.tiersOf(r.Index)
		images := &s.telemetry.counters[r.Index].tiers
		r.Stats.Tiers = policy.TierMatch{}
		if cpu == nil {
			continue
		}
		size := int32(s.replicas[r.Index].engine.Cache().BlockSize())
		has := func(x *tier.Store, image *kv.MemoryImage, lo, hi int32) int32 {
			switch {
			case image != nil:
				return image.Has(path, size, lo, hi)
			case x != nil:
				return x.Readable(path, size, lo, hi)
			}
			return 0
		}
		for at := r.Cached; at < r.Blocks; {
			n := has(cpu, images.cpu, at, r.Blocks)
			r.Stats.Tiers.CPU += n
			if at += n; at == r.Blocks || has(storage, images.storage, at, at+1) == 0 {
				break
			}
			r.Stats.Tiers.Storage++
			at++
		}
	}
}

package sim

import (
	"slices"

	"blis/pkg/cluster"
	"blis/pkg/engine"
	"blis/pkg/kv"
	"blis/pkg/link"
)

// storageOf returns the storage of the next replica of d, deployment i, nil if it has none.
func (s *simulation) storageOf(d *cluster.Deployment, i int) *engine.Storage {
	if len(d.KVTiers) < 2 {
		return nil
	}
	t := &d.KVTiers[1]
	if last := len(s.replicas) - 1; t.Shared && last >= 0 && s.replicas[last].deployment == i {
		return s.replicas[last].engine.Storage()
	}
	x := engine.NewStorage(s.tree, d.Computed.KVStorageBlocks, link.Speed(t.Load), link.Speed(t.Store))
	s.transfers.storages = append(s.transfers.storages, x)
	return x
}

// cloneStorages replaces the storages by independent copies on a clone of the tree, and returns these by the storages
// that they are copies of. all may be nil.
func (all *transfers) cloneStorages(tree *kv.Tree) map[*engine.Storage]*engine.Storage {
	if all == nil {
		return nil
	}
	copies := map[*engine.Storage]*engine.Storage{}
	all.storages = slices.Clone(all.storages)
	for i, x := range all.storages {
		all.storages[i] = x.Clone(tree)
		copies[x] = all.storages[i]
	}
	return copies
}

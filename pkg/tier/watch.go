package tier

import "blis/pkg/kv"

// Watch makes w one of the watchers of the store, which has no blocks yet. Inserted reports blocks, as group 0, when
// they have been stored, Evicted when the store evicts them or is cleared. The store must have neither growing users
// nor tails. Watchers follow vLLM's KV events (cpu/manager.py in 0.33): the end of a store is an event, and so is an
// eviction.
func (s *Store) Watch(w kv.Watcher) {
	s.watchers = append(s.watchers, w)
	s.forgets = false // watchers know of a block until it is evicted
}

// notifyStored reports blocks whose store has ended.
func (s *Store) notifyStored(x Extent) {
	for _, w := range s.watchers {
		w.Inserted(0, x.Node, x.Lo, x.Hi)
	}
}

// notifyCleared reports the loss of all blocks.
func (s *Store) notifyCleared() {
	for i := range s.nodes.slots {
		for r := s.nodes.slots[i].first; r != none; r = s.runs[r].following {
			if x := &s.runs[r]; x.state%reader != storing {
				s.notifyEvicted(x.Extent)
			}
		}
	}
}

// notifyEvicted reports blocks that the store no longer has.
func (s *Store) notifyEvicted(x Extent) {
	for _, w := range s.watchers {
		w.Evicted(0, x.Node, x.Lo, x.Hi)
	}
}

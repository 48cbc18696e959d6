package kv

import "slices"

// groupEvents says at which ticks growing sequences take or free blocks. At the other ticks, nothing is done
// for them.
type groupEvents struct {
	// due[t % len(due)] is the sequences with an event at tick t, which is less than len(due) ticks ahead, in the
	// order of their admission.
	// need has the number of blocks that these take.
	due  [][]Seq
	need []int32
	// pending is the sequences with an event at the last tick that is still to be done, in order.
	pending []Seq
}

func newGroupEvents(largestBlock int) groupEvents {
	return groupEvents{due: make([][]Seq, largestBlock+1), need: make([]int32, largestBlock+1)}
}

// grow makes s grow from the next tick on, at which inFlight of its tokens are being computed.
func (g *groupStore) grow(s Seq, inFlight int32) {
	q := &g.seqs[s]
	q.start, q.inFlight, q.sharedEnd = g.c.tick, inFlight, 0
	if path := g.c.seqs[s].path; len(path) > 1 {
		end := path[len(path)-2].End + g.layout.alignment - 1
		q.sharedEnd = end - end%g.layout.alignment
	}
	g.schedule(s, g.c.tick)
}

// schedule sets the tick of the next event of s.
func (g *groupStore) schedule(s Seq, at int64) {
	q := &g.seqs[s]
	slot := at % int64(len(g.events.due))
	q.due = at
	list := append(g.events.due[slot], s)
	for i := len(list) - 1; i > 0 && q.order < g.seqs[list[i-1]].order; i-- { // most lists are short
		list[i], list[i-1] = list[i-1], s
	}
	g.events.due[slot] = list
	g.events.need[slot] += g.lacks(q, int32(g.c.seqs[s].base+at)+1)
}

// stopGrowing cancels the next event of s.
func (g *groupStore) stopGrowing(s Seq) {
	q := &g.seqs[s]
	slot := q.due % int64(len(g.events.due))
	list := g.events.due[slot]
	i := slices.Index(list, s)
	g.events.due[slot] = slices.Delete(list, i, i+1)
	g.events.need[slot] -= g.lacks(q, int32(g.c.seqs[s].base+q.due)+1)
}

// tickNeed returns how many blocks the events of the next tick take. They may free some before.
func (g *groupStore) tickNeed() int { return int(g.events.need[g.c.tick%int64(len(g.events.need))]) }

// tick makes the events of the tick pending. They must be settled before anything else is done, except that
// extend may be called for sequences that do not grow.
func (g *groupStore) tick() {
	slot := g.c.tick % int64(len(g.events.due))
	g.events.pending = append(g.events.pending[:0], g.events.due[slot]...)
	g.events.due[slot], g.events.need[slot] = g.events.due[slot][:0], 0
}

// catchUpBefore publishes the blocks of the growing sequence w that it fills before s publishes one. At a tick,
// that is only the case for those of the tick if w was admitted before s.
func (g *groupStore) catchUpBefore(w, s Seq) {
	q, tick := &g.c.seqs[w], g.c.tick
	if g.advancing && g.seqs[w].order > g.seqs[s].order {
		tick--
	}
	g.publishTokens(w, int32(q.base+tick)-q.lag)
}

// settleBefore does the pending events of sequences of lower order.
func (g *groupStore) settleBefore(order int64) {
	done := 0
	for done < len(g.events.pending) && g.seqs[g.events.pending[done]].order < order {
		g.advance(g.events.pending[done])
		done++
	}
	g.events.pending = append(g.events.pending[:0], g.events.pending[done:]...)
}

// advance gives s its token of the last tick.
func (g *groupStore) advance(s Seq) {
	g.advancing = true
	q, r, at := &g.seqs[s], &g.c.seqs[s], g.c.tick-1
	tokens := int32(r.base + at)
	g.c.Publish(s, int(tokens-r.lag))
	past := tokens
	if g.rules.KeepUntilComputed {
		past -= r.lag
		if at == q.start {
			past = tokens - q.inFlight
		}
	}
	g.skip(q, past)
	g.allocate(q, tokens+1)
	if tokens+1-r.lag == q.sharedEnd {
		g.c.Publish(s, int(q.sharedEnd))
	}
	g.schedule(s, g.nextEvent(q, r, at))
	g.advancing = false
}

// nextEvent returns the first tick after at at which the growing sequence q takes or frees a block, or publishes
// one that other sequences can publish as well.
func (g *groupStore) nextEvent(q *groupSequence, r *sequence, at int64) int64 {
	next := at + int64(len(g.events.due)) - 1
	if shared := int64(q.sharedEnd) - 1 + int64(r.lag) - r.base; shared > at {
		next = min(next, shared)
	}
	lag := int64(0)
	if g.rules.KeepUntilComputed {
		lag = int64(r.lag)
	}
	for i := range g.groups {
		table, size := &q.tables[i], int64(g.groups[i].BlockSize)
		next = min(next, int64(len(table.blocks))*size-r.base)
		if left := g.groups[i].leaves(table.skipped); left >= 0 {
			next = min(next, left+lag-r.base)
		}
	}
	return max(next, at+1)
}

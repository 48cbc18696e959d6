package attribution

import (
	"slices"

	"blis/pkg/stat"
	"blis/pkg/stream"
)

// occupancy is how full a replica was: means over the time in which a request waited there for its first batch, or
// until it left the queue for good.
type occupancy struct {
	// running is the number of requests in its batches, 0 for a request that did not wait.
	running float64
	// kvShare is the share of the replica's blocks that these held, 0 where it is not known.
	// It is an estimate and may exceed 1: outputs are assumed to grow evenly, a shared prefix
	// counts with the first request that ran, half a block of each request is empty, and a
	// preempted request is assumed to keep its blocks.
	kvShare float64
	// concurrent is the number of requests in the batches while the request decoded, with itself, and heavyTenant that
	// of the heavy tenant among them.
	concurrent, heavyTenant float64
}

// eventKind is what changes the occupancy of a replica, or begins or ends a request's wait there. Events at one instant
// are in the order of the kinds.
type eventKind uint32

const (
	waitBegins eventKind = iota
	waitEnds
	batchEntered
	firstToken
	requestEnds
	eventKinds
)

// eventBits is the number of bits of an event's tag that are its kind. The others are the index of the request among
// those of the replica.
const eventBits = 3

// occupancyEvents are buffers for the events of one replica.
type occupancyEvents struct {
	byKind          [eventKinds][]stat.Keyed
	sorted, scratch []stat.Keyed
}

func (e *occupancyEvents) clear() {
	for kind := range e.byKind {
		e.byKind[kind] = e.byKind[kind][:0]
	}
}

// add adds an event of request i of the replica.
func (e *occupancyEvents) add(at stream.Micros, kind eventKind, i int) {
	tag := uint32(i)<<eventBits | uint32(kind)
	e.byKind[kind] = append(e.byKind[kind], stat.Keyed{Key: uint64(at), Tag: tag})
}

// sort returns the events by time, those of equal times by kind, then by request.
func (e *occupancyEvents) sort() []stat.Keyed {
	e.sorted = e.sorted[:0]
	for _, some := range e.byKind {
		e.sorted = append(e.sorted, some...)
	}
	e.scratch = slices.Grow(e.scratch[:0], len(e.sorted))[:len(e.sorted)]
	return stat.SortKeyed(e.sorted, e.scratch)
}

// measureOccupancy finds the occupancy for each request that joined the queue of replica n.
func (a *Analyzer) measureOccupancy(n int32, queued []*request, e *occupancyEvents) {
	e.clear()
	for i, r := range queued {
		if r.leftQueue() > r.enqueued() {
			e.add(r.enqueued(), waitBegins, i)
			e.add(r.leftQueue(), waitEnds, i)
		}
		if r.scheduled() == never {
			continue
		}
		e.add(r.scheduled(), batchEntered, i)
		if r.firstToken() != never && r.ended() > r.firstToken() {
			e.add(r.firstToken(), firstToken, i)
		}
		if r.ended() != never {
			e.add(r.ended(), requestEnds, i)
		}
	}
	a.replayOccupancy(n, queued, e.sort())
}

// replayOccupancy replays the events of one replica, whose keys are times.
func (a *Analyzer) replayOccupancy(n int32, requests []*request, events []stat.Keyed) {
	d := a.topology.deploymentOf(n)
	blocks, blockSize := d.usableBlocks(), d.Engine.BlockSize
	// Requests in batches, tokens in the cache and their growth per µs; the integrals of the
	// first two over the time since the first event.
	var running, tokens, growth, runningTime, tokenTime, heavy, heavyTime float64
	for k, e := range events {
		if k > 0 {
			elapsed := float64(e.Key - events[k-1].Key)
			runningTime += float64(running * elapsed)
			heavyTime += float64(heavy * elapsed)
			tokenTime += float64((tokens + float64(growth*elapsed/2)) * elapsed)
			tokens += float64(growth * elapsed)
		}
		r := requests[e.Tag>>eventBits]
		c := &r.contention
		prompt, output, rate := r.cacheDemand(blockSize)
		switch eventKind(e.Tag % (1 << eventBits)) {
		case waitBegins:
			c.running, c.kvShare = runningTime, tokenTime
		case waitEnds:
			wait := float64(r.leftQueue() - r.enqueued())
			c.running = (runningTime - c.running) / wait
			c.kvShare = (tokenTime - c.kvShare) / wait / float64(max(1, blocks*blockSize))
			if blocks == 0 || blockSize == 0 {
				c.kvShare = 0
			}
		case batchEntered:
			running++
			tokens += prompt
			if r.labels.tenant == a.stats.heavyTenant {
				heavy++
			}
		case firstToken:
			growth += rate
			r.outputUS = d.outputUS(running)
			c.concurrent, c.heavyTenant = runningTime, heavyTime
		case requestEnds:
			if decode := r.ended() - r.firstToken(); r.firstToken() != never && decode > 0 {
				c.concurrent = (runningTime - c.concurrent) / float64(decode)
				c.heavyTenant = (heavyTime - c.heavyTenant) / float64(decode)
			}
			running--
			if r.labels.tenant == a.stats.heavyTenant {
				heavy--
			}
			tokens -= prompt + output
			growth -= rate
		}
	}
}

// cacheDemand is how many tokens of the cache a request takes for its prompt and its output, and
// how many per µs it adds while it decodes.
func (r *request) cacheDemand(blockSize int64) (prompt, output, rate float64) {
	prompt = float64(r.tokens.input-r.tokens.cached) + float64(float64(blockSize)/2)
	if r.firstToken() != never && r.ended() > r.firstToken() && r.tokens.generated > 1 {
		output = float64(r.tokens.generated - 1)
		rate = output / float64(r.ended()-r.firstToken())
	}
	return prompt, output, rate
}

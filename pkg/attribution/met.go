package attribution

import (
	"slices"

	"blis/pkg/stat"
)

// metReplica has what is measured of the requests of one replica where none of them lost anything: how long an output
// token needs to the client, and how busy the replica was while each decoded. That takes a third of the time of
// measuring all.
type metReplica struct {
	requests []metRequest
	events   occupancyEvents
}

// metRequest is a request that lost nothing. tpotMS is 0 where it says nothing about the replica.
type metRequest struct {
	tpotMS float64
	prompt int64 // tokens that were computed
	decoding
}

// measure measures the requests of replica n, and u is its speed. It reports false, and changes nothing, where some
// lost something, or where some have no time at which they joined the queue or entered a batch but do have later ones.
func (m *metReplica) measure(a *Analyzer, n int32, requests []*request, u *speedUnit, samples *samplesByCompany) bool {
	var prefills prefillTotals
	m.events.clear()
	m.requests = slices.Grow(m.requests[:0], len(requests))
	for i, r := range requests {
		entered, first, ended := r.scheduled(), r.firstToken(), r.ended()
		queued := r.enqueued() != never
		if !r.shared || !queued && entered != never || queued && entered == never && first != never {
			return false
		}
		m.requests = append(m.requests, metRequest{tpotMS: a.tpotMS(r), prompt: r.ownPrompt(),
			decoding: decoding{us: int64(ended - first), tokens: r.tokens.output - 1}})
		if entered == never {
			continue
		}
		prefills.add(r)
		m.events.add(entered, batchEntered, i)
		if first != never && ended > first {
			m.events.add(first, firstToken, i)
		}
		if ended != never {
			m.events.add(ended, requestEnds, i)
		}
	}
	a.stats.prefillRates[n] = prefills.rate()
	m.replay(a.topology.deploymentOf(n), requests, m.events.sort())
	for i := range m.requests {
		if x := &m.requests[i]; x.tpotMS != 0 {
			a.addSpeed(u, x.tpotMS, x.decoding, samples)
		}
	}
	u.endSamples(samples)
	return true
}

// replay replays the events of one replica, as replayOccupancy does, and adds up prompts as startedWork does: those of
// requests that entered a batch at the instant itself do not count. Its sums are of integers, which do not depend on
// the order, as long as they are below 2^53.
func (m *metReplica) replay(d *deployment, requests []*request, events []stat.Keyed) {
	var running, runningTime float64
	var prompts, before int64 // all, and those before the last instant in which a request entered a batch
	last, lastEntry := uint64(0), uint64(0)
	for _, e := range events {
		runningTime += float64(running * float64(e.Key-last))
		last = e.Key
		if e.Key != lastEntry {
			before = prompts
		}
		i := e.Tag >> eventBits
		x := &m.requests[i]
		switch eventKind(e.Tag % (1 << eventBits)) {
		case batchEntered:
			lastEntry = e.Key
			running++
			prompts += x.prompt
		case firstToken:
			if d.outputVaries() {
				requests[i].outputUS = d.outputUS(running)
			}
			x.concurrent, x.interfering = runningTime, before
		case requestEnds:
			if x.us > 0 {
				x.concurrent = (runningTime - x.concurrent) / float64(x.us)
				x.interfering = before - x.interfering
			}
			running--
		}
	}
}

package reference

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// EncodePool are replicas that encode the items of requests for the others.
type EncodePool struct {
	// Replicas encode at most MaxSeqs items at a time, with Budget tokens, and keep the embeddings of Cache tokens.
	Replicas, MaxSeqs, Budget, Cache int
	// ItemUS is the time to encode an item, TokenUS that for each of its tokens.
	ItemUS, TokenUS float64
	// RoundRobin takes turns; else the replica with the fewest items encodes the next one.
	RoundRobin bool
	// A transfer of embeddings takes LatencyUS, shares its bandwidths with no one then, and moves TokenBytes for each
	// token.
	LatencyUS           int64
	OutGBPerS, InGBPerS float64
	TokenBytes          int
}

// EncodePoolCounts counts what happens to items with encode replicas: those encoded there, those found in their caches,
// passed by others in their queues, and of requests that ended before; embeddings that came for no one, those that were
// asked for while others waited for them, and those lost from the cache before they were used.
type EncodePoolCounts struct{ Encoded, Hits, Passed, Ended, Unneeded, Shared, Lost int }

// encodeReplica is one of them.
type encodeReplica struct {
	cache          encoderCache
	waiting, batch []encodeTask
	endsAt         int64 // Never without a batch
}

// encodeTask is an item of a request.
type encodeTask struct {
	request *request
	item    int
}

func (t encodeTask) content() string { return t.request.media()[t.item].content }
func (t encodeTask) tokens() int     { return t.request.media()[t.item].tokens }

// embeddingsPull is a transfer of embeddings.
type embeddingsPull struct {
	content     string
	from, to    int
	left        float64 // bytes
	askedAt     int64
	movesAt     int64 // after its latency
	moves       bool
	endsAt      int64 // while it moves
	id          string
	tokens, num int
}

// encoders is the state of the encode replicas and their links.
type encoders struct {
	replicas []*encodeReplica
	turn     int
	pulls    []*embeddingsPull
	asked    int
	settled  int64
	counts   EncodePoolCounts
	done     []EmbeddingsTransfer
}

// EmbeddingsTransfer is a transfer of embeddings that has ended, number N of those that were asked for.
type EmbeddingsTransfer struct {
	N, From, To, Tokens int
	Request             string
	AskedUS, EndedUS    int64
}

func (s *simulation) addEncoders() {
	if p := s.config.EncodePool; p != nil {
		for range p.Replicas {
			s.encoders.replicas = append(s.encoders.replicas, &encodeReplica{endsAt: Never})
		}
	}
}

// encodesFirst sends the items of a request to encode replicas, and reports whether there are any. Of items with the
// same content the first one is encoded.
func (s *simulation) encodesFirst(q *request) bool {
	p, x := s.config.EncodePool, &s.encoders
	if p == nil || len(q.media()) == 0 {
		return false
	}
	q.encodedAt = map[string]int{}
	for i, item := range q.media() {
		if _, seen := q.encodedAt[item.content]; seen {
			continue
		}
		at := x.turn
		if p.RoundRobin {
			x.turn = (x.turn + 1) % p.Replicas
		} else {
			at = 0
			for k, e := range x.replicas {
				if len(e.waiting)+len(e.batch) < len(x.replicas[at].waiting)+len(x.replicas[at].batch) {
					at = k
				}
			}
		}
		q.encodedAt[item.content] = at
		x.replicas[at].waiting = append(x.replicas[at].waiting, encodeTask{q, i})
	}
	q.stage, q.until = stageEncoding, Never
	return true
}

// startEncoder starts a batch of an encode replica that has none, and reports whether one did.
func (s *simulation) startEncoder(now int64) bool {
	p, x := s.config.EncodePool, &s.encoders
	for _, e := range x.replicas {
		if e.endsAt != Never || len(e.waiting) == 0 {
			continue
		}
		us, budget := 0.0, p.Budget
		var passed []encodeTask
		for _, t := range e.waiting {
			c := e.cache.find(t.content())
			if len(e.batch) == p.MaxSeqs {
				passed = append(passed, t)
				continue
			}
			if c == nil {
				fits := t.tokens() <= budget
				if fits {
					_, fits = e.cache.makeRoom(t.tokens(), p.Cache)
				}
				if !fits {
					passed = append(passed, t)
					x.counts.Passed++
					continue
				}
				c = &embeddings{content: t.content(), tokens: t.tokens()}
				e.cache.all = append(e.cache.all, c)
				budget -= t.tokens()
				us += p.ItemUS + float64(p.TokenUS*float64(t.tokens()))
				x.counts.Encoded++
			} else {
				x.counts.Hits++
			}
			c.use(t.request, t.item)
			e.batch = append(e.batch, t)
		}
		e.waiting, e.endsAt = passed, now+roundHalfUp(us)
		return true
	}
	return false
}

// endEncoder ends the first batch of an encode replica that is due, and reports whether there is one. Requests whose
// items are all encoded go on.
func (s *simulation) endEncoder(now int64) bool {
	for _, e := range s.encoders.replicas {
		if e.endsAt != now {
			continue
		}
		done := e.batch
		e.batch, e.endsAt = nil, Never
		for _, t := range done {
			e.cache.release(t.request, t.item)
		}
		for _, t := range done {
			q := t.request
			if q.final() || s.isEncoding(q) {
				continue
			}
			q.outcome.EncodedUS = now
			if q.twin != nil {
				q.stage, q.until = stagePrefillDelay, now+s.config.Disaggregation.Pool.queueDelay(q.Input)
			} else {
				q.stage, q.until = stageDelay, now+s.config.queueDelay(q.Input)
			}
		}
		return true
	}
	return false
}

// isEncoding reports whether items of a request wait for an encode replica or are being encoded.
func (s *simulation) isEncoding(q *request) bool {
	is := func(t encodeTask) bool { return t.request == q }
	return slices.ContainsFunc(s.encoders.replicas, func(e *encodeReplica) bool {
		return slices.ContainsFunc(e.waiting, is) || slices.ContainsFunc(e.batch, is)
	})
}

// stopEncoding takes the items of a request from the queues of encode replicas.
func (s *simulation) stopEncoding(q *request) {
	s.encoders.counts.Ended++
	for _, e := range s.encoders.replicas {
		e.waiting = slices.DeleteFunc(e.waiting, func(t encodeTask) bool { return t.request == q })
	}
}

// needs reports whether a request at the replica has an item of a content.
func (r *replica) needs(content string) bool {
	for _, q := range slices.Concat(r.waiting, r.holders()) {
		if q.hasItem(content) {
			return true
		}
	}
	return false
}

func (q *request) hasItem(content string) bool {
	return slices.ContainsFunc(q.media(), func(x media) bool { return x.content == content })
}

// dropReceived drops the embeddings that no request at the replica needs any more, before another one comes.
func (r *replica) dropReceived() {
	for content := range r.received {
		if !r.needs(content) {
			delete(r.received, content)
		}
	}
}

// awaitsItems reports whether a request that has computed this many tokens waits for embeddings, and asks for them.
func (r *replica) awaitsItems(q *request, computed int) (waits bool) {
	if r.config.EncodePool == nil {
		return false
	}
	for _, x := range q.media() {
		if x.start+x.tokens <= computed || r.embeddings.find(x.content) != nil || r.received[x.content] {
			continue
		}
		waits = true
		if r.underWay == nil {
			r.underWay, r.received = map[string]bool{}, map[string]bool{}
		}
		if !r.underWay[x.content] {
			r.underWay[x.content] = true
			r.asks = append(r.asks, askedItem{q, x})
		}
	}
	r.lacking = r.lacking || waits
	return waits
}

// askedItem is an item of which a replica asks for the embeddings.
type askedItem struct {
	request *request
	media
}

// startEmbeddings starts the transfers for which replica i has asked.
func (s *simulation) startEmbeddings(i int, now int64) {
	p, x, r := s.config.EncodePool, &s.encoders, s.replicas[i]
	for _, a := range r.asks {
		s.settleEmbeddings(now)
		q := a.request
		if q.main != nil {
			q = q.main
		}
		x.pulls = append(x.pulls, &embeddingsPull{content: a.content, from: q.encodedAt[a.content], to: i,
			left: float64(a.tokens * p.TokenBytes), movesAt: now + p.LatencyUS, askedAt: now, id: a.request.ID,
			tokens: a.tokens, num: x.asked})
		x.asked++
		if p.LatencyUS == 0 {
			s.settleEmbeddings(now)
		}
	}
	r.asks = nil
}

// settleEmbeddings counts the bytes that the transfers have moved by now, ends those that are done and says when the
// others end from here on.
func (s *simulation) settleEmbeddings(now int64) {
	x := &s.encoders
	for _, p := range x.pulls {
		if p.moves {
			p.left -= float64(s.embeddingBytesPerUS(p) * float64(now-x.settled))
		}
	}
	x.settled = now
	for _, p := range slices.Clone(x.pulls) {
		if p.moves && p.endsAt <= now {
			x.pulls = slices.DeleteFunc(x.pulls, func(other *embeddingsPull) bool { return other == p })
			s.endEmbeddings(p, now)
		}
		p.moves = p.moves || p.movesAt <= now
	}
	for _, p := range x.pulls {
		if p.moves {
			p.endsAt = max(p.askedAt+1, now+int64(math.Ceil(p.left/s.embeddingBytesPerUS(p)-1e-9)))
		}
	}
}

// embeddingBytesPerUS is how fast a transfer moves bytes: those at each end share its bandwidth.
func (s *simulation) embeddingBytesPerUS(p *embeddingsPull) float64 {
	out, in := 0, 0
	for _, x := range s.encoders.pulls {
		if x.moves && x.from == p.from {
			out++
		}
		if x.moves && x.to == p.to {
			in++
		}
	}
	c := s.config.EncodePool
	return min(float64(1000*c.OutGBPerS)/float64(out), float64(1000*c.InGBPerS)/float64(in))
}

// endEmbeddings hands embeddings to their replica.
func (s *simulation) endEmbeddings(p *embeddingsPull, now int64) {
	x, r := &s.encoders, s.replicas[p.to]
	delete(r.underWay, p.content)
	n := 0
	for _, q := range slices.Concat(r.waiting, r.holders()) {
		if !q.hasItem(p.content) {
			continue
		}
		r.received[p.content] = true
		if n++; q.outcome.ScheduledUS == Never && !q.final() {
			switch {
			case q.main != nil && q.main.outcome.ScheduledUS == Never:
				q.main.outcome.EmbeddingsUS = now
			case q.main == nil && (q.twin == nil || q.twin.outcome.ScheduledUS == Never):
				q.outcome.EmbeddingsUS = now
			}
		}
	}
	switch {
	case n == 0:
		x.counts.Unneeded++
	case n > 1:
		x.counts.Shared++
	}
	x.done = append(x.done, EmbeddingsTransfer{p.num, p.from, p.to, p.tokens, p.id, p.askedAt, now})
	r.changed, r.woken = r.changed || r.step == nil, true
}

// changeEmbeddings performs what happens on the links of encode replicas at now and reports whether anything does.
func (s *simulation) changeEmbeddings(now int64) bool {
	for _, p := range s.encoders.pulls {
		if p.moves && p.endsAt == now || !p.moves && p.movesAt == now {
			s.settleEmbeddings(now)
			return true
		}
	}
	return false
}

// encoderTimes are the times at which encode replicas and their links change.
func (s *simulation) encoderTimes() (times []int64) {
	for _, e := range s.encoders.replicas {
		if e.endsAt != Never {
			times = append(times, e.endsAt)
		}
	}
	for _, p := range s.encoders.pulls {
		if p.moves {
			times = append(times, p.endsAt)
		} else {
			times = append(times, p.movesAt)
		}
	}
	return times
}

// set sets a key of the encode command of a story. The defaults of budget, cache and cost are those of the encoder.
func (p *EncodePool) set(key, value string) (err error) {
	var x []float64
	switch key {
	case "replicas":
		p.Replicas, err = strconv.Atoi(value)
	case "seqs":
		p.MaxSeqs, err = strconv.Atoi(value)
	case "budget":
		p.Budget, err = strconv.Atoi(value)
	case "cache":
		p.Cache, err = strconv.Atoi(value)
	case "cost":
		if x, err = numbers(strings.ReplaceAll(value, ":", ",")); err == nil && len(x) == 2 {
			p.ItemUS, p.TokenUS = x[0], x[1]
		}
	case "routing":
		p.RoundRobin, err = value == "round-robin", oneOf(value, "round-robin", "least-loaded")
	case "link":
		x, err = numbers(strings.ReplaceAll(value, ":", ","))
		if err == nil && len(x) != 4 {
			err = fmt.Errorf("want latency:out:in:bytes of a token")
		}
		if err == nil {
			p.LatencyUS, p.OutGBPerS, p.InGBPerS, p.TokenBytes = int64(x[0]), x[1], x[2], int(x[3])
		}
	default:
		err = fmt.Errorf("unknown key")
	}
	return err
}

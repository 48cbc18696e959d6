package reference

import (
	"fmt"
	"slices"
)

// Encoder computes the embeddings of the segments of prompts that are media.
type Encoder struct {
	// Budget is the number of tokens that a step may encode, Cache the number of which the embeddings are kept.
	Budget, Cache int
	// Whole computes no part of an item unless a later step begins within it.
	Whole bool
	// ItemUS is the time to encode an item, TokenUS that for each of its tokens.
	ItemUS, TokenUS float64
}

// EncoderCounts counts what happens to items: those encoded, those found among the embeddings or again in one batch,
// chunks that ended before an item, requests that were passed in the queue, embeddings evicted, items of which a victim
// took the place in a batch, and items that were released although the step that needs them had not run.
type EncoderCounts struct{ Encoded, Hits, Repeated, Cuts, Passed, Evicted, Withdrawn, Early int }

func (a *EncoderCounts) add(b EncoderCounts) {
	a.Encoded += b.Encoded
	a.Hits += b.Hits
	a.Repeated += b.Repeated
	a.Cuts += b.Cuts
	a.Passed += b.Passed
	a.Evicted += b.Evicted
	a.Withdrawn += b.Withdrawn
	a.Early += b.Early
}

// media is an item of a prompt.
type media struct {
	content       string
	start, tokens int
}

// media lists the items of the prompt.
func (q *request) media() (list []media) {
	at := 0
	for _, s := range q.Prompt {
		if s.Media {
			list = append(list, media{fmt.Sprint(s.ID, " ", s.Tokens), at, s.Tokens})
		}
		at += s.Tokens
	}
	return list
}

// embeddings are those of one content. Its users are requests with the numbers of their items. The first without
// users since is evicted first.
type embeddings struct {
	content string
	tokens  int
	users   map[*request][]int
	since   int
}

// encoderCache are the embeddings of a replica.
type encoderCache struct {
	all      []*embeddings
	releases int
}

func (c *encoderCache) find(content string) *embeddings {
	i := slices.IndexFunc(c.all, func(e *embeddings) bool { return e.content == content })
	if i < 0 {
		return nil
	}
	return c.all[i]
}

// size is the number of tokens in the cache, of which used are those with users.
func (c *encoderCache) size() (all, used int) {
	for _, e := range c.all {
		all += e.tokens
		if len(e.users) > 0 {
			used += e.tokens
		}
	}
	return all, used
}

// use makes an item of a request a user.
func (e *embeddings) use(q *request, item int) {
	if e.users == nil {
		e.users = map[*request][]int{}
	}
	if !slices.Contains(e.users[q], item) {
		e.users[q] = append(e.users[q], item)
	}
}

// release ends the use of an item.
func (c *encoderCache) release(q *request, item int) {
	e := c.find(q.media()[item].content)
	if e == nil || !slices.Contains(e.users[q], item) {
		return
	}
	i := slices.Index(e.users[q], item)
	if e.users[q] = slices.Delete(e.users[q], i, i+1); len(e.users[q]) == 0 {
		delete(e.users, q)
	}
	if len(e.users) == 0 {
		c.releases++
		e.since = c.releases
	}
}

// releaseAll ends all uses of a request.
func (r *replica) releaseAll(q *request) {
	for i := range q.media() {
		r.embeddings.release(q, i)
	}
}

// items is what a batch encodes for a request, and which other items have these contents.
type items struct{ encode, repeat []int }

// planItems says what a request needs encoded to compute n tokens after the first computed ones, and how many of these
// it can compute.
func (r *replica) planItems(b *batch, q *request, computed, n int) (p items, m int) {
	c := r.config.Encoder
	if c == nil || n <= 0 {
		return p, n
	}
	planned, hits := 0, 0
	m = n
loop:
	for i, x := range q.media() {
		if x.start+x.tokens <= computed || x.start >= computed+n {
			continue
		}
		if c.Whole && computed <= x.start && computed+n < x.start+x.tokens {
			m = x.start - computed
			break
		}
		for _, k := range p.encode {
			if q.media()[k].content == x.content {
				p.repeat = append(p.repeat, i)
				continue loop
			}
		}
		if e := r.embeddings.find(x.content); e != nil {
			if !slices.Contains(e.users[q], i) {
				hits++
			}
			e.use(q, i)
			continue
		}
		budgeted := planned
		if r.config.EncodePool != nil { // what has come from an encode replica takes nothing of the budget
			budgeted = 0
			if !r.received[x.content] {
				r.lost++
				m = max(0, x.start-computed)
				break
			}
		}
		if b.encoderTokens+budgeted+x.tokens > c.Budget || !r.makeRoom(planned+x.tokens) {
			m = max(0, x.start-computed)
			break
		}
		p.encode = append(p.encode, i)
		planned += x.tokens
	}
	if r.encoding.Hits += hits; m < n {
		r.encoding.Cuts++
	}
	return p, m
}

// makeRoom evicts embeddings without users until n tokens fit, if they can.
func (r *replica) makeRoom(n int) bool {
	evicted, fits := r.embeddings.makeRoom(n, r.config.Encoder.Cache)
	r.encoding.Evicted += evicted
	return fits
}

// makeRoom evicts embeddings without users from a cache of a size until n tokens fit, if they can.
func (c *encoderCache) makeRoom(n, size int) (evicted int, fits bool) {
	if _, used := c.size(); used+n > size {
		return 0, false
	}
	for all, _ := c.size(); all+n > size; all, _ = c.size() {
		var oldest *embeddings
		for _, e := range c.all {
			if len(e.users) == 0 && (oldest == nil || e.since < oldest.since) {
				oldest = e
			}
		}
		i := slices.Index(c.all, oldest)
		c.all = slices.Delete(c.all, i, i+1)
		evicted++
	}
	return evicted, true
}

// encode adds what was planned for a request in a batch.
func (r *replica) encode(b *batch, q *request, p items, before int) {
	if len(p.encode) > 0 {
		b.encoderTokens = before
	}
	for _, i := range p.encode {
		x := q.media()[i]
		e := &embeddings{content: x.content, tokens: x.tokens}
		e.use(q, i)
		r.embeddings.all = append(r.embeddings.all, e)
		if r.config.EncodePool != nil {
			continue
		}
		b.encoderTokens += x.tokens
		b.encodes = append(b.encodes, encodedItem{q, x.tokens})
	}
	for _, i := range p.repeat {
		r.embeddings.find(q.media()[i].content).use(q, i)
		r.encoding.Repeated++
	}
}

// encodedItem is an item that a batch encodes.
type encodedItem struct {
	request *request
	tokens  int
}

// withdrawItems takes back what a batch encodes for a victim. Its embeddings count as computed.
func (r *replica) withdrawItems(b *batch, q *request) {
	b.encodes = slices.DeleteFunc(b.encodes, func(x encodedItem) bool {
		if x.request == q {
			b.encoderTokens -= x.tokens
			r.encoding.Withdrawn++
		}
		return x.request == q
	})
}

// passItem passes the first waiting request, which cannot begin.
func (r *replica) passItem(q *request) {
	r.encoding.Passed++
	r.skippedNow = append(r.skippedNow, q)
	r.waiting = r.waiting[1:]
}

// timeItems sums up what a batch encodes.
func (r *replica) timeItems(b *batch) {
	us := 0.0
	for _, x := range b.encodes {
		b.EncodedItems++
		b.EncodedTokens += int64(x.tokens)
		us += r.config.Encoder.ItemUS + float64(r.config.Encoder.TokenUS*float64(x.tokens))
	}
	r.encoding.Encoded += b.EncodedItems
	b.EncoderUS = roundHalfUp(us)
}

// finishItems releases the items that requests of the step have computed, up to the tokens of which the outputs are
// known. A batch formed ahead counts as computed.
func (r *replica) finishItems(p entry) {
	q := p.request
	known := q.computed
	if r.config.Async {
		known -= q.inFlight
	}
	for i, x := range q.media() {
		if x.start+x.tokens <= known {
			if e := r.embeddings.find(x.content); e != nil && len(e.users[q]) > 0 &&
				x.start+x.tokens > p.computed+p.tokens {
				r.encoding.Early++
			}
			r.embeddings.release(q, i)
		}
	}
}

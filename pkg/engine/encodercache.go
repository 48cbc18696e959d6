package engine

import (
	"fmt"
	"maps"
	"slices"
)

// open notes the items of a new sequence.
func (x *encoder) open(s int32, items []Item) {
	for len(x.uses) <= int(s) {
		x.uses = append(x.uses, itemUse{})
	}
	u := &x.uses[s]
	u.items = append(u.items[:0], items...)
	u.held = slices.Grow(u.held[:0], len(items))[:len(items)]
	clear(u.held)
	if x.remote != nil {
		x.expect(s)
	}
}

// insert adds the embeddings of item i of s, which refers to them, to the cache.
func (x *encoder) insert(s int32, i int) {
	u := &x.uses[s]
	tokens := int64(u.items[i].Tokens)
	x.cached[u.items[i].Content] = embeddings{tokens: tokens, users: 1}
	x.free -= tokens
	x.available -= tokens
	u.held[i] = true
	u.holds++
	x.references++
}

// others reports whether s refers to the content of item i by another item.
func (u *itemUse) others(i int) bool {
	for k := range u.items {
		if k != i && u.held[k] && u.items[k].Content == u.items[i].Content {
			return true
		}
	}
	return false
}

// refer makes item i of s refer to its embeddings, which are in the cache.
func (x *encoder) refer(s int32, i int) {
	u := &x.uses[s]
	if u.held[i] {
		return
	}
	key := u.items[i].Content
	if e := x.cached[key]; !u.others(i) {
		if e.users == 0 {
			at := slices.Index(x.unused, key)
			x.unused = slices.Delete(x.unused, at, at+1)
			x.available -= e.tokens
		}
		e.users++
		x.cached[key] = e
	}
	u.held[i] = true
	u.holds++
	x.references++
}

// release ends the reference of item i of s. The embeddings stay until their room is needed.
func (x *encoder) release(s int32, i int) {
	u := &x.uses[s]
	u.held[i] = false
	u.holds--
	x.references--
	if u.others(i) {
		return
	}
	key := u.items[i].Content
	e := x.cached[key]
	if e.users--; e.users == 0 {
		x.unused = append(x.unused, key)
		x.available += e.tokens
	}
	x.cached[key] = e
}

// releaseAll ends all references of s.
func (x *encoder) releaseAll(s int32) {
	u := &x.uses[s]
	for i := 0; u.holds > 0; i++ {
		if u.held[i] {
			x.release(s, i)
		}
	}
}

// fits reports whether the embeddings of n tokens fit into the cache, besides those of the tokens planned, and evicts
// unused contents until they do.
func (x *encoder) fits(n, planned int64) bool {
	n += planned
	if n <= x.free {
		return true
	}
	if n > x.available {
		return false
	}
	for n > x.free {
		x.free += x.cached[x.unused[0]].tokens
		delete(x.cached, x.unused[0])
		x.unused = slices.Delete(x.unused, 0, 1)
	}
	return true
}

func (x *encoder) clone() *encoder {
	if x == nil {
		return nil
	}
	c := *x
	c.cached = maps.Clone(x.cached)
	c.uses = slices.Clone(x.uses)
	for i := range c.uses {
		c.uses[i].items, c.uses[i].held = slices.Clone(x.uses[i].items), slices.Clone(x.uses[i].held)
	}
	c.unused, c.live = slices.Clone(x.unused), slices.Clone(x.live)
	c.plan, c.remote = encoding{}, x.remote.clone()
	return &c
}

// checkEncoder counts the references to embeddings and their sizes again.
func (e *Engine) checkEncoder() error {
	x := e.encoder
	if x == nil {
		return nil
	}
	users, references := map[uint64]int{}, 0
	for s := range x.uses {
		u, counted := &x.uses[s], map[uint64]bool{}
		for i := range u.items {
			if key := u.items[i].Content; u.held[i] {
				references++
				if !counted[key] {
					counted[key] = true
					users[key]++
				}
			}
		}
	}
	free, available := x.CacheTokens, x.CacheTokens
	for key, c := range x.cached { // only sums and comparisons
		free -= c.tokens
		if c.users > 0 {
			available -= c.tokens
		}
		if c.users != users[key] || (c.users == 0) != slices.Contains(x.unused, key) {
			return fmt.Errorf("engine: %d requests refer to embeddings, the cache says %d", users[key], c.users)
		}
		delete(users, key)
	}
	if free != x.free || available != x.available || free < 0 || references != x.references || len(users) > 0 {
		return fmt.Errorf("engine: the encoder cache has %d free and %d available tokens and %d references, the "+
			"running "+
			"totals say %d, %d and %d", free, available, references, x.free, x.available, x.references)
	}
	return e.checkRemote()
}

package kv

// Clear evicts all blocks, none of which a sequence may hold: the memory of the cache is lost.
func (c *Cache) Clear() {
	if c.groups != nil {
		c.groups.release(c.groups.take(nil, int(c.total)))
		return
	}
	if c.fences != nil {
		c.DropMarks()
	}
	c.takeFree(c.total)
	c.DropGiven()
	c.freeUnhashed(c.total)
	c.fenced = 0
}

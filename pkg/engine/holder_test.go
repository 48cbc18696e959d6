package engine

import "testing"

func TestHolder(t *testing.T) {
	for _, c := range []struct {
		name   string
		cfg    Config
		blocks int
		inputs []int // tags are places, from 0
		tag    int32
		room   int
		none   bool
	}{
		{name: "a prompt takes what a step computes", cfg: Config{MaxNumSeqs: 8}, blocks: 100, inputs: []int{900, 16}, tag: 0, room: 1600 - 112},
		{name: "the first does not fit", cfg: Config{MaxNumSeqs: 8, ReserveFullSequence: true}, blocks: 10, inputs: []int{64, 128, 16}, tag: 1, room: 160 - 64},
		{name: "nobody waits", cfg: Config{MaxNumSeqs: 8}, blocks: 100, inputs: []int{900}, none: true},
		{name: "no seat", cfg: Config{MaxNumSeqs: 1}, blocks: 100, inputs: []int{900, 16}, none: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.MaxNumBatchedTokens, c.cfg.ChunkedPrefill = 100, true
			e, tree := newEngine(t, c.cfg, c.blocks)
			for tag, input := range c.inputs {
				enqueue(e, tree, int32(tag), input, 2)
			}
			if _, err := e.Start(0); err != nil {
				t.Fatal(err)
			}
			tag, room, ok := e.Holder()
			if ok == c.none || ok && (tag != c.tag || room != c.room) {
				t.Errorf("request %d holds up the queue, room for %d, %v; want %d, %d, %v", tag, room, ok, c.tag, c.room, !c.none)
			}
		})
	}
}

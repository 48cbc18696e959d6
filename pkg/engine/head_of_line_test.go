package engine

import "testing"

func TestHeadOfLine(t *testing.T) {
	for _, c := range []struct {
		name   string
		cfg    Config
		blocks int
		inputs []int // tags are indexes, from 0
		tag    int32
		free   int
		none   bool
	}{
		{name: "one prompt fills the step", cfg: Config{MaxNumSeqs: 8}, blocks: 100, inputs: []int{900, 16}, tag: 0,
			free: 1600 - 112},
		{name: "the first waiting request does not fit", cfg: Config{MaxNumSeqs: 8, ReserveFullSequence: true},
			blocks: 10, inputs: []int{64, 128, 16}, tag: 1, free: 160 - 64},
		{name: "no request waits", cfg: Config{MaxNumSeqs: 8}, blocks: 100, inputs: []int{900}, none: true},
		{name: "no free slot", cfg: Config{MaxNumSeqs: 1}, blocks: 100, inputs: []int{900, 16}, none: true},
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
			tag, free, ok := e.HeadOfLine()
			if ok == c.none || ok && (tag != c.tag || free != c.free) {
				t.Errorf("head of line is request %d with %d free tokens, %v; want %d, %d, %v", tag, free, ok, c.tag,
					c.free, !c.none)
			}
		})
	}
}

package gen

import (
	"math/bits"

	"blis/pkg/record"
)

// findPrompts says of each call of a model what it is sent.
func (b *planner) findPrompts() {
	known := prompts{ends: map[int32]record.Index{}, next: map[turn]int32{}}
	reached := b.reach()
	for at := range b.steps {
		step := &b.steps[at]
		if b.isTool(record.Index(at)) {
			continue
		}
		var sent []part
		if b.workflow.Steps[step.spec].ContextGrowth == accumulate {
			reached[at].each(func(of record.Index) { sent = b.happened(sent, of) })
		} else {
			for _, of := range step.reads {
				sent = b.happened(sent, of)
			}
		}
		sent = append(sent, part{step.twin, text})
		var same int
		step.extends, same = known.add(sent, record.Index(at))
		step.prompt = sent[same:]
	}
}

// happened appends what a step left behind. What calls side by side were told is
// told once.
func (b *planner) happened(list []part, of record.Index) []part {
	if b.isTool(of) {
		if b.Tools[b.workflow.Steps[b.steps[of].spec].Tool].OutputTokens == nil {
			return list
		}
		return append(list, part{of, result})
	}
	if b.steps[of].twin == of {
		list = append(list, part{of, text})
	}
	return append(list, part{of, answer})
}

// reach returns, for each step, those that it waits for, directly or not; nil if
// no call accumulates.
func (b *planner) reach() []set {
	accumulates := false
	for i := range b.workflow.Steps {
		accumulates = accumulates || b.workflow.Steps[i].ContextGrowth == accumulate
	}
	if !accumulates {
		return nil
	}
	reached := make([]set, len(b.steps))
	for at := range b.steps {
		reached[at] = make(set, at/64+1)
		for _, of := range b.steps[at].after {
			for i, word := range reached[of] {
				reached[at][i] |= word
			}
			reached[at][of/64] |= 1 << (of % 64)
		}
	}
	return reached
}

// set is a set of places, a bit each.
type set []uint64

// each calls yield with the members, in order.
func (s set) each(yield func(record.Index)) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			yield(record.Index(i*64 + bits.TrailingZeros64(word)))
		}
	}
}

// prompts are prompts as a tree whose edges are parts; its root is 0.
type prompts struct {
	next map[turn]int32
	// ends are the calls whose prompts end in a node.
	ends map[int32]record.Index
}

// turn is the way on from a node.
type turn struct {
	from int32
	part part
}

// add adds the prompt of the call at a place. It returns the call added before
// whose whole prompt is the longest that it begins with, and the number of its
// parts; Nowhere and 0 if there is none.
func (p *prompts) add(prompt []part, at record.Index) (extends record.Index, same int) {
	extends = record.Nowhere
	node := int32(0)
	for i, part := range prompt {
		on, known := p.next[turn{node, part}]
		if !known {
			on = int32(len(p.next)) + 1
			p.next[turn{node, part}] = on
		}
		node = on
		if call, ends := p.ends[node]; ends {
			extends, same = call, i+1
		}
	}
	if _, taken := p.ends[node]; !taken {
		p.ends[node] = at
	}
	return extends, same
}

package sim

import (
	"blis/pkg/kv"
	"blis/pkg/stream"
)

// mergeSegments merges segments of the prompts of a workload that only occur one after the other: the first one gets
// the tokens of all. Prompts still have the same prefixes in common, so a simulation has the same results. It is
// faster, since its cost grows with the number of segments.
func (w workload) mergeSegments() {
	t := segmentTree{numbers: map[segmentKey]int32{}, next: []int32{various}}
	var prompt []stream.Segment
	for i := range w {
		a := &w[i].Arrival
		if !a.IsSession {
			t.add(a.Request.Prompt, len(a.Request.Prompt))
			continue
		}
		for k := range a.Session.Steps {
			prompt = a.Session.AppendPrompt(prompt[:0], k)
			t.add(prompt, len(a.Session.Steps[k].Prompt))
		}
	}
	for i := range w {
		a := &w[i].Arrival
		if !a.IsSession {
			a.Request.Prompt = t.merge(a.Request.Prompt)
			continue
		}
		for k := range a.Session.Steps {
			a.Session.Steps[k].Prompt = t.merge(a.Session.Steps[k].Prompt)
		}
	}
}

// segmentTree has the segments of all prompts, numbered from 1 by their ids and by the segments before them, as in a
// kv.Tree. Segment 0 is before the first ones.
type segmentTree struct {
	numbers map[segmentKey]int32
	// next has, for each segment, the one that follows it wherever one does, unknown or various.
	next []int32
	// added are the segments of the prompts in the order in which they were added.
	added []int32
}

type segmentKey struct {
	before int32
	start  int64
	id     string
}

const (
	unknown int32 = -1
	various int32 = -2
)

// add adds a prompt. Only its last own segments will be merged; the others are in the record of another prompt.
func (t *segmentTree) add(prompt []stream.Segment, own int) {
	at, start := int32(0), int64(0)
	for i := range prompt {
		p := &prompt[i]
		s := t.number(segmentKey{at, start, p.ID})
		if t.next[at] == unknown {
			t.next[at] = s
		}
		alone := p.Media != "" || kv.IsOutput(p.ID) // it has an encoder or a writer
		if t.next[at] != s || alone || i == len(prompt)-own {
			t.next[at] = various
		}
		if alone {
			t.next[s] = various
		}
		if i >= len(prompt)-own {
			t.added = append(t.added, s)
		}
		at, start = s, start+p.Tokens
	}
	t.next[at] = various // this prompt may have more tokens of its last segment than others
}

// number returns the number of a segment.
func (t *segmentTree) number(key segmentKey) int32 {
	n, known := t.numbers[key]
	if !known {
		n = int32(len(t.next))
		t.numbers[key], t.next = n, append(t.next, unknown)
	}
	return n
}

// merge merges segments of a prompt. Prompts come in the order in which they were added.
func (t *segmentTree) merge(prompt []stream.Segment) []stream.Segment {
	merged := prompt[:0]
	for i, p := range prompt {
		if i > 0 && t.next[t.added[i-1]] == t.added[i] {
			merged[len(merged)-1].Tokens += p.Tokens
		} else {
			merged = append(merged, p)
		}
	}
	t.added = t.added[len(prompt):]
	return merged
}

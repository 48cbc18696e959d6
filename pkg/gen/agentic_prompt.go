package gen

import (
	"math/bits"
	"slices"

	"blis/pkg/stream"
)

// planPrompts sets the prompt of each model call.
func (b *planner) planPrompts() {
	ancestors := b.ancestors()
	for at := range b.steps {
		step := &b.steps[at]
		switch {
		case b.isTool(stream.Index(at)):
			continue
		case int(step.firstCopy) != at:
			step.extends = step.firstCopy
			continue
		case b.accumulates(at):
			step.extends = b.extendedCall(ancestors, at)
			if !step.extends.IsZero() {
				step.prompt = append(step.prompt, promptPart{step: step.extends, isOutput: true})
			}
			for of := range ancestors[at].members {
				if of > step.extends {
					step.prompt = b.appendHistory(step.prompt, of)
				}
			}
		default:
			step.prompt = b.independentPrompt(at)
		}
		step.prompt = append(step.prompt, promptPart{step: step.firstCopy})
	}
}

func (b *planner) accumulates(at int) bool {
	return b.workflow.Steps[b.steps[at].spec].ContextGrowth == accumulate
}

// independentPrompt returns the history of a call that does not accumulate: the tool results that
// it reads.
func (b *planner) independentPrompt(at int) (list []promptPart) {
	for _, of := range b.steps[at].toolResults {
		list = b.appendHistory(list, of)
	}
	return list
}

// appendHistory appends what a step contributes to later prompts. The shared text of parallel calls
// is included once.
func (b *planner) appendHistory(list []promptPart, of stream.Index) []promptPart {
	step := &b.steps[of]
	spec := &b.workflow.Steps[step.spec]
	switch {
	case spec.isTool() && b.Tools[spec.Tool].OutputTokens == nil:
		return list
	case !spec.isTool() && step.firstCopy == of:
		list = append(list, promptPart{step: of})
	}
	return append(list, promptPart{step: of, isOutput: true})
}

// extendedCall returns the last ancestor of a call whose whole prompt the call's own begins with,
// or NoIndex.
func (b *planner) extendedCall(ancestors []bitset, at int) stream.Index {
	for _, of := range slices.Backward(slices.Collect(ancestors[at].members)) {
		if !b.isTool(of) && b.steps[of].firstCopy == of && b.beginsPrompt(ancestors, int(of), at) {
			return of
		}
	}
	return stream.NoIndex
}

// beginsPrompt reports whether the prompt of an earlier call is the beginning of the prompt of the
// call at an index, which accumulates.
func (b *planner) beginsPrompt(ancestors []bitset, earlier, at int) bool {
	if b.accumulates(earlier) {
		return ancestors[earlier].equalBelow(ancestors[at], earlier)
	}
	var begin []promptPart
	want := b.independentPrompt(earlier)
	for of := range ancestors[at].members {
		if int(of) >= earlier || len(begin) > len(want) {
			break
		}
		begin = b.appendHistory(begin, of)
	}
	return slices.Equal(begin, want)
}

// ancestors returns for each step all steps that it waits for, directly or not; nil if no call
// accumulates.
func (b *planner) ancestors() []bitset {
	if !slices.ContainsFunc(b.workflow.Steps, func(s AgenticStep) bool { return s.ContextGrowth == accumulate }) {
		return nil
	}
	ancestors := make([]bitset, len(b.steps))
	for at := range b.steps {
		ancestors[at] = make(bitset, at/64+1)
		for _, of := range b.steps[at].after {
			for i, word := range ancestors[of] {
				ancestors[at][i] |= word
			}
			ancestors[at][of/64] |= 1 << (of % 64)
		}
	}
	return ancestors
}

// bitset is a set of step indices.
type bitset []uint64

// members yields the members in ascending order.
func (s bitset) members(yield func(stream.Index) bool) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			if !yield(stream.Index(i*64 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

// equalBelow reports whether s, all of whose members are below place, equals the members of other
// that are below place.
func (s bitset) equalBelow(other bitset, place int) bool {
	last := place / 64
	return slices.Equal(s[:last], other[:last]) && s[last] == other[last]&(1<<(place%64)-1)
}

package gen

import (
	"math/bits"
	"slices"

	"blis/pkg/stream"
)

// findPrompts says of each call of a model what it is sent.
func (b *planner) findPrompts() {
	reached := b.reach()
	for at := range b.steps {
		step := &b.steps[at]
		switch {
		case b.isTool(stream.Index(at)):
			continue
		case int(step.twin) != at:
			step.extends = step.twin
			continue
		case b.accumulates(at):
			step.extends = b.goesOnFrom(reached, at)
			if !step.extends.IsZero() {
				step.prompt = append(step.prompt, part{step.extends, answer})
			}
			for of := range reached[at].members {
				if of > step.extends {
					step.prompt = b.happened(step.prompt, of)
				}
			}
		default:
			step.prompt = b.told(at)
		}
		step.prompt = append(step.prompt, part{step.twin, text})
	}
}

func (b *planner) accumulates(at int) bool {
	return b.workflow.Steps[b.steps[at].spec].ContextGrowth == accumulate
}

// told is what a call that does not accumulate is told before its own text.
func (b *planner) told(at int) (list []part) {
	for _, of := range b.steps[at].reads {
		list = b.happened(list, of)
	}
	return list
}

// happened appends what a step left behind. What calls side by side were told is
// told once.
func (b *planner) happened(list []part, of stream.Index) []part {
	step := &b.steps[of]
	if spec := &b.workflow.Steps[step.spec]; spec.isTool() {
		if b.Tools[spec.Tool].OutputTokens == nil {
			return list
		}
		return append(list, part{of, result})
	}
	if step.twin == of {
		list = append(list, part{of, text})
	}
	return append(list, part{of, answer})
}

// goesOnFrom is the last call that the one at a place waits for, and whose whole
// prompt its own begins with; Nowhere if there is none.
func (b *planner) goesOnFrom(reached []set, at int) stream.Index {
	for _, of := range slices.Backward(slices.Collect(reached[at].members)) {
		if !b.isTool(of) && b.steps[of].twin == of && b.begins(reached, int(of), at) {
			return of
		}
	}
	return stream.Nowhere
}

// begins reports whether what an earlier call was told is what the one at a place,
// which accumulates, is told first.
func (b *planner) begins(reached []set, earlier, at int) bool {
	if b.accumulates(earlier) {
		return reached[earlier].equalBelow(reached[at], earlier)
	}
	var first []part
	want := b.told(earlier)
	for of := range reached[at].members {
		if int(of) >= earlier || len(first) > len(want) {
			break
		}
		first = b.happened(first, of)
	}
	return slices.Equal(first, want)
}

// reach returns, for each step, those that it waits for, directly or not; nil if
// no call accumulates.
func (b *planner) reach() []set {
	if !slices.ContainsFunc(b.workflow.Steps, func(s AgenticStep) bool { return s.ContextGrowth == accumulate }) {
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

// members yields the members in order.
func (s set) members(yield func(stream.Index) bool) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			if !yield(stream.Index(i*64 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

// equalBelow reports whether s, all of whose members are below a place, has those
// of another that are.
func (s set) equalBelow(other set, place int) bool {
	last := place / 64
	return slices.Equal(s[:last], other[:last]) && s[last] == other[last]&(1<<(place%64)-1)
}

package policy

import (
	"fmt"
	"slices"
)

// Unused is a part of a bundle that has no effect, and the reason.
type Unused struct{ Path, Reason string }

// markUnused records that a parameter of the policy being built has no effect, unless it has its
// default.
func (b *builder) markUnused(v values, p Param, reason string) {
	if v[p.Name] != p.Default {
		b.unused = append(b.unused, Unused{b.path + ".params." + p.Name, reason})
	}
}

// markUnusedTables reports the tables with these names that are not empty, if they are unused.
func (b *builder) markUnusedTables(v values, unused bool, reason string, names ...string) {
	for _, name := range names {
		if unused && len(v.table(name)) > 0 {
			b.unused = append(b.unused, Unused{b.path + ".params." + name, reason})
		}
	}
}

// markUnusedNamed does the same for parameters with these names.
func (b *builder) markUnusedNamed(v values, params []Param, reason string, names ...string) {
	for _, p := range params {
		if slices.Contains(names, p.Name) {
			b.markUnused(v, p, reason)
		}
	}
}

// unusedHints returns priorities and hints that no policy reads, and a scheduler that only reads
// constant priorities. It does not know about flow control in priority order: callers that use it
// must ignore PriorityPath.
func (p *Plane) unusedHints(b *Bundle, x *builder) (all []Unused) {
	readers := p.Routing.Needs() | p.Scheduler.Needs() | p.Preemption.Needs()
	if !IsConstant(p.Priority) && readers&NeedPriority == 0 && len(x.hintsRead) == 0 {
		all = append(all,
			Unused{PriorityPath, "no routing, scheduler, preemption or order of flow control reads priorities"})
	}
	if IsConstant(p.Priority) {
		switch p.Scheduler.(type) {
		case priorityFCFS, reversePriority:
			all = append(all, Unused{"scheduler", "every request has priority 0; set another priority policy"})
		}
	}
	for _, hint := range sortedKeys(b.Priority.Hints) {
		if !x.hintsRead[hint] {
			all = append(all,
				Unused{PriorityPath + ".hints." + hint, fmt.Sprintf("no scheduler or preemption reads hint.%s", hint)})
		}
	}
	return all
}

// PriorityPath is the path of the priority policy in a bundle.
const PriorityPath = "priority"

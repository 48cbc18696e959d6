package policy

import "fmt"

// Idle is a part of a bundle that has no effect, and why.
type Idle struct{ Path, Why string }

// idle notes that a parameter of the policy that is being built has no effect,
// if it is not the default.
func (b *builder) idle(v values, p Param, why string) {
	if v[p.Name] != p.Default {
		b.idles = append(b.idles, Idle{b.path + ".params." + p.Name, why})
	}
}

// unread finds priorities and hints that nobody reads. Flow control in the order
// of priorities is not known here: who has it must overlook the path priority.
func (p *Plane) unread(b *Bundle, x *builder) (all []Idle) {
	readers := p.Routing.Needs() | p.Scheduler.Needs() | p.Preemption.Needs()
	if !IsConstant(p.Priority) && readers&NeedPriority == 0 && len(x.read) == 0 {
		all = append(all, Idle{PriorityPath, "no routing, scheduler, preemption or order of flow control reads priorities"})
	}
	for _, hint := range sortedKeys(b.Priority.Hints) {
		if !x.read[hint] {
			all = append(all, Idle{PriorityPath + ".hints." + hint, fmt.Sprintf("no scheduler or preemption reads hint.%s", hint)})
		}
	}
	return all
}

// PriorityPath is where a bundle has its priority policy.
const PriorityPath = "priority"

package policy

import "strconv"

// At returns the policy at a path, in parts ("routing", "use"; "admission", "of",
// "0"; "priority", "root", "then", "use"), nil if there is none.
func (b *Bundle) At(path []string) *Spec {
	if len(path) == 0 {
		return nil
	}
	var s *Spec
	switch path[0] {
	case "admission":
		s = &b.Admission
	case "priority":
		s = &b.Priority
	case "routing":
		s = &b.Routing
	case "scheduler":
		s = &b.Scheduler
	case "preemption":
		s = &b.Preemption
	}
	return s.at(path[1:])
}

func (s *Spec) at(path []string) *Spec {
	switch {
	case s == nil || len(path) == 0:
		return s
	case path[0] == "use":
		return s.Use.at(path[1:])
	case path[0] == "root":
		return s.Root.at(path[1:])
	case path[0] == "of" && len(path) > 1:
		if i, err := strconv.Atoi(path[1]); err == nil && 0 <= i && i < len(s.Of) {
			return s.Of[i].at(path[2:])
		}
	}
	return nil
}

func (n *Node) at(path []string) *Spec {
	switch {
	case n == nil || len(path) == 0:
		return nil
	case path[0] == "then":
		return n.Then.at(path[1:])
	case path[0] == "else":
		return n.Else.at(path[1:])
	case path[0] == "use":
		return n.Use.at(path[1:])
	}
	return nil
}

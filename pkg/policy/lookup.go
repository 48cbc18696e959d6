package policy

import "strconv"

// Lookup returns the policy at a path given in parts, nil if there is none. Examples: "routing",
// "use"; "admission", "of", "0"; "priority", "root", "then", "use".
func (b *Bundle) Lookup(path []string) *Spec {
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
	return s.lookup(path[1:])
}

func (s *Spec) lookup(path []string) *Spec {
	switch {
	case s == nil || len(path) == 0:
		return s
	case path[0] == "use":
		return s.Use.lookup(path[1:])
	case path[0] == "root":
		return s.Root.lookup(path[1:])
	case path[0] == "of" && len(path) > 1:
		if i, err := strconv.Atoi(path[1]); err == nil && 0 <= i && i < len(s.Of) {
			return s.Of[i].lookup(path[2:])
		}
	}
	return nil
}

func (n *Node) lookup(path []string) *Spec {
	switch {
	case n == nil || len(path) == 0:
		return nil
	case path[0] == "then":
		return n.Then.lookup(path[1:])
	case path[0] == "else":
		return n.Else.lookup(path[1:])
	case path[0] == "use":
		return n.Use.lookup(path[1:])
	}
	return nil
}

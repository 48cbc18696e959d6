package calibrate

// warnNewPrompts says, of each run fitted to in which prompts repeat, what tells beta[1]:
// only the first time that a prompt comes is it computed, and these requests may be held
// back or left out, as where the server stalled.
func (s *setup) warnNewPrompts(runs []*run) {
	for _, r := range runs {
		if r.period == 0 {
			continue
		}
		fitted, n := 0, min(r.period, len(r.requests))
		for _, used := range r.used[:n] {
			if used {
				fitted++
			}
		}
		switch fitted {
		case n:
			s.warnf("%s: beta[1] is known from the first %d requests alone, whose prompts are new", r.name, n)
		case 0:
			s.warnf("%s: none of the first %d requests, whose prompts are new, is fitted to: beta[1] is told by what little of the others' prompts is not cached, and by the prior; do not trust it for prompts that are new", r.name, n)
		default:
			s.warnf("%s: beta[1] is known from %d requests alone: the prompts of the first %d are new, and the rest of these are not fitted to", r.name, fitted, n)
		}
	}
}

package policy

var settlingParams = []Param{
	{Name: "settle", Kind: Flag, Default: false, Doc: "no change while replicas start or drain"},
	{Name: "cancel_starting", Kind: Flag, Default: false,
		Doc: "with settle, removals count from those that serve, and remove those that start if two looks agree"},
}

// settling holds back recommendations while replicas start or drain.
//
// With cancel, replicas that start are never reason to add others, but a recommendation of no more replicas than
// serve removes them if the look before had the same one, with as many replicas. So does Dynamo's planner
// (planner/plugins/orchestrator/engine_adapter.py, _project_startup_scale_down, of ai-dynamo 1.6.1).
type settling struct {
	settle, cancel bool
	removal        removal // of the last look, zero if there was none
}

// removal is a recommendation to remove replicas that start.
type removal struct{ replicas, ready, starting int }

func newSettling(b *builder, v values) settling {
	s := settling{settle: v.flag("settle"), cancel: v.flag("cancel_starting")}
	if !s.settle {
		b.markUnusedNamed(v, settlingParams, "settle is false", "cancel_starting")
	}
	return s
}

// base is the number of replicas that a recommendation counts from.
func (s *settling) base(f *Fleet) int {
	if s.settle && s.cancel {
		return len(f.Replicas)
	}
	return f.Current()
}

// waits reports whether any recommendation has to wait.
func (s *settling) waits(f *Fleet) bool {
	return s.settle && (f.Draining > 0 || !s.cancel && f.starting() > 0)
}

// settled is a recommendation that need not wait, or to stay where replicas that start forbid it.
func (s *settling) settled(f *Fleet, r Recommendation) Recommendation {
	if !s.settle || f.starting() == 0 {
		s.removal = removal{}
		return r
	}
	if r.Replicas = max(r.Replicas, f.Min); r.Replicas > len(f.Replicas) {
		return s.hold(f, whySettling)
	}
	last := s.removal
	if s.removal = (removal{r.Replicas, len(f.Replicas), f.starting()}); s.removal != last {
		return stay(f, "replicas start, removed if the next look agrees")
	}
	return r
}

// whySettling is the reason of a recommendation to wait.
const whySettling = "replicas start or drain"

// hold stays and forgets the removal of the last look.
func (s *settling) hold(f *Fleet, why string) Recommendation {
	s.removal = removal{}
	return stay(f, why)
}

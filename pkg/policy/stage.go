package policy

// Stage returns the policy of the stage with this name in files, nil if there is
// none.
func (b *Bundle) Stage(name string) *Spec {
	switch name {
	case "admission":
		return &b.Admission
	case "priority":
		return &b.Priority
	case "routing":
		return &b.Routing
	case "prefill_routing":
		if b.PrefillRouting == nil {
			b.PrefillRouting = &Spec{}
		}
		return b.PrefillRouting
	case "scheduler":
		return &b.Scheduler
	case "preemption":
		return &b.Preemption
	}
	return nil
}

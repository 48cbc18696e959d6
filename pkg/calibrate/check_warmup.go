package calibrate

// checkWarmup finds held-out data that begin with a stall.
func checkWarmup(r *report) {
	for _, h := range r.holdouts {
		if h.simulated == nil {
			continue
		}
		if s := h.run.findStall(h.simulated, h.selected); s.requests > 0 {
			r.setup.warnf("%s; no model predicts that, and the errors include these seconds", s.text(h.name))
		}
	}
}

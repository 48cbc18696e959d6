package stream

// Arrival is one record of a workload: a session if IsSession, else a request.
// The unused one keeps its memory for reuse.
type Arrival struct {
	IsSession bool
	Request   Request
	Session   Session
}

// At points to the arrival time.
func (a *Arrival) At() *Micros {
	if a.IsSession {
		return &a.Session.ArrivalUS
	}
	return &a.Request.ArrivalUS
}

// ID points to the id of the request or session.
func (a *Arrival) ID() *string {
	if a.IsSession {
		return &a.Session.ID
	}
	return &a.Request.ID
}

// Arrival decodes the current record, a request or session, into a and checks
// it, as Request does.
func (r *Reader) Arrival(a *Arrival) error {
	if a.IsSession = r.kind == KindSession; a.IsSession {
		return r.Session(&a.Session)
	}
	return r.Request(&a.Request)
}

// Arrival writes the request or session of a.
func (w *Writer) Arrival(a *Arrival) error {
	if a.IsSession {
		return w.Session(&a.Session)
	}
	return w.Request(&a.Request)
}

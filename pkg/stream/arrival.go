package stream

// Arrival is one record of a workload: a session where IsSession, else a
// request. The other of the two is memory to be used again.
type Arrival struct {
	IsSession bool
	Request   Request
	Session   Session
}

// At is when it arrives.
func (a *Arrival) At() *Micros {
	if a.IsSession {
		return &a.Session.ArrivalUS
	}
	return &a.Request.ArrivalUS
}

// ID names it in its stream.
func (a *Arrival) ID() *string {
	if a.IsSession {
		return &a.Session.ID
	}
	return &a.Request.ID
}

// Arrival decodes the record at hand, of kind request or session, into a and
// checks it, as Request does.
func (r *Reader) Arrival(a *Arrival) error {
	if a.IsSession = r.kind == KindSession; a.IsSession {
		return r.Session(&a.Session)
	}
	return r.Request(&a.Request)
}

// Arrival writes a.
func (w *Writer) Arrival(a *Arrival) error {
	if a.IsSession {
		return w.Session(&a.Session)
	}
	return w.Request(&a.Request)
}

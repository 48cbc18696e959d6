package sim

// brokenRetries are rules of clients that retry.
var brokenRetries = []rule{
	{"each attempt has as much time as the first", "sim/retries.go",
		"in.DeadlineUS = in.ArrivalUS + t", "in.DeadlineUS = in.ArrivalUS + 2*t"},
	{"the time to a retry counts from the end of the attempt", "sim/retries.go",
		"at = s.now + us", "at = des.Time(r.out.ArrivalUS) + us"},
	{"no retry comes after the horizon", "sim/retries.go", "ok && at <= min(s.horizon, maxClock)", "ok"},
	{"a retry has the prompt of the first attempt", "sim/slots.go",
		"if (again || in.Retry != nil) && unique > 0 {", "if again && unique > 0 {"},
	{"what no replica can serve is not sent again", "stream/retry.go",
		"case ReasonNoDeployment, ReasonTooLongForModel, ", "case ReasonNoDeployment, "},
	{"only some states are retried", "stream/retry.go", " || !slices.Contains(r.On, state)", ""},
	{"a retry is not offered", "sim/stages.go",
		"\tif r.attempt() == 0 {\n\t\ts.counts.Offered++", "\tif r.attempt() >= 0 {\n\t\ts.counts.Offered++"},
	{"a session waits for the last attempt", "sim/retries.go", "q.sessionSlot, q.step = r.sessionSlot, r.step",
		"q.step = r.step"},
	{"time counts from the first attempt", "sim/retries.go", "int64(in.ArrivalUS-o.Began())",
		"int64(in.ArrivalUS-o.ArrivalUS)"},
}

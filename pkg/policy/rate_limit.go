package policy

import "slices"

var rateLimitParams = []Param{
	{Name: "limit", Kind: Number, Whole: true, Unit: "requests", Min: 0, Max: 1e6, Search: [2]float64{1, 1000}, Default: 100.0, Doc: "the most that are admitted in a window"},
	{Name: "window_s", Kind: Number, Unit: "s", Min: 1e-6, Max: 86400, Search: [2]float64{0.1, 60}, Default: 1.0, Doc: "how long a window is"},
	{Name: "key", Kind: Choose, Choices: []string{"tenant", "class", "all"}, Default: "all", Doc: "what has a window of its own"},
	{Name: "action", Kind: Choose, Choices: []string{"reject", "delay"}, Default: "reject", Doc: "what happens above the limit"},
	delayParam,
}

// rateLimit counts what it admitted in the window that ends now.
type rateLimit struct {
	reads
	limit    int
	windowUS int64
	key      string
	over     Verdict
	windows  [][]int64 // times of admission, oldest first, by tenant or class
	classes  []string  // in the order in which they were seen
}

func newRateLimit(b *builder, s *Spec) Admitter {
	v := b.params(s, rateLimitParams)
	l := &rateLimit{limit: int(v.number("limit")), windowUS: max(1, int64(v.number("window_s")*1e6)), key: v.choice("key"), over: Verdict{Action: Reject}}
	if v.choice("action") == "delay" {
		l.over = b.delay(v)
	} else {
		b.idle(v, delayParam, "the action is reject")
	}
	switch l.key {
	case "tenant":
		l.reads = reads(NeedTenant | NeedRequest)
	case "class":
		l.reads = reads(NeedRequest)
	}
	return l
}

func (l *rateLimit) Admit(v *View) Verdict {
	i := l.index(v)
	for i >= len(l.windows) {
		l.windows = append(l.windows, nil)
	}
	w := l.windows[i]
	gone := 0
	for gone < len(w) && w[gone] <= v.NowUS-l.windowUS {
		gone++
	}
	w = slices.Delete(w, 0, gone)
	d := below("admitted in the window", float64(len(w)), float64(l.limit))
	if d.Action == Admit {
		w = append(w, v.NowUS)
	} else {
		d.Action, d.DelayUS = l.over.Action, l.over.DelayUS
	}
	l.windows[i] = w
	return d
}

// index numbers the window of a request.
func (l *rateLimit) index(v *View) int {
	switch l.key {
	case "tenant":
		return int(v.Request.TenantID)
	case "class":
		i := slices.Index(l.classes, v.Request.Class)
		if i < 0 {
			i = len(l.classes)
			l.classes = append(l.classes, v.Request.Class)
		}
		return i
	}
	return 0
}

func (l *rateLimit) Clone() Admitter {
	c := *l
	c.windows = make([][]int64, len(l.windows))
	for i := range l.windows {
		c.windows[i] = slices.Clone(l.windows[i])
	}
	c.classes = slices.Clone(l.classes)
	return &c
}

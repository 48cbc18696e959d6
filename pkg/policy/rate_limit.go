package policy

import "slices"

var rateLimitParams = []Param{
	{Name: "limit", Kind: Number, Whole: true, Unit: "requests", Min: 0, Max: 1e6, Search: [2]float64{1, 1000},
		Default: 100.0, Doc: "maximum admissions per window"},
	{Name: "window_s", Kind: Number, Unit: "s", Min: 1e-6, Max: 86400, Search: [2]float64{0.1, 60}, Default: 1.0,
		Doc: "length of the window"},
	{Name: "key", Kind: Choose, Choices: []string{"tenant", "class", "all"}, Default: "all",
		Doc: "what each window counts"},
	{Name: "action", Kind: Choose, Choices: []string{"reject", "delay"}, Default: "reject",
		Doc: "what happens to requests above the limit"},
	delayParam,
}

// rateLimit counts admissions in the window that ends now.
type rateLimit struct {
	needs
	limit     int
	windowUS  int64
	key       string
	overLimit Verdict
	windows   [][]int64 // admission times, oldest first, by tenant or class
	classes   []string  // in order of appearance
}

func newRateLimit(b *builder, s *Spec) Admitter {
	v := b.params(s, rateLimitParams)
	l := &rateLimit{limit: int(v.number("limit")), windowUS: max(1, int64(v.number("window_s")*1e6)),
		key: v.choice("key"), overLimit: Verdict{Action: Reject}}
	if v.choice("action") == "delay" {
		l.overLimit = b.delay(v)
	} else {
		b.markUnused(v, delayParam, "the action is reject")
	}
	switch l.key {
	case "tenant":
		l.needs = needs(NeedTenant | NeedRequest)
	case "class":
		l.needs = needs(NeedRequest)
	}
	return l
}

func (l *rateLimit) Admit(v *View) Verdict {
	i := l.index(v)
	for i >= len(l.windows) {
		l.windows = append(l.windows, nil)
	}
	w := l.windows[i]
	expired := 0
	for expired < len(w) && w[expired] <= v.NowUS-l.windowUS {
		expired++
	}
	w = slices.Delete(w, 0, expired)
	d := admitBelow("admitted in the window", float64(len(w)), float64(l.limit))
	if d.Action == Admit {
		w = append(w, v.NowUS)
	} else {
		d.Action, d.DelayUS = l.overLimit.Action, l.overLimit.DelayUS
	}
	l.windows[i] = w
	return d
}

// index returns the window of a request.
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

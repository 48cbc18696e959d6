package policy

import "slices"

var rateLimitParams = []Param{
	{Name: "limit", Kind: Number, Whole: true, Unit: "requests", Min: 0, Max: 1e6, Search: [2]float64{1, 1000},
		Default: 100.0, Doc: "maximum admissions per window"},
	{Name: "window_s", Kind: Number, Unit: "s", Min: 1e-6, Max: 86400, Search: [2]float64{0.1, 60}, Default: 1.0,
		Doc: "length of the window"},
	{Name: "key", Kind: Choose, Choices: []string{"tenant", "class", "all"}, Default: "all",
		Doc: "what each window counts"},
	{Name: "limits", Kind: Table, Unit: "requests", Keys: "tenant or SLO class, as key says", Whole: true,
		Min: 0, Max: 1e6, Search: [2]float64{1, 1000}, Default: map[string]float64{},
		Doc: "limit of single tenants or classes; others have the parameter limit"},
	{Name: "action", Kind: Choose, Choices: []string{"reject", "delay"}, Default: "reject",
		Doc: "what happens to requests above the limit"},
	delayParam,
}

// rateLimit counts admissions in the window that ends now.
type rateLimit struct {
	needs
	limit     float64
	limits    map[string]float64 // of single tenants or classes
	windowUS  int64
	key       string
	overLimit Verdict
	windows   [][]int64 // admission times, oldest first, by tenant or class
	classes   []string  // in order of appearance
}

func newRateLimit(b *builder, s *Spec) Admitter {
	v := b.params(s, rateLimitParams)
	l := &rateLimit{limit: v.number("limit"), limits: v.table("limits"), key: v.choice("key"),
		windowUS: max(1, int64(v.number("window_s")*1e6)), overLimit: Verdict{Action: Reject}}
	if v.choice("action") == "delay" {
		l.overLimit = b.delay(v)
	} else {
		b.markUnused(v, delayParam, "the action is reject")
	}
	b.markUnusedTables(v, l.key == "all", "one window counts all requests; set key", "limits")
	switch l.key {
	case "tenant":
		b.tenants = append(b.tenants, sortedKeys(l.limits)...)
		l.needs = needs(NeedTenant | NeedRequest)
	case "class":
		b.classes = append(b.classes, sortedKeys(l.limits)...)
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
	d := admitBelow("admitted in the window", float64(len(w)), l.limitOf(v))
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

// limitOf is the limit of the window of a request.
func (l *rateLimit) limitOf(v *View) float64 {
	switch l.key {
	case "tenant":
		return limitOf(l.limits, v.Request.Tenant, l.limit)
	case "class":
		return limitOf(l.limits, v.Request.Class, l.limit)
	}
	return l.limit
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

package policy

var attainmentParams = []Param{
	{Name: "target", Kind: Number, Min: 0, Max: 1, Search: [2]float64{0.8, 0.999}, Default: 0.95,
		Doc: "share of the requests that meet their SLO targets below which replicas are added"},
	{Name: "targets", Kind: Table, Keys: "SLO class", Min: 0, Max: 1, Default: map[string]float64{},
		Doc: "shares of single classes instead of that of all"},
	{Name: "window_s", Kind: Number, Unit: "s", Min: 1, Max: 3600, Search: [2]float64{10, 300}, Default: 60.0,
		Doc: "time over which requests that have ended count"},
	{Name: "step", Kind: Number, Whole: true, Unit: "replicas", Min: 1, Max: 1e4, Search: [2]float64{1, 8},
		Default: 1.0, Doc: "replicas added or removed at once"},
	{Name: "down", Kind: Number, Min: 0, Max: 1, Search: [2]float64{0.05, 0.6}, Default: 0.3,
		Doc: "share of the batch slots in use below which replicas are removed while all targets are met"},
}

// attainment adds step replicas while a class misses its target, and removes as many while none does and few batch
// slots are in use.
type attainment struct {
	needs
	classes  []string // "" is all
	targets  []float64
	windowUS int64
	step     int
	down     float64
}

func newAttainment(b *builder, s *Spec) Autoscaler {
	v := b.params(s, attainmentParams)
	a := &attainment{needs: needs(needTraffic | NeedRunning), windowUS: int64(v.number("window_s") * 1e6),
		step: int(v.number("step")), down: v.number("down")}
	b.trafficUS = max(b.trafficUS, a.windowUS)
	targets := v.table("targets")
	a.classes = sortedKeys(targets)
	b.classes = append(b.classes, a.classes...)
	for _, class := range a.classes {
		a.targets = append(a.targets, targets[class])
	}
	if len(targets) == 0 {
		a.classes, a.targets = []string{""}, []float64{v.number("target")}
	} else {
		b.markUnusedNamed(v, attainmentParams, "targets names the classes", "target")
	}
	return a
}

func (a *attainment) Recommend(f *Fleet) Recommendation {
	n := f.Current()
	for i, class := range a.classes {
		if share, ended := f.Traffic.attainment(class, f.NowUS, a.windowUS); ended > 0 && share < a.targets[i] {
			return Recommendation{n + a.step, Reason{attainedBy(class), share, "<", a.targets[i]}}
		}
	}
	if len(f.Replicas) == 0 {
		return stay(f, "no replica serves")
	}
	used := f.mean(slotsInUse)
	if used < a.down {
		return Recommendation{n - a.step, Reason{"targets met, mean utilization", used, "<", a.down}}
	}
	return Recommendation{n, Reason{"targets met, mean utilization", used, ">=", a.down}}
}

// attainedBy names the attainment of a class.
func attainedBy(class string) string {
	if class == "" {
		return "attainment"
	}
	return "attainment of " + class
}

func (a *attainment) Clone() Autoscaler { c := *a; return &c }

var oscillatorParams = []Param{
	{Name: "step", Kind: Number, Whole: true, Unit: "replicas", Min: 1, Max: 1e4, Search: [2]float64{1, 8},
		Default: 1.0, Doc: "replicas added and removed in turn"},
}

// oscillator adds and removes replicas in turn.
type oscillator struct {
	noNeeds
	step int
	down bool
}

func newOscillator(b *builder, s *Spec) Autoscaler {
	return &oscillator{step: int(b.params(s, oscillatorParams).number("step"))}
}

func (o *oscillator) Recommend(f *Fleet) Recommendation {
	step := o.step
	if o.down {
		step = -step
	}
	o.down = !o.down
	return Recommendation{f.Current() + step, Reason{Quantity: "in turn"}}
}

func (o *oscillator) Clone() Autoscaler { c := *o; return &c }

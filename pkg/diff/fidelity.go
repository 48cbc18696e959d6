package diff

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"blis/pkg/metrics"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// Fidelity says how close a simulation comes to what was recorded. Of two
// recordings the second stands in the place of the simulation.
type Fidelity struct {
	// Measured and Simulated are which side is which, a or b.
	Measured  string `json:"measured"`
	Simulated string `json:"simulated"`
	// Pairing is how requests are paired: by id, by order (of arrival), none.
	Pairing string `json:"pairing"`
	// Whole is of all requests, Stages of the parts of the time that the recording
	// names, Classes of the SLO classes.
	Whole   Judged   `json:"whole"`
	Stages  []Judged `json:"stages,omitempty"`
	Classes []Judged `json:"classes,omitempty"`
}

// Judged is a part of the requests, of which each side completed so many.
type Judged struct {
	Name      string `json:"name,omitempty"`
	Measured  int64  `json:"measured"`
	Simulated int64  `json:"simulated"`
	// RPS is the throughput; of stages it is absent.
	RPS *Deviation `json:"throughput_rps,omitempty"`
	// Times are TTFT, TPOT, ITL, E2E and queue, as far as both sides have them.
	Times []Fit `json:"times"`
}

// Fit is how well one time is met, in ms. TPOT is (E2E − TTFT)/(output tokens − 1).
type Fit struct {
	Metric string    `json:"metric"`
	Mean   Deviation `json:"mean"`
	P50    Deviation `json:"p50"`
	P90    Deviation `json:"p90"`
	P95    Deviation `json:"p95"`
	P99    Deviation `json:"p99"`
	// KS is the distance of Kolmogorov and Smirnov of the two distributions; absent of
	// ITL, which is pooled.
	KS *float64 `json:"ks,omitempty"`
	// Each is about single requests; absent where they are not paired.
	Each *Each `json:"each,omitempty"`
}

// Deviation is a number of both sides, and by how many % the simulated one is above the
// measured one. Lo to Hi is the interval of simulated − measured, where there is one.
type Deviation struct {
	Measured  float64  `json:"measured"`
	Simulated float64  `json:"simulated"`
	Percent   *float64 `json:"percent,omitempty"`
	Lo        *float64 `json:"lo,omitempty"`
	Hi        *float64 `json:"hi,omitempty"`
}

// Each is about the errors of the Requests that have a time on both sides: BiasMS is
// the mean of simulated − measured, MAPE the mean of its size over the measured one,
// in %, Pearson the correlation of the two.
type Each struct {
	Requests int64    `json:"requests"`
	BiasMS   float64  `json:"bias_ms"`
	MAPE     *float64 `json:"mape_percent,omitempty"`
	Pearson  *float64 `json:"pearson,omitempty"`
}

// judge compares a simulation with a recording.
type judge struct {
	*comparison
	measured, simulated *side
	// sign is −1 where the differences of metrics are measured − simulated.
	sign    float64
	metrics Metrics
	paired  bool
}

// fidelity is nil where there is no recording.
func (c *comparison) fidelity(pairing string, m Metrics) *Fidelity {
	if c.areRuns() {
		return nil
	}
	a, b := c.sides[0], c.sides[1]
	j := &judge{c, a, b, 1, m, pairing != byNone}
	f := &Fidelity{Measured: "a", Simulated: "b", Pairing: pairing}
	if a.recorded == nil {
		j.measured, j.simulated, j.sign = b, a, -1
		f.Measured, f.Simulated = "b", "a"
	}
	f.Whole = j.part("", "", func(int32, *request) bool { return true })
	f.Whole.RPS = j.throughput(&j.measured.raw.Group, &j.simulated.raw.Group)
	if x, y := j.measured.raw.ITL, j.simulated.raw.ITL; x != nil && y != nil {
		itl := Fit{"itl", j.deviation("itl.mean", x.Mean, y.Mean), j.deviation("itl.p50", x.P50, y.P50), j.deviation("itl.p90", x.P90, y.P90),
			j.deviation("itl.p95", x.P95, y.P95), j.deviation("itl.p99", x.P99, y.P99), nil, nil}
		at := slices.IndexFunc(f.Whole.Times, func(f Fit) bool { return f.Metric == "e2e" })
		f.Whole.Times = slices.Insert(f.Whole.Times, max(at, 0), itl)
	}
	for _, s := range j.measured.recorded.Stages {
		f.Stages = append(f.Stages, j.part(s.Name, nowhere, j.within(s.FromUS, s.ToUS)))
	}
	names := slices.Sorted(maps.Keys(j.simulated.raw.Cls))
	if len(names) < 2 {
		names = nil // the whole says it
	}
	for _, name := range names {
		part := j.part(name, metrics.Below("cls", name)+".", j.ofClass(name))
		if x := j.measured.raw.Cls[name]; x != nil {
			part.RPS = j.throughput(x, j.simulated.raw.Cls[name])
		}
		f.Classes = append(f.Classes, part)
	}
	return f
}

// nowhere is the prefix of metrics that there are none of.
const nowhere = "-"

// within keeps requests that came in a part of the recording's time.
func (j *judge) within(from, to stream.Micros) func(int32, *request) bool {
	first := int64(j.simulated.raw.FromUS)
	return func(n int32, q *request) bool {
		at := q.arrival - first
		if m := j.measured.at(n); m.state != 0 {
			at = m.arrival
		}
		return at >= int64(from) && at < int64(to)
	}
}

// ofClass keeps requests of a class, by the side that knows it.
func (j *judge) ofClass(name string) func(int32, *request) bool {
	return func(n int32, q *request) bool {
		if s := j.simulated.at(n); s.state != 0 {
			q = s
		}
		return j.groups.all[q.group].class == name
	}
}

// part judges the requests that in keeps. prefix is where their metrics stand.
func (j *judge) part(name, prefix string, in func(n int32, q *request) bool) Judged {
	p := Judged{Name: name, Times: []Fit{}}
	var kept []int32
	for n := range int32(len(j.names)) {
		x, y := j.measured.at(n), j.simulated.at(n)
		q := x
		if x.state == 0 {
			q = y
		}
		if q.state == 0 || !j.wanted(n) || !in(n, q) {
			continue
		}
		kept = append(kept, n)
		if x.state == completed {
			p.Measured++
		}
		if y.state == completed {
			p.Simulated++
		}
	}
	for _, m := range measures {
		if fit, ok := j.fit(prefix+m.path, kept, m.of); ok {
			fit.Metric = m.path
			p.Times = append(p.Times, fit)
		}
	}
	return p
}

// fit compares one time of some requests; not ok if a side has none.
func (j *judge) fit(path string, kept []int32, of func(*request) (float64, bool)) (f Fit, ok bool) {
	var measured, simulated, x, y []float64 // x and y of pairs
	for _, n := range kept {
		m, here := of(j.measured.at(n))
		if here {
			measured = append(measured, m)
		}
		s, there := of(j.simulated.at(n))
		if there {
			simulated = append(simulated, s)
		}
		if here && there {
			x, y = append(x, m), append(y, s)
		}
	}
	if len(measured) == 0 || len(simulated) == 0 {
		return f, false
	}
	slices.Sort(measured)
	slices.Sort(simulated)
	f.Mean = j.deviation(path+".mean", stat.Mean(measured), stat.Mean(simulated))
	for _, q := range []struct {
		to      *Deviation
		percent int64
	}{{&f.P50, 50}, {&f.P90, 90}, {&f.P95, 95}, {&f.P99, 99}} {
		*q.to = j.deviation(fmt.Sprintf("%s.p%d", path, q.percent), stat.QuantileFloat(measured, q.percent), stat.QuantileFloat(simulated, q.percent))
	}
	ks := stat.KolmogorovSmirnov(measured, simulated)
	f.KS = &ks
	if j.paired && len(x) > 0 {
		f.Each = each(x, y)
	}
	return f, true
}

// each compares measured times x with simulated ones y.
func each(x, y []float64) *Each {
	e := &Each{Requests: int64(len(x))}
	off, n := 0.0, 0.0
	for i := range x {
		e.BiasMS += y[i] - x[i]
		if x[i] > 0 {
			off += math.Abs(y[i]-x[i]) / x[i]
			n++
		}
	}
	e.BiasMS /= float64(len(x))
	if n > 0 {
		mape := 100 * off / n
		e.MAPE = &mape
	}
	if r, ok := stat.Pearson(x, y); ok {
		e.Pearson = &r
	}
	return e
}

// deviation compares two numbers, with the interval that the metrics have at that path.
func (j *judge) deviation(path string, measured, simulated float64) Deviation {
	e := Deviation{Measured: measured, Simulated: simulated}
	if measured != 0 {
		percent := 100 * (simulated/measured - 1)
		e.Percent = &percent
	}
	if m := j.metrics.at(path); m.Lo != nil {
		lo, hi := j.sign**m.Lo, j.sign**m.Hi
		lo, hi = min(lo, hi), max(lo, hi)
		e.Lo, e.Hi = &lo, &hi
	}
	return e
}

func (j *judge) throughput(measured, simulated *metrics.Group) *Deviation {
	if measured.Throughput == nil || simulated.Throughput == nil {
		return nil
	}
	e := j.deviation("throughput.rps", measured.Throughput.RPS, simulated.Throughput.RPS)
	return &e
}

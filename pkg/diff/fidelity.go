package diff

import (
	"maps"
	"math"
	"slices"

	"blis/pkg/metrics"
	"blis/pkg/resample"
	"blis/pkg/stat"
)

// Fidelity reports how close a simulation is to a recording. Of two recordings the second
// takes the role of the simulation.
type Fidelity struct {
	// Measured and Simulated name the sides, a or b.
	Measured  string `json:"measured"`
	Simulated string `json:"simulated"`
	// Pairing reports how requests are paired: by id, by order (of arrival), or none.
	Pairing string `json:"pairing"`
	// Overall covers all requests, Stages the load stages that the recording names,
	// Classes the SLO classes.
	Overall GroupFidelity   `json:"overall"`
	Stages  []GroupFidelity `json:"stages,omitempty"`
	Classes []GroupFidelity `json:"classes,omitempty"`
}

// GroupFidelity covers a group of requests. Measured and Simulated are the numbers that
// completed on each side.
type GroupFidelity struct {
	Name      string `json:"name,omitempty"`
	Measured  int64  `json:"measured"`
	Simulated int64  `json:"simulated"`
	// RPS is the throughput; absent for stages.
	RPS *Deviation `json:"throughput_rps,omitempty"`
	// Times are TTFT, TPOT, ITL, E2E and queue, those that both sides have.
	Times []TimeFidelity `json:"times"`
}

// TimeFidelity compares one latency, in ms. TPOT is (E2E − TTFT)/(output tokens − 1).
type TimeFidelity struct {
	Metric string    `json:"metric"`
	Mean   Deviation `json:"mean"`
	P50    Deviation `json:"p50"`
	P90    Deviation `json:"p90"`
	P95    Deviation `json:"p95"`
	P99    Deviation `json:"p99"`
	// KS is the Kolmogorov-Smirnov distance of the two distributions; absent for ITL,
	// which is pooled.
	KS *float64 `json:"ks,omitempty"`
	// PerRequest compares single requests; absent if they are not paired.
	PerRequest *PerRequest `json:"per_request,omitempty"`
}

// timeStatistic is one statistic of a TimeFidelity; percent is 0 for the mean.
type timeStatistic struct {
	name    string
	percent int64
	*Deviation
}

// statistics lists the statistics of the time, the mean first.
func (f *TimeFidelity) statistics() []timeStatistic {
	return []timeStatistic{{"mean", 0, &f.Mean}, {"p50", 50, &f.P50}, {"p90", 90, &f.P90}, {"p95", 95, &f.P95},
		{"p99", 99, &f.P99}}
}

// Deviation is one number on both sides. Percent is the simulated one relative to the
// measured one.
type Deviation struct {
	Measured  float64  `json:"measured"`
	Simulated float64  `json:"simulated"`
	Percent   *float64 `json:"percent,omitempty"`
	// CI is the confidence interval of simulated − measured, if there is one.
	CI *stat.Interval `json:"ci,omitempty"`
}

// PerRequest summarizes the errors of the Requests that have a time on both sides: BiasMS
// is the mean of simulated − measured, MAPE the mean absolute error relative to the
// measured time, in %, Pearson the correlation of the two.
type PerRequest struct {
	Requests int64    `json:"requests"`
	BiasMS   float64  `json:"bias_ms"`
	MAPE     *float64 `json:"mape_percent,omitempty"`
	Pearson  *float64 `json:"pearson,omitempty"`
}

// fidelityBuilder compares a simulation with a recording.
type fidelityBuilder struct {
	*comparison
	measured, simulated *side
	// sign is −1 if the differences in metrics are measured − simulated.
	sign    float64
	metrics Metrics
	paired  bool
}

// fidelity returns nil without a recording.
func (c *comparison) fidelity(pairing string, m Metrics) *Fidelity {
	if c.areRuns() {
		return nil
	}
	a, b := c.sides[0], c.sides[1]
	j := &fidelityBuilder{c, a, b, 1, m, pairing != byNone}
	f := &Fidelity{Measured: "a", Simulated: "b", Pairing: pairing}
	if a.recorded == nil {
		j.measured, j.simulated, j.sign = b, a, -1
		f.Measured, f.Simulated = "b", "a"
	}
	f.Overall = j.group("", "", func(int32, *request) bool { return true })
	f.Overall.RPS = j.throughput(&j.measured.raw.Group, &j.simulated.raw.Group)
	if x, y := j.measured.raw.ITL, j.simulated.raw.ITL; x != nil && y != nil {
		itl := TimeFidelity{Metric: "itl", Mean: j.deviation("itl.mean", x.Mean, y.Mean),
			P50: j.deviation("itl.p50", x.P50, y.P50), P90: j.deviation("itl.p90", x.P90, y.P90),
			P95: j.deviation("itl.p95", x.P95, y.P95), P99: j.deviation("itl.p99", x.P99, y.P99)}
		at := slices.IndexFunc(f.Overall.Times, func(f TimeFidelity) bool { return f.Metric == "e2e" })
		f.Overall.Times = slices.Insert(f.Overall.Times, max(at, 0), itl)
	}
	for _, s := range j.measured.recorded.Stages {
		f.Stages = append(f.Stages, j.group(s.Name, noMetricPrefix, func(n int32, q *request) bool {
			at := q.Arrival - int64(j.simulated.raw.FromUS)
			if m := j.measured.at(n); m.State != 0 {
				at = m.Arrival
			}
			return at >= int64(s.FromUS) && at < int64(s.ToUS)
		}))
	}
	names := slices.Sorted(maps.Keys(j.simulated.raw.Cls))
	if len(names) == 1 {
		names = nil // the same as Overall
	}
	for _, name := range names {
		part := j.group(name, metrics.SubPath("cls", name)+".", func(n int32, q *request) bool {
			if s := j.simulated.at(n); s.State != 0 {
				q = s // its class is as the simulation knows it
			}
			return j.groups.all[q.group].class == name
		})
		if x := j.measured.raw.Cls[name]; x != nil {
			part.RPS = j.throughput(x, j.simulated.raw.Cls[name])
		}
		f.Classes = append(f.Classes, part)
	}
	return f
}

// noMetricPrefix is a prefix that no metric has.
const noMetricPrefix = "-"

// group compares the requests that in selects. prefix is that of their metrics.
func (j *fidelityBuilder) group(name, prefix string, in func(n int32, q *request) bool) GroupFidelity {
	p := GroupFidelity{Name: name, Times: []TimeFidelity{}}
	var rows []int32
	for n := range j.ids.len() {
		x, y := j.measured.at(n), j.simulated.at(n)
		q := x
		if x.State == 0 {
			q = y
		}
		if q.State == 0 || !j.isSelected(n) || !in(n, q) {
			continue
		}
		rows = append(rows, n)
		if x.State == resample.Completed {
			p.Measured++
		}
		if y.State == resample.Completed {
			p.Simulated++
		}
	}
	for _, m := range resample.Latencies {
		if fit := j.time(prefix+m.Name, rows, m.MS); fit != nil {
			fit.Metric = m.Name
			p.Times = append(p.Times, *fit)
		}
	}
	return p
}

// time compares one latency of some requests; nil if a side has none.
func (j *fidelityBuilder) time(path string, rows []int32, of func(*resample.Request) (float64, bool)) *TimeFidelity {
	var measured, simulated, x, y []float64 // x and y of pairs
	for _, n := range rows {
		m, measuredOK := of(&j.measured.at(n).Request)
		if measuredOK {
			measured = append(measured, m)
		}
		s, simulatedOK := of(&j.simulated.at(n).Request)
		if simulatedOK {
			simulated = append(simulated, s)
		}
		if measuredOK && simulatedOK {
			x, y = append(x, m), append(y, s)
		}
	}
	if len(measured) == 0 || len(simulated) == 0 {
		return nil
	}
	slices.Sort(measured)
	slices.Sort(simulated)
	f := &TimeFidelity{Mean: j.deviation(path+".mean", stat.Mean(measured), stat.Mean(simulated)),
		KS: new(stat.KolmogorovSmirnov(measured, simulated))}
	for _, q := range f.statistics()[1:] {
		*q.Deviation = j.deviation(path+"."+q.name, stat.QuantileFloat(measured, q.percent),
			stat.QuantileFloat(simulated, q.percent))
	}
	if j.paired && len(x) > 0 {
		f.PerRequest = perRequest(x, y)
	}
	return f
}

// perRequest compares measured times x with simulated times y.
func perRequest(x, y []float64) *PerRequest {
	e := &PerRequest{Requests: int64(len(x))}
	relativeError, n := 0.0, 0.0
	for i := range x {
		e.BiasMS += y[i] - x[i]
		if x[i] > 0 {
			relativeError += math.Abs(y[i]-x[i]) / x[i]
			n++
		}
	}
	e.BiasMS /= float64(len(x))
	if n > 0 {
		e.MAPE = new(100 * relativeError / n)
	}
	if r, ok := stat.Pearson(x, y); ok {
		e.Pearson = &r
	}
	return e
}

// deviation compares two numbers and adds the interval of the metric at path.
func (j *fidelityBuilder) deviation(path string, measured, simulated float64) Deviation {
	e := Deviation{Measured: measured, Simulated: simulated, Percent: percentError(simulated, measured)}
	if m := j.metrics.at(path); m.CI != nil {
		lo, hi := j.sign*m.CI.Lo, j.sign*m.CI.Hi
		e.CI = &stat.Interval{Lo: min(lo, hi), Hi: max(lo, hi), Level: m.CI.Level}
	}
	return e
}

// percentError is the error of a simulated number in percent of the measured one; nil if that
// is 0.
func percentError(simulated, measured float64) *float64 {
	if measured == 0 {
		return nil
	}
	return new(100 * (simulated/measured - 1))
}

func (j *fidelityBuilder) throughput(measured, simulated *metrics.Group) *Deviation {
	if measured.Throughput == nil || simulated.Throughput == nil {
		return nil
	}
	return new(j.deviation("throughput.rps", measured.Throughput.RPS, simulated.Throughput.RPS))
}

package policy

import "math"

// The predictors of predicted-load.
const (
	predictConstant = "constant"
	predictKalman   = "kalman"
)

var predictedLoadParams = append([]Param{
	{Name: "predictor", Kind: Choose, Choices: []string{predictConstant, predictKalman}, Default: predictConstant,
		Doc: "how the next interval follows from the past: it is like the last one, or a Kalman filter with a trend"},
	{Name: "ttft_ms", Kind: Number, Unit: "ms", Min: 1e-3, Max: 1e6, Search: [2]float64{100, 5000}, Default: 500.0,
		Doc: "TTFT that a replica may have at its capacity"},
	{Name: "tpot_ms", Kind: Number, Unit: "ms", Min: 1e-3, Max: 1e6, Search: [2]float64{10, 200}, Default: 50.0,
		Doc: "TPOT that it may have"},
	{Name: "max_change", Kind: Number, Whole: true, Unit: "replicas", Min: 1, Max: 1e4, Search: [2]float64{1, 16},
		Default: 8.0, Doc: "replicas added or removed at once, at most"},
	{Name: "q_level", Kind: Number, Min: 1e-12, Max: 1e9, Search: [2]float64{0.1, 10}, Default: 1.0,
		Doc: "kalman: variance of the change of the level in an interval"},
	{Name: "q_trend", Kind: Number, Min: 1e-12, Max: 1e9, Search: [2]float64{0.01, 1}, Default: 0.1,
		Doc: "kalman: variance of the change of the trend"},
	{Name: "r", Kind: Number, Min: 1e-9, Max: 1e9, Search: [2]float64{1, 100}, Default: 10.0,
		Doc: "kalman: variance of a value around the level"},
	{Name: "min_points", Kind: Number, Whole: true, Unit: "intervals", Min: 1, Max: 1e4, Search: [2]float64{2, 10},
		Default: 5.0, Doc: "kalman: with fewer the next interval is like the last one"},
}, settlingParams...)

// predictedLoad has as many replicas as the predicted requests of the next interval need.
//
// It is Dynamo's throughput scaling (planner/plugins/builtins/local_planner.py, BuiltinLoadPredict, and
// planner/core/throughput_scaling.py, of ai-dynamo 1.6.1), with what its simulator measures: requests when they arrive,
// lengths when they complete.
type predictedLoad struct {
	needs
	settling
	targets   latencyTargets
	maxChange int
	// requests, input and output predict the number of requests of an interval and their mean tokens.
	requests, input, output predictor
	// lastInput and lastOutput are those of the last interval with requests, cached the mean share of a prompt that the
	// router expected to be cached.
	lastInput, lastOutput, cached float64
}

func newPredictedLoad(b *builder, s *Spec) Autoscaler {
	v := b.params(s, predictedLoadParams)
	p := &predictedLoad{needs: needs(needTraffic | needEngine), settling: newSettling(b, v),
		targets:   latencyTargets{v.number("ttft_ms") * 1000, v.number("tpot_ms") * 1000},
		maxChange: int(v.number("max_change"))}
	if v.choice("predictor") == predictKalman {
		k := &kalman{v.number("q_level"), v.number("q_trend"), v.number("r"), int(v.number("min_points"))}
		p.requests.kalman, p.input.kalman, p.output.kalman = k, k, k
	} else {
		b.markUnusedNamed(v, predictedLoadParams, "the predictor is constant", "q_level", "q_trend", "r", "min_points")
	}
	return p
}

func (p *predictedLoad) Recommend(f *Fleet) Recommendation {
	x := &f.Traffic.interval
	if !p.observe(x) {
		return p.hold(f, "no request of the interval completed")
	}
	of, ok := p.shape()
	switch {
	case !ok:
		return p.hold(f, "no length of requests is known")
	case p.waits(f):
		return p.hold(f, whySettling)
	}
	one := f.Engine.capacity(of, p.targets)
	if one.rate == 0 {
		return p.hold(f, "no batch of such requests fits")
	}
	rate := p.requests.next() * 1e6 / float64(x.lengthUS)
	n, now := ceil(rate/one.rate), p.base(f)
	n = min(max(n, now-p.maxChange), now+p.maxChange)
	what := "predicted requests/s"
	if !one.inTime {
		what += ", targets out of reach,"
	}
	return p.settled(f, Recommendation{n, Reason{what, rate, "for each", one.rate}})
}

// observe adds an interval to the series, unless it has requests of unknown length.
func (p *predictedLoad) observe(x *interval) bool {
	if x.arrived > 0 && x.completed == 0 {
		return false
	}
	input, output := p.lastInput, p.lastOutput
	if x.completed > 0 {
		p.cached = x.cached / float64(x.completed)
		if x.arrived > 0 || p.lastInput == 0 {
			input, output = float64(x.input)/float64(x.completed), float64(x.output)/float64(x.completed)
		}
	}
	if x.arrived > 0 {
		p.lastInput, p.lastOutput = input, output
	}
	p.requests.add(float64(x.arrived))
	p.input.add(input)
	p.output.add(output)
	return true
}

// maxCached is the largest share of a prompt that counts as cached.
const maxCached = 0.95

// shape is the predicted mean request, if there is one.
func (p *predictedLoad) shape() (of shape, ok bool) {
	of.input, of.output = int64(ceil(p.input.next())), int64(ceil(p.output.next()))
	if of.input < 1 || of.output < 1 {
		return of, false
	}
	of.uncached = int64(max(1, ceil(float64(of.input)*(1-min(maxCached, p.cached)))))
	return of, true
}

// ceil rounds up, but not what is above an integer only by rounding errors.
func ceil(x float64) int { return int(math.Ceil(min(x, maxWanted) - 1e-9)) }

func (p *predictedLoad) Clone() Autoscaler { c := *p; return &c }

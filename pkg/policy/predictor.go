package policy

// predictor predicts the next value of a series. Zeros before the first other value are ignored.
//
// Both ways are those of Dynamo's planner (planner/core/load/predictors.py, ConstantPredictor and KalmanPredictor, of
// ai-dynamo 1.6.1).
type predictor struct {
	last   float64
	points int
	kalman *kalman // nil predicts the last value again
	filter trend
}

// kalman is a Kalman filter of a level with a linear trend. The variances are those of the change of the level and of
// the trend in an interval, and of the measured value around the level. Fewer than minPoints values predict the last.
type kalman struct {
	level, trend, measured float64
	minPoints              int
}

// trend is the state of the filter after a value: the level and its change in an interval, and their covariances.
type trend struct{ level, slope, p00, p01, p11 float64 }

// firstVariance is that of the level and the trend after the first value.
const firstVariance = 1000

// add adds a value.
func (p *predictor) add(x float64) {
	if x == 0 && p.points == 0 {
		return
	}
	p.last = x
	p.points++
	switch {
	case p.kalman == nil:
	case p.points == 1:
		p.filter = trend{level: x, p00: firstVariance, p11: firstVariance}
	default:
		p.filter = p.kalman.update(p.filter, x)
	}
}

// next is the predicted value, 0 before the first one.
func (p *predictor) next() float64 {
	if p.kalman == nil || p.points < p.kalman.minPoints {
		return p.last
	}
	return max(0, p.filter.level+p.filter.slope)
}

// update returns the state one interval after t, where the value is z.
func (k *kalman) update(t trend, z float64) trend {
	level := t.level + t.slope
	p00 := t.p00 + t.p01 + t.p01 + t.p11 + k.level
	p01 := t.p01 + t.p11
	p11 := t.p11 + k.trend
	s := p00 + k.measured
	g0, g1 := p00/s, p01/s
	off := z - level
	return trend{level + float64(g0*off), t.slope + float64(g1*off),
		k.measured * g0, k.measured * g1, p11 - float64(g1*p01)}
}

package reference

import "math"

// Prediction are the parameters of the policy predicted-load.
type Prediction struct {
	// Kalman predicts with a filter, else the next interval is like the last one.
	Kalman         bool
	TTFTMS, TPOTMS float64
	MaxChange      int
	// Level, Trend and Noise are the variances of the filter, which needs MinPoints values.
	Level, Trend, Noise float64
	MinPoints           int
}

// predicted is the state of the policy: the values of each series so far, and which requests have been seen completed.
type predicted struct {
	requests, input, output []float64
	meanInput, meanOutput   float64
	cached                  float64
	seen                    map[*request]bool
}

// predictedLoad is the advice of that policy.
func (s *simulation) predictedLoad(x *scaler, serving, current int) int {
	c, p := x.config, &x.predicted
	last, before := x.looks[len(x.looks)-1], numberAt{}
	if len(x.looks) > 1 {
		before = x.looks[len(x.looks)-2]
	}
	arrived, completed, input, output, cached := last.n-before.n, 0, 0, 0, 0.0
	for _, q := range s.requests {
		if q.judged && q.outcome.State == Completed && !p.seen[q] {
			p.seen[q] = true
			completed, input, output = completed+1, input+q.Input, output+q.Output
			cached += float64(q.outcome.ExpectedCached) / float64(q.Input)
		}
	}
	if arrived > 0 && completed == 0 {
		return s.settled(x, current, false, serving, current)
	}
	meanInput, meanOutput := 0.0, 0.0
	if completed > 0 {
		p.cached = cached / float64(completed)
		meanInput, meanOutput = float64(input)/float64(completed), float64(output)/float64(completed)
	}
	if arrived > 0 {
		p.meanInput, p.meanOutput = meanInput, meanOutput
	} else if p.meanInput > 0 { // as in the last interval with requests
		meanInput, meanOutput = p.meanInput, p.meanOutput
	}
	p.requests = append(p.requests, float64(arrived))
	p.input, p.output = append(p.input, meanInput), append(p.output, meanOutput)
	tokens, outputs := roundUp(c.Predict.next(p.input)), roundUp(c.Predict.next(p.output))
	if tokens < 1 || outputs < 1 {
		return s.settled(x, current, false, serving, current)
	}
	uncached := max(1, roundUp(float64(tokens)*(1-min(0.95, p.cached))))
	each := s.capacity(x, tokens, uncached, outputs)
	if each == 0 {
		return s.settled(x, current, false, serving, current)
	}
	from := current
	if c.Cancel {
		from = serving
	}
	advice := roundUp(c.Predict.next(p.requests) * 1e6 / float64(last.at-before.at) / each)
	advice = min(max(advice, from-c.Predict.MaxChange), from+c.Predict.MaxChange)
	return s.settled(x, advice, true, serving, current)
}

// next predicts the value after these.
func (c *Prediction) next(values []float64) float64 {
	for len(values) > 0 && values[0] == 0 {
		values = values[1:]
	}
	if len(values) == 0 {
		return 0
	}
	if !c.Kalman || len(values) < c.MinPoints {
		return values[len(values)-1]
	}
	// The state x and its covariance p go on by the matrix f, and h measures the level.
	x := [2]float64{values[0], 0}
	p := [2][2]float64{{1000, 0}, {0, 1000}}
	f := [2][2]float64{{1, 1}, {0, 1}}
	for _, z := range values[1:] {
		x[0] += x[1]
		p = times(times(f, p), transposed(f))
		p[0][0] += c.Level
		p[1][1] += c.Trend
		gain := [2]float64{p[0][0] / (p[0][0] + c.Noise), p[1][0] / (p[0][0] + c.Noise)}
		residual := z - x[0]
		x[0] += float64(gain[0] * residual)
		x[1] += float64(gain[1] * residual)
		p = times([2][2]float64{{1 - gain[0], 0}, {-gain[1], 1}}, p)
	}
	return max(0, x[0]+x[1])
}

func times(a, b [2][2]float64) (c [2][2]float64) {
	for i := range 2 {
		for j := range 2 {
			c[i][j] = float64(a[i][0]*b[0][j]) + float64(a[i][1]*b[1][j])
		}
	}
	return c
}

func transposed(a [2][2]float64) [2][2]float64 {
	return [2][2]float64{{a[0][0], a[1][0]}, {a[0][1], a[1][1]}}
}

// capacity is how many requests with these tokens a replica completes in a second: the most within the targets or, if
// that is none, the most at all.
func (s *simulation) capacity(x *scaler, input, uncached, output int) float64 {
	c := &s.config
	if x.prefills {
		c = &s.config.Disaggregation.Pool
	}
	p, most, mostInTime := &x.config.Predict, 0.0, 0.0
	largest := 0
	for n := 1; n <= c.MaxNumSeqs; n++ {
		fits := n*(input+output/2) <= (c.NumBlocks-1)*c.BlockSize
		if x.prefills {
			fits = n == 1 || n*uncached <= c.MaxNumBatchedTokens
		} else if s.config.Disaggregation == nil {
			fits = fits && n < c.MaxNumBatchedTokens
		}
		if fits {
			largest = n
		}
	}
	for _, n := range tried(largest) {
		var requests, us float64
		inTime := true
		switch {
		case x.prefills:
			us = c.prompts(n*uncached, 0, 0)
			requests, inTime = float64(n), us/1000 <= p.TTFTMS
		case s.config.Disaggregation != nil:
			us = float64(c.evenStep(0, n, input+output/2))
			requests, inTime = float64(n)/float64(output), us/1000 <= p.TPOTMS
		default:
			share := int(math.Ceil(float64(n*uncached) / float64(output)))
			if share+n > c.MaxNumBatchedTokens {
				continue
			}
			us = float64(c.evenStep(share, n, input+output/2))
			requests = float64(n) / float64(output)
			inTime = us/1000 <= p.TPOTMS && c.prompts(share+uncached, n, input+output/2)/1000 <= p.TTFTMS
		}
		rate := requests * 1e6 / us
		if most = max(most, rate); inTime {
			mostInTime = max(mostInTime, rate)
		}
	}
	if mostInTime > 0 {
		return mostInTime
	}
	return most
}

// tried are the batch sizes that are tried: all up to the largest or, if these are more than 128, as many at equal
// distances.
func tried(largest int) (sizes []int) {
	const most = 128
	for k := range min(largest, most) {
		n := 1 + k
		if largest > most {
			n = 1 + k*(largest-1)/(most-1)
		}
		sizes = append(sizes, n)
	}
	return sizes
}

// evenStep is the time of a step with a chunk of a new prompt and some sequences with equal contexts.
func (c *Config) evenStep(chunk, decoding, context int) int64 {
	var b Batch
	for range decoding {
		b.decode(context, c.Window)
	}
	if chunk > 0 {
		b.chunk(chunk, 0, c.Window)
	}
	return c.stepTime(b)
}

// prompts is the time of the steps that compute tokens of prompts while sequences decode.
func (c *Config) prompts(tokens, decoding, context int) (us float64) {
	for tokens > 0 {
		n := min(tokens, c.MaxNumBatchedTokens)
		us += float64(c.evenStep(n, decoding, context))
		tokens -= n
	}
	return us
}

package attribution

import "math"

// slowByFit times what a fit to its peers, or the scaled TPOT of a peer, expects is the TPOT of a slow replica: these
// are less certain than a comparison in the same company.
const slowByFit = 1.8

// minFitted requests of peers make a fit.
const minFitted = 50

// stepFit are the sums of a least-squares fit of TPOTs, in ms, by what steps have: a constant, the requests in the
// batch, and the prompt tokens of others for each output token.
type stepFit struct {
	n  float64
	xx [3][3]float64
	xy [3]float64
}

// features are what the fit knows of a request.
func (d decoding) features() [3]float64 {
	return [3]float64{1, d.concurrent, float64(d.interfering) / float64(max(1, d.tokens))}
}

func (f *stepFit) add(x [3]float64, y float64) {
	f.n++
	for i := range x {
		f.xy[i] += float64(x[i] * y)
		for j := range x {
			f.xx[i][j] += float64(x[i] * x[j])
		}
	}
}

// join adds the sums of other requests.
func (f *stepFit) join(o *stepFit) {
	f.n += o.n
	for i := range f.xy {
		f.xy[i] += o.xy[i]
		for j := range f.xy {
			f.xx[i][j] += o.xx[i][j]
		}
	}
}

// slowerThanFit is by what factor the TPOTs of a unit are above what a fit to its peers expects of its batches, by the
// sums over its requests; 0 without a fit.
func (u *speedUnit) slowerThanFit(all []speedUnit) float64 {
	own, peers := &u.fit, stepFit{}
	for i := range all {
		if p := &all[i]; p.group != u.group && p.deployment.Model == u.deployment.Model {
			peers.join(&p.fit)
		}
	}
	if own.n < speedSamples || peers.n < minFitted {
		return 0
	}
	expected := 0.0
	for i, c := range peers.coefficients() {
		expected += float64(c * own.xx[0][i])
	}
	if expected <= 0 {
		return 0
	}
	return own.xy[0] / expected
}

// coefficients solve the fit; those that would be negative are left out, so that more work is never expected to take
// less time.
func (f *stepFit) coefficients() [3]float64 {
	use := [3]bool{true, true, true}
	for {
		c, ok := f.solve(use)
		worst := -1
		for i := range c {
			if use[i] && (c[i] < 0 || !ok && i > 0) && (worst < 0 || c[i] < c[worst] || !ok) {
				worst = i
			}
		}
		if worst < 0 {
			return c
		}
		use[worst] = false
	}
}

// solve eliminates with the chosen features; it fails if these depend on each other.
func (f *stepFit) solve(use [3]bool) (c [3]float64, ok bool) {
	m, y := f.xx, f.xy
	for i := range use {
		if !use[i] {
			m[i], y[i] = [3]float64{}, 0
			m[i][i] = 1
		}
	}
	for i := range m {
		if math.Abs(m[i][i]) <= 1e-9*math.Abs(f.xx[i][i]) {
			return c, false
		}
		for k := range m {
			if k == i {
				continue
			}
			factor := m[k][i] / m[i][i]
			for j := range m {
				m[k][j] -= float64(factor * m[i][j])
			}
			y[k] -= float64(factor * y[i])
		}
	}
	for i := range c {
		c[i] = y[i] / m[i][i]
	}
	return c, true
}

package fitness

import (
	"math"

	"blis/pkg/expr"
	"blis/pkg/registry"
)

// function is one that expressions may call.
type function struct {
	takes []expr.Type
	any   bool // repetitions of takes
	// wraps: an absent latency may stand in it, and makes its value 0.
	wraps bool
	// of computes its value of numbers; nil of attained.
	of func(x []float64) float64
}

// Functions are those that expressions may call.
var Functions = registry.Table[function]{
	{Name: "ratio", Doc: "ratio(base, x) = base/(base + x), where less is better: 0.5 at parity", Value: function{numbers(2), false, true, ratio}},
	{Name: "gain", Doc: "gain(x, base) = x/(x + base), where more is better: 0.5 at parity", Value: function{numbers(2), false, false, func(x []float64) float64 { return ratio(x) }}},
	{Name: "soft", Doc: "soft(x, limit, k) = 1 up to the limit, then exp(-k*(x/limit - 1))", Value: function{numbers(3), false, true, soft}},
	{Name: "attained", Doc: `attained("class") = share of the offered requests of the class that met its targets`, Value: function{takes: []expr.Type{expr.Text}}},
	{Name: "wmean", Doc: "wmean(weight, x, weight, x, ...) = their weighted mean", Value: function{numbers(2), true, false, weighted(wmean)}},
	{Name: "wgeo", Doc: "wgeo(weight, x, weight, x, ...) = their weighted geometric mean", Value: function{numbers(2), true, false, weighted(wgeo)}},
	{Name: "worst", Doc: "worst(x, x, ...) = the least of them", Value: function{numbers(1), true, false, worst}},
	{Name: "lex", Doc: "lex(x, x, ...) = the first by hundredths, the next one within a hundredth of it", Value: function{numbers(1), true, false, lex}},
	{Name: "clamp", Doc: "clamp(x, lo, hi)", Value: function{numbers(3), false, false, func(x []float64) float64 { return min(max(x[0], x[1]), x[2]) }}},
	{Name: "min", Doc: "the lesser of two", Value: function{numbers(2), false, false, func(x []float64) float64 { return min(x[0], x[1]) }}},
	{Name: "max", Doc: "the greater of two", Value: function{numbers(2), false, false, func(x []float64) float64 { return max(x[0], x[1]) }}},
	{Name: "abs", Doc: "without its sign", Value: of1(math.Abs)},
	{Name: "exp", Doc: "e to the power of it", Value: of1(math.Exp)},
	{Name: "log", Doc: "natural logarithm", Value: of1(math.Log)},
	{Name: "sqrt", Doc: "square root", Value: of1(math.Sqrt)},
	{Name: "pow", Doc: "pow(x, y) = x to the power of y", Value: function{numbers(2), false, false, func(x []float64) float64 { return math.Pow(x[0], x[1]) }}},
}

func numbers(n int) []expr.Type {
	return []expr.Type{expr.Number, expr.Number, expr.Number}[:n]
}

func of1(f func(float64) float64) function {
	return function{numbers(1), false, false, func(x []float64) float64 { return f(x[0]) }}
}

// declared are the functions as package expr takes them.
var declared = func() (all []expr.Function) {
	for _, f := range Functions {
		all = append(all, expr.Function{Name: f.Name, Doc: f.Doc, Params: f.Value.takes, Variadic: f.Value.any, Returns: expr.Number})
	}
	return all
}()

// calls are the functions by name.
var calls = func() map[string]function {
	all := map[string]function{}
	for _, f := range Functions {
		all[f.Name] = f.Value
	}
	return all
}()

// ratio is x[0]/(x[0] + x[1]), and 0.5 of two zeros, which are at parity.
func ratio(x []float64) float64 {
	if x[0] == 0 && x[1] == 0 {
		return 0.5
	}
	return x[0] / (x[0] + x[1])
}

func soft(x []float64) float64 {
	value, limit, k := x[0], x[1], x[2]
	if value <= limit {
		return 1
	}
	return math.Exp(-k * (value/limit - 1))
}

// weighted makes a function of weights and values of one of them in turn.
func weighted(mean func(w, x []float64) float64) func([]float64) float64 {
	return func(pairs []float64) float64 {
		var w, x []float64
		for i := 0; i < len(pairs); i += 2 {
			w, x = append(w, pairs[i]), append(x, pairs[i+1])
		}
		return mean(w, x)
	}
}

func wmean(w, x []float64) float64 {
	sum, weight := 0.0, 0.0
	for i := range x {
		sum += float64(w[i] * x[i])
		weight += w[i]
	}
	return sum / weight
}

// wgeo takes what is below 0 as 0.
func wgeo(w, x []float64) float64 {
	sum, weight := 0.0, 0.0
	for i := range x {
		weight += w[i]
		if w[i] > 0 {
			sum += float64(w[i] * math.Log(max(x[i], 0)))
		}
	}
	return math.Exp(sum / weight)
}

func worst(x []float64) float64 {
	least := x[0]
	for _, v := range x {
		least = min(least, v)
	}
	return least
}

// step is how finely lex tells apart all but its last argument.
const step = 0.01

// lex adds up the arguments, each but the last rounded down to a hundredth and
// each within the hundredth of the one before it. They count as between 0 and 1.
func lex(x []float64) float64 {
	sum, unit := 0.0, 1.0
	for i, v := range x {
		v = min(max(v, 0), 1)
		if i < len(x)-1 {
			v = min(math.Floor(v/step+1e-9), 1/step-1) * step
		}
		sum += float64(unit * v)
		unit *= step
	}
	return sum
}

package fitness

import (
	"math"
	"slices"

	"blis/pkg/expr"
	"blis/pkg/portable"
	"blis/pkg/registry"
)

// function is one that expressions may call.
type function struct {
	params   []expr.Type
	variadic bool // params may repeat
	// acceptsMissing: an argument may be a missing time, which makes the value 0.
	acceptsMissing bool
	// eval computes the value; nil for attained and served.
	eval func(x []float64) float64
}

// functions are those that expressions may call.
var functions = registry.Table[function]{
	{Name: "ratio", Doc: "ratio(ref, x) = ref/(ref + x), where lower is better: 0.5 if x equals ref",
		Value: function{params: numbers(2), acceptsMissing: true, eval: ratio}},
	{Name: "gain", Doc: "gain(x, ref) = x/(x + ref), where higher is better: 0.5 if x equals ref",
		Value: function{params: numbers(2), eval: ratio}},
	{Name: "soft", Doc: "soft(x, limit, k) = 1 up to the limit, then exp(-k*(x/limit - 1))",
		Value: function{params: numbers(3), acceptsMissing: true, eval: soft}},
	{Name: "attained", Doc: `attained("class") = share of the offered requests of the class that met its targets`,
		Value: function{params: []expr.Type{expr.Text}}},
	{Name: "served", Doc: "served(m.ttft.p99) = the percentile of the served requests alone, of all classes",
		Value: function{params: numbers(1)}},
	{Name: "wmean", Doc: "wmean(weight, x, weight, x, ...) = weighted mean",
		Value: function{params: numbers(2), variadic: true, eval: weighted(wmean)}},
	{Name: "wgeo", Doc: "wgeo(weight, x, weight, x, ...) = weighted geometric mean",
		Value: function{params: numbers(2), variadic: true, eval: weighted(wgeo)}},
	{Name: "worst", Doc: "worst(x, x, ...) = the minimum",
		Value: function{params: numbers(1), variadic: true, eval: slices.Min[[]float64]}},
	{Name: "lex", Doc: "lex(x, y, ...) orders by x, rounded down to 0.01, then by y",
		Value: function{params: numbers(1), variadic: true, eval: lex}},
	{Name: "clamp", Doc: "clamp(x, lo, hi)",
		Value: function{params: numbers(3), eval: func(x []float64) float64 { return min(max(x[0], x[1]), x[2]) }}},
	{Name: "min", Doc: "the smaller of two", Value: binary(func(x, y float64) float64 { return min(x, y) })},
	{Name: "max", Doc: "the larger of two", Value: binary(func(x, y float64) float64 { return max(x, y) })},
	{Name: "abs", Doc: "absolute value", Value: unary(math.Abs)},
	{Name: "exp", Doc: "e to the power of x", Value: unary(portable.Exp)},
	{Name: "log", Doc: "natural logarithm", Value: unary(portable.Log)},
	{Name: "sqrt", Doc: "square root", Value: unary(math.Sqrt)},
	{Name: "pow", Doc: "pow(x, y) = x to the power of y", Value: binary(portable.Pow)},
}

func numbers(n int) []expr.Type { return slices.Repeat([]expr.Type{expr.Number}, n) }

func unary(f func(float64) float64) function {
	return function{params: numbers(1), eval: func(x []float64) float64 { return f(x[0]) }}
}

func binary(f func(x, y float64) float64) function {
	return function{params: numbers(2), eval: func(x []float64) float64 { return f(x[0], x[1]) }}
}

// exprFunctions are the functions in the form of package expr.
var exprFunctions = func() (all []expr.Function) {
	for _, f := range functions {
		all = append(all, expr.Function{Name: f.Name, Doc: f.Doc, Params: f.Value.params, Variadic: f.Value.variadic,
			Returns: expr.Number})
	}
	return all
}()

// functionsByName are the operators and the functions.
var functionsByName = func() map[string]function {
	all := map[string]function{
		"neg": unary(func(x float64) float64 { return -x }),
		"+":   binary(func(x, y float64) float64 { return x + y }),
		"-":   binary(func(x, y float64) float64 { return x - y }),
		"*":   binary(func(x, y float64) float64 { return x * y }),
		"/":   binary(func(x, y float64) float64 { return x / y }),
	}
	for _, f := range functions {
		all[f.Name] = f.Value
	}
	return all
}()

// ratio is x[0]/(x[0] + x[1]); two zeros are at parity: 0.5.
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
	return portable.Exp(-k * (value/limit - 1))
}

// weighted makes a function of alternating weights and values from one of two lists.
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

// wgeo counts negative values as 0.
func wgeo(w, x []float64) float64 {
	sum, weight := 0.0, 0.0
	for i := range x {
		weight += w[i]
		if w[i] > 0 {
			sum += float64(w[i] * portable.Log(max(x[i], 0)))
		}
	}
	return portable.Exp(sum / weight)
}

// lexStep is the resolution of lex for all but its last argument.
const lexStep = 0.01

// lex adds up the arguments, clamped to [0, 1]: each but the last is rounded down to a hundredth, and
// each is scaled to fit within a hundredth of the one before it.
func lex(x []float64) float64 {
	sum, unit := 0.0, 1.0
	for i, v := range x {
		v = min(max(v, 0), 1)
		if i < len(x)-1 {
			v = min(math.Floor(v/lexStep+1e-9), 1/lexStep-1) * lexStep
		}
		sum += float64(unit * v)
		unit *= lexStep
	}
	return sum
}

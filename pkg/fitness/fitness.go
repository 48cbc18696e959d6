// Package fitness scores runs: one number in [0, 1), higher is better, with its terms.
package fitness

// Result is the fitness of a run, or of the runs of several scenarios.
type Result struct {
	// Score is finite and in [0, 1): at least 0.1 if all gates pass, in (0, 0.1] if one fails, and 0
	// only if the run or the fitness does not load.
	Score float64 `json:"score"`
	// Value is that of the score's expression, in [0, 1): Score is 0.1 + 0.9*Value if all gates pass.
	Value float64 `json:"value"`
	Gates []Gate  `json:"gates"`
	// Terms are those of the score, in its order.
	Terms []Term `json:"terms"`
	// Objectives and Features are in the order of the file.
	Objectives []Value  `json:"objectives"`
	Features   []Value  `json:"features"`
	Warnings   []string `json:"warnings"`
}

// Gate is a condition that must hold.
type Gate struct {
	Name   string `json:"name"`
	Expr   string `json:"expr"`
	Passed bool   `json:"passed"`
	// Distance is how far the condition is from holding: 0 if it holds, at most 1.
	Distance float64 `json:"distance"`
	// Detail has the compared numbers.
	Detail string `json:"detail"`
}

// Term is a part of the score.
type Term struct {
	Name string `json:"name"`
	Expr string `json:"expr"`
	// Weight is its share of the score, Ideal the best possible Value.
	Weight float64 `json:"weight"`
	Value  float64 `json:"value"`
	Ideal  float64 `json:"ideal"`
	// Lost is the gain of Result.Score if the term were ideal and all gates passed.
	Lost float64 `json:"lost"`

	idealValue float64 // Result.Value if the term were ideal
}

// Value is a number with a name, nil if it is missing.
type Value struct {
	Name  string   `json:"name"`
	Value *float64 `json:"value"`
}

// Empty is the result of a run that does not load: score 0, and each gate, objective and feature
// without a value.
func (f *Fitness) Empty() *Result {
	r := &Result{Gates: []Gate{}, Terms: []Term{}, Objectives: []Value{}, Features: []Value{}, Warnings: []string{}}
	for _, g := range f.gates {
		r.Gates = append(r.Gates, Gate{Name: g.name, Expr: g.String(), Distance: 1, Detail: "not evaluated"})
	}
	for _, o := range f.objectives {
		r.Objectives = append(r.Objectives, Value{Name: o.name})
	}
	for _, x := range f.features {
		r.Features = append(r.Features, Value{Name: x.name})
	}
	return r
}

// Package fitness scores runs: one number in [0, 1), higher is better, and what
// it is made of.
package fitness

// Result is the fitness of a run, or of the runs of several scenarios.
type Result struct {
	// Score is finite and in [0, 1): above 0.1 where all gates pass, in (0, 0.1]
	// where one fails, 0 only of what does not load.
	Score float64 `json:"score"`
	// Value is what the score's expression came to, in [0, 1): Score is 0.1 + 0.9 of
	// it where all gates pass.
	Value float64 `json:"value"`
	Gates []Gate  `json:"gates"`
	// Terms are those that the score is made of, in its order.
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
	// Distance is how far the condition is from holding: 0 where it does, at most 1.
	Distance float64 `json:"distance"`
	// Detail has the numbers that were compared.
	Detail string `json:"detail"`
}

// Term is one of those that the score adds up.
type Term struct {
	Name string `json:"name"`
	Expr string `json:"expr"`
	// Weight is its share of the score; Value is what it came to, Ideal the best it
	// can be.
	Weight float64 `json:"weight"`
	Value  float64 `json:"value"`
	Ideal  float64 `json:"ideal"`
	// Lost is what Result.Score would gain were the term ideal and the gates passed.
	Lost float64 `json:"lost"`

	ideally float64 // Result.Value were the term ideal
}

// Value is a number with a name, nil where it is absent.
type Value struct {
	Name  string   `json:"name"`
	Value *float64 `json:"value"`
}

// Empty is the result of what does not load: score 0, and each gate, objective and
// feature without a value.
func (f *Fitness) Empty() *Result {
	r := &Result{Gates: []Gate{}, Terms: []Term{}, Objectives: []Value{}, Features: []Value{}, Warnings: []string{}}
	for _, g := range f.gates {
		r.Gates = append(r.Gates, Gate{Name: g.name, Expr: g.String(), Distance: 1, Detail: "not known"})
	}
	for _, o := range f.objectives {
		r.Objectives = append(r.Objectives, Value{Name: o.name})
	}
	for _, x := range f.features {
		r.Features = append(r.Features, Value{Name: x.name})
	}
	return r
}

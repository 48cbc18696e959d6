package gen

import (
	"math/rand/v2"

	"blis/pkg/stream"
)

// Grammars are the grammars, JSON schemas or sets of tools of a client's structured output: Name-1 to Name-Count. A
// Share of its requests, or of the model calls of its sessions, have one, the k-th with a probability in proportion to
// 1/k^Zipf.
type Grammars struct {
	Name  string  `yaml:"name" json:"name"`
	Count int64   `yaml:"count" json:"count"`
	Zipf  float64 `yaml:"zipf" json:"zipf"`
	Share float64 `yaml:"share" json:"share"`
}

const defaultGrammar = "schema"

// UnmarshalYAML sets the defaults before it decodes.
func (x *Grammars) UnmarshalYAML(decode func(any) error) error {
	type plain Grammars
	*x = Grammars{Name: defaultGrammar, Share: 1}
	return decode((*plain)(x))
}

// decorator validates x and returns a decorator that gives requests, or model calls of sessions, a grammar.
func (x *Grammars) decorator(at field) func(*stream.Arrival, *rand.Rand) {
	between(at, "share", x.Share, 0, 1)
	draw := popular(at, x.Name, x.Count, x.Zipf)
	if at.err != nil {
		return nil
	}
	set := func(grammar *string, r *rand.Rand) {
		if r.Float64() < x.Share {
			*grammar = draw(r)
		}
	}
	return func(a *stream.Arrival, r *rand.Rand) {
		if !a.IsSession {
			set(&a.Request.Grammar, r)
			return
		}
		for s := range modelCalls(&a.Session) {
			set(&s.Grammar, r)
		}
	}
}

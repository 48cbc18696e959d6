package gen

import (
	"math/rand/v2"

	"blis/pkg/stream"
)

// Adapters are the LoRA adapters of a client: Name-1 to Name-Count. A request or a session has the k-th one with a
// probability in proportion to 1/k^Zipf.
type Adapters struct {
	Name  string  `yaml:"name" json:"name"`
	Count int64   `yaml:"count" json:"count"`
	Zipf  float64 `yaml:"zipf" json:"zipf"`
}

const (
	defaultAdapter = "adapter"
	maxNames       = 1_000_000
	maxZipf        = 10
)

// UnmarshalYAML sets the default before it decodes.
func (x *Adapters) UnmarshalYAML(decode func(any) error) error {
	type plain Adapters
	*x = Adapters{Name: defaultAdapter}
	return decode((*plain)(x))
}

// decorator validates x and returns a decorator that gives each request, or each session, an adapter.
func (x *Adapters) decorator(at field) func(*stream.Arrival, *rand.Rand) {
	draw := popular(at, x.Name, x.Count, x.Zipf)
	return func(a *stream.Arrival, r *rand.Rand) {
		if a.IsSession {
			a.Session.Adapter = draw(r)
		} else {
			a.Request.Adapter = draw(r)
		}
	}
}

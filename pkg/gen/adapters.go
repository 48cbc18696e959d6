package gen

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"blis/pkg/portable"
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
	maxAdapters    = 1_000_000
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
	if x.Name == "" {
		at.fail("name", "must not be empty")
	}
	between(at, "count", x.Count, 1, maxAdapters)
	between(at, "zipf", x.Zipf, 0, maxZipf)
	if at.err != nil {
		return nil
	}
	sums, sum := make([]float64, x.Count), 0.0
	for k := range sums {
		sum += portable.Pow(float64(k+1), -x.Zipf)
		sums[k] = sum
	}
	return func(a *stream.Arrival, r *rand.Rand) {
		k, _ := slices.BinarySearch(sums[:len(sums)-1], float64(r.Float64()*sum))
		name := x.Name + "-" + strconv.Itoa(k+1)
		if a.IsSession {
			a.Session.Adapter = name
		} else {
			a.Request.Adapter = name
		}
	}
}

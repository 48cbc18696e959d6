package sim

import (
	"fmt"
	"slices"

	"blis/pkg/registry"
)

// unserved counts the requests for models that no deployment serves, by model in order of the first request.
type unserved []modelCount

type modelCount struct {
	model    string
	requests int64
}

// maxUnserved is the maximum number of models that warnings name.
const maxUnserved = 10

func (*unserved) hooks() []hook { return []hook{onArrival} }

func (u *unserved) observe(s *simulation, _ hook, i int32) error {
	r := s.request(i)
	if r.model >= 0 {
		return nil
	}
	at := slices.IndexFunc(*u, func(c modelCount) bool { return c.model == r.out.Model })
	switch {
	case at >= 0:
		(*u)[at].requests++
	case len(*u) < maxUnserved:
		*u = append(*u, modelCount{r.out.Model, 1})
	}
	return nil
}

// warnings names each model.
func (u *unserved) warnings(s *simulation) (all []string) {
	var have []string
	for i := range s.models {
		have = append(have, s.models[i].name)
	}
	for _, c := range *u {
		all = append(all, fmt.Sprintf("%d requests are rejected: %v", c.requests,
			registry.Unknown("model of this cluster", c.model, have)))
	}
	return all
}

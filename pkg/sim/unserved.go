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

// count counts a request.
func (u *unserved) count(model string) {
	at := slices.IndexFunc(*u, func(c modelCount) bool { return c.model == model })
	switch {
	case at >= 0:
		(*u)[at].requests++
	case len(*u) < maxUnserved:
		*u = append(*u, modelCount{model, 1})
	}
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

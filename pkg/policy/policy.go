// Package policy is the control plane: pure choices over a View. A policy sees
// what its place in a real cluster would see, and no more: the View has no
// field for what nobody there can know, such as the length of an answer.
package policy

import (
	"fmt"
	"slices"

	"blis/pkg/kv"
	"blis/pkg/named"
)

// Spec names a policy and its parameters, as files do.
type Spec struct {
	Type   string             `yaml:"type" json:"type"`
	Params map[string]float64 `yaml:"params" json:"params,omitempty"`
}

// View is what a router decides on.
type View struct {
	// Group numbers the set of replicas that serve the request's model.
	Group       int
	InputTokens int
	// Path is the identity of the prompt's tokens.
	Path kv.Path
	// Replicas are the candidates, in the order of their index; never none.
	Replicas []Replica
}

// Replica is one candidate as the router sees it.
type Replica struct {
	// Index is the replica's number in the cluster.
	Index int32
	// QueueDepth is how many requests wait there, Inflight how many were sent
	// there and have not left.
	QueueDepth, Inflight int32
	// Matched is how many leading blocks of the prompt the router believes to be
	// there, of Blocks full ones. Only routers with Prefix are told.
	Matched, Blocks int32
}

// Choice is a router's decision: a place in View.Replicas, and the score that
// won, in the policy's own unit.
type Choice struct {
	Candidate int
	Score     float64
}

// Router sends requests to replicas. Ties go to the lowest index.
type Router interface {
	Route(*View) Choice
	// Prefix reports whether Route looks at Matched.
	Prefix() bool
}

// Routers are the routing policies.
var Routers = named.Table[func(Spec) (Router, error)]{
	{Name: "round-robin", Doc: "each replica in turn", Value: newRoundRobin},
	{Name: "least-loaded", Doc: "fewest requests in flight", Value: newLeastLoaded},
	{Name: "weighted", Doc: "highest weighted sum of scores; a parameter for each scorer is its weight", Value: newWeighted},
}

// Policies that have one choice so far: their tables say which names a file
// may use.
var (
	Admissions  = named.Table[struct{}]{{Name: "always-admit", Doc: "every request is admitted"}}
	Priorities  = named.Table[struct{}]{{Name: "constant", Doc: "all requests have priority 0"}}
	Schedulers  = named.Table[struct{}]{{Name: "fcfs", Doc: "a replica serves its queue in order of arrival"}}
	Preemptions = named.Table[struct{}]{{Name: "last-in", Doc: "the sequence admitted last gives way"}}
)

// NewRouter makes the router that spec describes.
func NewRouter(spec Spec) (Router, error) {
	build, err := Routers.Get("routing policy", spec.Type)
	if err != nil {
		return nil, err
	}
	return build(spec)
}

// Check reports parameters that are not among names.
func (s Spec) Check(names ...string) error {
	var given []string
	for name := range s.Params {
		given = append(given, name)
	}
	slices.Sort(given)
	for _, name := range given {
		if len(names) == 0 {
			return fmt.Errorf("%s has no parameters, not %q", s.Type, name)
		}
		if !slices.Contains(names, name) {
			return named.Unknown("parameter of "+s.Type, name, names)
		}
	}
	return nil
}

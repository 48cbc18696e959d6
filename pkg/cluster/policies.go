package cluster

import (
	"errors"
	"fmt"

	"blis/pkg/policy"
	"blis/pkg/strictyaml"
)

// readBundle reads and checks the file of policies called name.
func readBundle(name string) (*strictyaml.Doc, error) {
	doc, err := strictyaml.Read(name)
	if err != nil {
		return nil, err
	}
	return doc, doc.Decode(new(policy.Bundle))
}

// validatePolicies builds the policies once to check them.
func (c *Config) validatePolicies(s *source) (*policy.Plane, error) {
	plane, err := policy.Build(&c.Policies, c.policyEnv(func(string) uint64 { return 0 }))
	var bad *policy.Error
	if errors.As(err, &bad) {
		return nil, s.policyError(bad)
	}
	return plane, err
}

// Plane builds the policies of a loaded cluster; seed returns the seed of a random
// stream.
func (c *Config) Plane(seed func(stream string) uint64) (*policy.Plane, error) {
	p, err := policy.Build(&c.Policies, c.policyEnv(seed))
	if err != nil {
		return nil, fmt.Errorf("policies.%w", err)
	}
	return p, nil
}

func (c *Config) policyEnv(seed func(string) uint64) policy.Env {
	env := policy.Env{Seed: seed}
	for i := range c.Deployments {
		env.Models = append(env.Models, c.Deployments[i].Model)
		env.Replicas += c.Deployments[i].Replicas
	}
	return env
}

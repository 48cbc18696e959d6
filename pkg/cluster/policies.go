package cluster

import (
	"errors"
	"fmt"
	"strings"

	"blis/pkg/config"
	"blis/pkg/policy"
)

// bundle reads the file of policies called name, which takes the place of those
// of the cluster file.
func (c *Config) bundle(name string) (*config.Doc, error) {
	doc, err := config.Read(name)
	if err != nil {
		return nil, err
	}
	c.Policies = policy.Bundle{}
	return doc, doc.Decode(&c.Policies)
}

// validatePolicies builds the policies once, to see whether they can be. A
// fault has its place in what said it: one of sets, the bundle, or the file.
func (c *Config) validatePolicies(file, bundle *config.Doc, sets []string) error {
	_, err := policy.Build(&c.Policies, c.policyEnv(func(string) uint64 { return 0 }))
	var fault *policy.Error
	if !errors.As(err, &fault) {
		return err
	}
	for i := len(sets) - 1; i >= 0; i-- {
		path, _, _ := strings.Cut(sets[i], "=")
		path = strings.TrimPrefix(underPolicies(path), "policies.")
		if under(fault.Path, path) || under(path, fault.Path) {
			return &config.Error{File: "--set " + sets[i], Msg: fault.Error()}
		}
	}
	doc, path := bundle, fault.Path
	if doc == nil {
		doc, path = file, "policies."+path
	}
	if fault.Line > 0 {
		return doc.TextErrorf(path, fault.Line, fault.Col, "%s", fault.Msg)
	}
	return doc.Errorf(path, "%s", fault.Msg)
}

// under reports whether path is at or below other.
func under(path, other string) bool {
	return path == other || strings.HasPrefix(path, other+".") || strings.HasPrefix(path, other+"[")
}

// Plane makes the policies of a cluster that was loaded; seed returns the seed
// of a random stream.
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

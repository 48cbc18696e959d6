// Package deploy writes a simulated configuration as real servers and routers take it: the configuration of llm-d's
// router, the command lines of vLLM, and the flags of Dynamo's router.
package deploy

import (
	"errors"
	"fmt"

	"blis/pkg/cluster"
	"blis/pkg/policy"
	"blis/pkg/registry"
)

// Targets are what a configuration can be written for. The text is complete, or there is an error that names the
// setting that the target does not have.
var Targets = registry.Table[func(*cluster.Config) (string, error)]{
	{Name: "llm-d", Doc: "the EndpointPickerConfig of llm-d's router", Value: llmdRouter},
	{Name: "vllm", Doc: "the command lines of vllm serve", Value: vllmServe},
	{Name: "dynamo", Doc: "the flags of Dynamo's frontend for its router", Value: dynamoRouter},
}

// Export returns the text for a target.
func Export(target string, c *cluster.Config) (string, error) {
	write, err := Targets.Get("target", target)
	if err != nil {
		return "", err
	}
	text, err := write(c)
	if err != nil {
		return "", fmt.Errorf("%s: %w", target, err)
	}
	return text, nil
}

// unmapped is the error of a setting that a target does not have.
func unmapped(path, format string, args ...any) error {
	return fmt.Errorf("%s %s", path, fmt.Sprintf(format, args...))
}

// plainCluster rejects what neither router has.
func plainCluster(c *cluster.Config) error {
	for i := range c.Deployments {
		switch d := &c.Deployments[i]; {
		case d.Prefill != nil:
			return unmapped("deployments."+d.ID, "is disaggregated: profiles of prefill and decode are not exported")
		case d.Encode != nil:
			return unmapped("deployments."+d.ID+".encode", "is not exported")
		}
	}
	if c.Policies.PrefillRouting != nil {
		return unmapped("policies.prefill_routing", "is not exported")
	}
	return nil
}

// number returns a parameter of a complete policy.
func number(s *policy.Spec, name string) float64 {
	x, _ := s.Params[name].(float64)
	return x
}

// errSnapshot is why a rule by reported load has no counterpart.
var errSnapshot = errors.New("compares what replicas reported; have load: inflight")

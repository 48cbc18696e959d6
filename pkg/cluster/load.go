package cluster

import (
	_ "embed"
	"strings"

	"blis/pkg/config"
	"blis/pkg/policy"
)

//go:embed default.yaml
var defaultYAML []byte

// Load reads the cluster file called name, the built-in one if name is "", and
// applies sets ("path=value") to it.
func Load(name string, sets []string) (*Config, error) {
	doc, err := config.Parse("the default cluster", defaultYAML)
	if name != "" {
		doc, err = config.Read(name)
	}
	if err != nil {
		return nil, err
	}
	return resolve(doc, sets)
}

// resolve decodes a cluster file, applies sets to it and fills in what it
// leaves out.
func resolve(doc *config.Doc, sets []string) (*Config, error) {
	c := &Config{ControlPlane: ControlPlane{ShadowBlocks: policy.ShadowBlocks}}
	if err := doc.Decode(c); err != nil {
		return nil, err
	}
	c.Policies.fill()
	for _, s := range sets {
		path, value, _ := strings.Cut(s, "=")
		before := c.Policies
		if err := config.Set(c, underPolicies(path), value); err != nil {
			return nil, &config.Error{File: "--set " + s, Msg: err.Error()}
		}
		c.Policies.forget(before)
		c.Policies.fill()
	}
	fault := doc.Errorf
	if len(sets) > 0 {
		fault = func(path, format string, args ...any) error {
			return doc.Errorf(path, format+" (after --set %s)", append(args, strings.Join(sets, " --set "))...)
		}
	}
	if err := c.validate(fault); err != nil {
		return nil, err
	}
	return c, nil
}

// underPolicies completes a path that begins with a stage of the control plane.
func underPolicies(path string) string {
	switch stage, _, _ := strings.Cut(path, "."); stage {
	case "admission", "priority", "routing", "scheduler", "preemption", "autoscale":
		return "policies." + path
	}
	return path
}

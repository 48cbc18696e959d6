package cluster

import (
	_ "embed"
	"fmt"
	"path/filepath"

	"blis/pkg/hardware"
	"blis/pkg/strictyaml"
)

//go:embed default.yaml
var defaultYAML []byte

// Options are the inputs of a cluster besides its file.
type Options struct {
	// PolicyFile is a file of policies that replace the cluster's; "" is none.
	PolicyFile string
	// Overrides override values of the file: "path=value", or "@file" for an object of
	// paths and values.
	Overrides []string
	// Hardware are files or directories of the user's own GPUs and coefficients.
	Hardware []string
	// Warn receives warnings; nil discards them.
	Warn func(string)
}

// Load reads and resolves the cluster file called name, the built-in one if name
// is "". Errors in the file are *strictyaml.Error.
func Load(name string, o Options) (*Config, error) {
	doc, err := strictyaml.Parse("the default cluster", defaultYAML)
	if name != "" {
		doc, err = strictyaml.Read(name)
	}
	if err != nil {
		return nil, err
	}
	return resolve(doc, filepath.Dir(name), o)
}

// resolve decodes a cluster file, applies the options to it and fills in the
// values that it leaves out; dir is the folder of the file.
func resolve(doc *strictyaml.Doc, dir string, o Options) (*Config, error) {
	s := &source{doc, dir, o.Overrides}
	c, err := s.decode() // errors of the file itself
	if err != nil {
		return nil, err
	}
	if o.PolicyFile != "" || len(o.Overrides) > 0 {
		if c, err = s.apply(o); err != nil {
			return nil, err
		}
	}
	c.Policies.Complete()
	for i := range c.Deployments {
		if err := c.Deployments[i].invalidateDerived(s, deploymentPath(i)); err != nil {
			return nil, err
		}
	}
	c.ControlPlane.Snapshots.SetDefaults()
	if err := c.validate(s.errorf); err != nil {
		return nil, err
	}
	plane, err := c.validatePolicies(s)
	if err != nil {
		return nil, err
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	c.warnUnused(plane, o.Warn)
	return c, c.complete(s, o)
}

// apply applies the options to the document and decodes the result.
func (s *source) apply(o Options) (*Config, error) {
	if o.PolicyFile != "" {
		bundle, err := readBundle(o.PolicyFile)
		if err != nil {
			return nil, err
		}
		s.doc.Replace("policies", bundle)
	}
	if err := s.override(o.Overrides); err != nil {
		return nil, err
	}
	return s.decode()
}

// deploymentPath is the path of a deployment.
func deploymentPath(i int) string { return fmt.Sprintf("deployments[%d]", i) }

// complete fills in the values that follow from the known models and GPUs.
func (c *Config) complete(s *source, o Options) error {
	catalog, err := hardware.Open(o.Hardware...)
	if err != nil {
		if _, placed := err.(*strictyaml.Error); !placed {
			err = &strictyaml.Error{File: "--hardware", Msg: err.Error()}
		}
		return err
	}
	r := &resolver{s.doc, s.errorf, s.dir, o.Hardware, catalog, o.Warn}
	for i := range c.Deployments {
		if err := r.deployment(&c.Deployments[i], deploymentPath(i)); err != nil {
			return err
		}
	}
	return nil
}

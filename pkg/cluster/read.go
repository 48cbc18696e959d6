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
	// Bundle is a file of policies that replace the cluster's; "" is none.
	Bundle string
	// Sets override values of the file: "path=value", or "@file" for an object of
	// paths and values.
	Sets []string
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
	c := &Config{ControlPlane: defaultControlPlane()}
	by := &said{config: c, file: doc, dir: dir, given: o.Sets}
	err := doc.Decode(c)
	if err != nil {
		return nil, err
	}
	if o.Bundle != "" {
		if by.bundle, err = c.readBundle(o.Bundle); err != nil {
			return nil, err
		}
	}
	if by.sets, err = overridesOf(o.Sets); err != nil {
		return nil, err
	}
	if err := c.apply(by.sets); err != nil {
		return nil, err
	}
	if err := c.forget(by); err != nil {
		return nil, err
	}
	c.ControlPlane.Snapshots.Fill()
	if err := c.validate(by.fault); err != nil {
		return nil, err
	}
	plane, err := c.validatePolicies(by)
	if err != nil {
		return nil, err
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	c.warnUnused(plane, o.Warn)
	return c, c.complete(by, o)
}

// complete fills in the values that follow from the known models and GPUs.
func (c *Config) complete(by *said, o Options) error {
	catalog, err := hardware.Open(o.Hardware...)
	if err != nil {
		if _, placed := err.(*strictyaml.Error); !placed {
			err = &strictyaml.Error{File: "--hardware", Msg: err.Error()}
		}
		return err
	}
	for i := range c.Deployments {
		if err := (&resolver{catalog, by.dir, o.Hardware, by.stated, by.fault, o.Warn}).deployment(&c.Deployments[i], fmt.Sprintf("deployments[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

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

// Options are what a call may say of a cluster beside its file.
type Options struct {
	// Bundle is a file of policies that takes the place of the cluster's; "" is
	// none.
	Bundle string
	// Sets override values of the file: "path=value", or "@file" with an object of
	// such.
	Sets []string
	// Hardware are files or directories of the user's own GPUs and coefficients.
	Hardware []string
	// Warn is told what is odd; nil is silent.
	Warn func(string)
}

// Load reads the cluster file called name, the built-in one if name is "", and
// completes it. Faults are *strictyaml.Error.
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

// resolve decodes a cluster file of a folder, applies the options to it and fills in what it
// leaves out.
func resolve(doc *strictyaml.Doc, dir string, o Options) (*Config, error) {
	c := &Config{ControlPlane: defaultControlPlane()}
	by := &said{config: c, file: doc, dir: dir, given: o.Sets}
	err := doc.Decode(c)
	if err != nil {
		return nil, err
	}
	if o.Bundle != "" {
		if by.bundle, err = c.bundle(o.Bundle); err != nil {
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
	plane, err := c.tryPolicies(by)
	if err != nil {
		return nil, err
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	c.warnIdle(plane, o.Warn)
	return c, c.complete(by, o)
}

// complete fills in what follows from what is known of models and GPUs.
func (c *Config) complete(by *said, o Options) error {
	known, err := hardware.Open(o.Hardware...)
	if err != nil {
		if _, placed := err.(*strictyaml.Error); !placed {
			err = &strictyaml.Error{File: "--hardware", Msg: err.Error()}
		}
		return err
	}
	for i := range c.Deployments {
		if err := (&completer{known, by.dir, o.Hardware, by.stated, by.fault, o.Warn}).deployment(&c.Deployments[i], fmt.Sprintf("deployments[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

package cluster

import (
	_ "embed"
	"fmt"
	"strings"

	"blis/pkg/catalog"
	"blis/pkg/config"
	"blis/pkg/policy"
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
// completes it. Faults are *config.Error.
func Load(name string, o Options) (*Config, error) {
	doc, err := config.Parse("the default cluster", defaultYAML)
	if name != "" {
		doc, err = config.Read(name)
	}
	if err != nil {
		return nil, err
	}
	return resolve(doc, o)
}

// resolve decodes a cluster file, applies the options to it and fills in what it
// leaves out.
func resolve(doc *config.Doc, o Options) (*Config, error) {
	c := &Config{ControlPlane: ControlPlane{MaxDelays: 100, ShadowBlocks: policy.ShadowBlocks}}
	err := doc.Decode(c)
	if err != nil {
		return nil, err
	}
	var bundle *config.Doc
	if o.Bundle != "" {
		if bundle, err = c.bundle(o.Bundle); err != nil {
			return nil, err
		}
	}
	if o.Sets, err = unfold(o.Sets); err != nil {
		return nil, err
	}
	c.Policies.Complete()
	for _, s := range o.Sets {
		path, value, _ := strings.Cut(s, "=")
		before := c.Policies
		if err := config.Set(c, underPolicies(path), value); err != nil {
			return nil, &config.Error{File: "--set " + s, Msg: err.Error()}
		}
		if strings.HasSuffix(path, ".type") {
			c.Policies.Forget(before)
		}
		c.Policies.Complete()
	}
	c.ControlPlane.Snapshots.Fill()
	fault := doc.Errorf
	if len(o.Sets) > 0 {
		fault = func(path, format string, args ...any) error {
			return doc.Errorf(path, format+" (after --set %s)", append(args, strings.Join(o.Sets, " --set "))...)
		}
	}
	if err := c.validate(fault); err != nil {
		return nil, err
	}
	if err := c.validatePolicies(doc, bundle, o.Sets); err != nil {
		return nil, err
	}
	known, err := catalog.Open(o.Hardware...)
	if err != nil {
		if _, placed := err.(*config.Error); !placed {
			err = &config.Error{File: "--hardware", Msg: err.Error()}
		}
		return nil, err
	}
	warn := o.Warn
	if warn == nil {
		warn = func(string) {}
	}
	for i := range c.Deployments {
		d := &c.Deployments[i]
		at := fmt.Sprintf("deployments[%d]", i)
		has := func(path string) bool { return stated(doc, o.Sets, path, at, d.ID) }
		if err := (&completer{known, has, fault, warn}).deployment(d, at); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// stated reports whether the file or one of sets gives a value to path, which
// begins with at; sets know what stands there also by its id. A set of more than
// the path takes the place of what the file and earlier sets say.
func stated(doc *config.Doc, sets []string, path, at, id string) bool {
	has := doc.Has(path)
	rest := strings.TrimPrefix(path, at)
	byIndex := strings.NewReplacer("[", ".", "]", "").Replace(at) + rest
	for _, s := range sets {
		set, value, _ := strings.Cut(s, "=")
		for _, full := range []string{"deployments." + id + rest, byIndex} {
			if set == full {
				has = true
			} else if deeper, ok := strings.CutPrefix(full, set+"."); ok && (set != "deployments" || full == byIndex) {
				part, err := config.Parse("value", []byte(value))
				has = err == nil && part.Has(deeper)
			}
		}
	}
	return has
}

// unfold puts the sets of files in the place of "@file".
func unfold(sets []string) (all []string, err error) {
	for _, s := range sets {
		more := []string{s}
		if name, isFile := strings.CutPrefix(s, "@"); isFile {
			if more, err = config.ReadSets(name); err != nil {
				return nil, err
			}
		}
		all = append(all, more...)
	}
	return all, nil
}

// underPolicies completes a path that begins with a stage of the control plane.
func underPolicies(path string) string {
	switch stage, _, _ := strings.Cut(path, "."); stage {
	case "admission", "priority", "routing", "scheduler", "preemption", "autoscale":
		return "policies." + path
	}
	return path
}

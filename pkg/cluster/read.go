package cluster

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"blis/pkg/hardware"
	"blis/pkg/llmd"
	"blis/pkg/policy"
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
	// Operators is a folder aiconfigurator_core/systems, the latency.operators of all deployments that name
	// none; "" is none.
	Operators string
	// AllowPaths lets the cluster file name files outside of its folder. Overrides of the command line always may.
	AllowPaths bool
	// Warn receives warnings; nil discards them.
	Warn func(string)
}

// Load reads and resolves the cluster file called name, the built-in one if name
// is "". Errors in the file are *strictyaml.Error.
func Load(name string, o Options) (*Config, error) {
	if name == "" {
		return Parse("the default cluster", defaultYAML, o)
	}
	doc, err := strictyaml.Read(name)
	if err != nil {
		return nil, err
	}
	return resolve(doc, filepath.Dir(name), o)
}

// resolve decodes a cluster file, applies the options to it and fills in the
// values that it leaves out; dir is the folder of the file.
func resolve(doc *strictyaml.Doc, dir string, o Options) (*Config, error) {
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	s := &source{doc, dir, o.Overrides, o.AllowPaths}
	c, err := s.decode() // errors of the file itself
	if err != nil {
		return nil, err
	}
	o.Overrides = append(slices.Clone(o.Overrides), c.tablesOf(o.Operators, dir)...)
	if o.PolicyFile != "" || len(o.Overrides) > 0 {
		if c, err = s.apply(o); err != nil {
			return nil, err
		}
	}
	if s.splitPools(c, o.Warn) {
		if c, err = s.decode(); err != nil {
			return nil, err
		}
	}
	c.completePools()
	c.Policies.Complete()
	if f := c.ControlPlane.FlowControl; f != nil {
		gate := f.gateConfig()
		gate.Complete()
	}
	for i := range c.Deployments {
		if err := c.Deployments[i].eachPool(deploymentPath(i), func(d *Deployment, at string) error {
			return d.invalidateDerived(s, at)
		}); err != nil {
			return nil, err
		}
	}
	c.completeBounds()
	c.completeFailures()
	c.ControlPlane.Snapshots.SetDefaults(c.HasTiers())
	if err := c.validate(s.errorf); err != nil {
		return nil, err
	}
	plane, err := c.validatePolicies(s)
	if err != nil {
		return nil, err
	}
	c.warnUnused(plane, o.Warn)
	if err := c.complete(s, o); err != nil {
		return c, err
	}
	c.warnUnusedVictimRules(o.Warn)
	return c, c.validateComplete(s.errorf)
}

// validateComplete checks what depends on several parts of a complete configuration.
func (c *Config) validateComplete(errorf strictyaml.Errorf) error {
	return cmp.Or(c.validateScaling(errorf), c.validatePools(errorf), c.validateFailures(errorf),
		c.validateFrontDoors(errorf), c.validateRanks(errorf), c.validateEncodePools(errorf))
}

// tablesOf returns overrides that make a folder of tables, relative to the working directory, the
// latency.operators of all deployments that name none; dir is the folder of the cluster file.
func (c *Config) tablesOf(folder, dir string) (sets []string) {
	if folder == "" {
		return nil
	}
	if !filepath.IsAbs(folder) {
		relative, err := filepath.Rel(dir, folder)
		if err != nil {
			relative, err = filepath.Abs(folder)
		}
		if err == nil {
			folder = relative
		}
	}
	for i := range c.Deployments {
		if d := &c.Deployments[i]; d.Latency.Operators == "" {
			sets = append(sets, fmt.Sprintf("deployments.%s.latency.operators=%q", d.ID, folder))
		}
	}
	return sets
}

// apply applies the options to the document and decodes the result.
func (s *source) apply(o Options) (*Config, error) {
	if o.PolicyFile != "" {
		if err := s.usePolicies(o); err != nil {
			return nil, err
		}
	}
	if err := s.override(o.Overrides); err != nil {
		return nil, err
	}
	return s.decode()
}

// usePolicies replaces the policies by those of a file: a bundle, or a configuration of llm-d's router.
func (s *source) usePolicies(o Options) error {
	file, err := strictyaml.Read(o.PolicyFile)
	if err != nil {
		return err
	}
	if llmd.IsConfig(file) {
		return s.useRouter(file, o)
	}
	if err := file.Decode(new(policy.Bundle)); err != nil {
		return err
	}
	s.doc.Replace("policies", file)
	return nil
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
	r := &resolver{s, o.Hardware, catalog, o.Warn, c.Energy != nil}
	for i := range c.Deployments {
		if err := c.Deployments[i].eachPool(deploymentPath(i), r.deployment); err != nil {
			return err
		}
	}
	return nil
}

// source is the text of a configuration: the cluster file with the overrides applied.
type source struct {
	doc *strictyaml.Doc
	// dir is the folder of the file.
	dir string
	// sets are the overrides as the caller wrote them.
	sets []string
	// allowPaths lets the file name files outside of dir.
	allowPaths bool
}

// decode decodes the configuration over the defaults.
func (s *source) decode() (*Config, error) {
	c := &Config{ControlPlane: defaultControlPlane()}
	return c, s.doc.Decode(c)
}

// errorf returns an error about the value at path, with the position of the override
// or of the file that sets it.
func (s *source) errorf(path, format string, args ...any) error {
	err := s.doc.Errorf(path, format, args...).(*strictyaml.Error)
	if len(s.sets) > 0 && s.doc.SetBy(path) == nil {
		err.Msg += " (after --set " + strings.Join(s.sets, " --set ") + ")"
	}
	return err
}

// Parse is Load of a cluster file with this text; errors use name as its name.
func Parse(name string, text []byte, o Options) (*Config, error) {
	doc, err := strictyaml.Parse(name, text)
	if err != nil {
		return nil, err
	}
	return resolve(doc, ".", o)
}

// Restore reads a configuration that is already resolved, from the header of a
// run. It looks up and computes nothing, so the result is the same where models
// and GPUs are unknown or have changed. Errors use name as the file name.
func Restore(name string, text []byte) (*Config, error) {
	doc, err := strictyaml.Parse(name, text)
	if err != nil {
		return nil, err
	}
	c := new(Config)
	if err := doc.Decode(c); err != nil {
		return nil, err
	}
	if err := c.validate(doc.Errorf); err != nil {
		return nil, err
	}
	if _, err := c.validatePolicies(&source{doc: doc}); err != nil {
		return nil, err
	}
	for i := range c.Deployments {
		restore := func(d *Deployment, at string) error { return d.restore(at, doc.Errorf) }
		if err := c.Deployments[i].eachPool(deploymentPath(i), restore); err != nil {
			return nil, err
		}
	}
	return c, c.validateComplete(doc.Errorf)
}

// restore decodes the printed Computed and checks the values that size the simulation.
func (d *Deployment) restore(at string, errorf strictyaml.Errorf) error {
	if err := d.Engine.validate(at+".engine", errorf); err != nil {
		return err
	}
	data, err := json.Marshal(d.Printed)
	if err != nil {
		return errorf(at+".computed", "%v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	d.Computed, d.Printed = new(Computed), nil
	if err := dec.Decode(d.Computed); err != nil {
		return errorf(at+".computed", "%v", err)
	}
	k := d.Computed
	most := maxCacheTokens / d.Engine.BlockSize / d.Engine.DataParallelSize
	if k.KVBlocks < minBlocks || k.KVBlocks > most {
		return errorf(at+".computed.kv_blocks", "must be between %d and %d, is %d", minBlocks, most, k.KVBlocks)
	}
	if err := cmp.Or(checkGroups(k, at+".computed", errorf), k.restorePower(at+".computed", errorf)); err != nil {
		return err
	}
	if _, err := d.LatencyModel(); err != nil {
		return errorf(at+".latency", "%v", err)
	}
	return nil
}

// validatePolicies builds the policies once to check them. Errors have the position of the
// override or of the file that sets the policy.
func (c *Config) validatePolicies(s *source) (*policy.Plane, error) {
	plane, err := c.Plane(func(string) uint64 { return 0 })
	bad, ok := errors.AsType[*policy.Error](err)
	if !ok {
		return plane, err
	}
	path := "policies." + bad.Path
	if set := s.doc.SetBy(path); set != nil {
		return nil, set.Errorf("%v", bad)
	}
	if bad.Line > 0 {
		return nil, s.doc.TextErrorf(path, bad.Line, bad.Col, "%s", bad.Msg)
	}
	return nil, s.doc.Errorf(path, "%s", bad.Msg)
}

// Plane builds the policies of a loaded cluster; seed returns the seed of a random stream.
func (c *Config) Plane(seed func(stream string) uint64) (*policy.Plane, error) {
	env := policy.Env{Seed: seed}
	for i := range c.Deployments {
		env.Models = append(env.Models, c.Deployments[i].Model)
		env.Deployments = append(env.Deployments, c.Deployments[i].ID)
		ranks := c.Deployments[i].Engine.Ranks()
		env.Replicas += ranks * c.Deployments[i].Replicas
		env.Candidates += ranks * max(c.Deployments[i].Replicas, c.Deployments[i].MaxReplicas)
		if p := c.Deployments[i].Prefill; p != nil {
			env.PrefillReplicas += p.Replicas
			env.PrefillCandidates += max(p.Replicas, p.MaxReplicas)
		}
	}
	if c.Failures != nil { // replicas that are down for good remain candidates, and an auto-scaler replaces them
		env.Candidates += len(c.Failures.Events)
		env.PrefillCandidates += len(c.Failures.Events)
	}
	p, err := policy.Build(&c.Policies, env)
	if err != nil {
		return nil, fmt.Errorf("policies.%w", err)
	}
	return p, nil
}

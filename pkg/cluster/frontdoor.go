package cluster

import (
	"slices"

	"blis/pkg/scale"
	"blis/pkg/strictyaml"
)

// FrontDoor are the limits of a server for requests that wait and run, with vLLM's names and rules
// (vllm/config/scheduler.py and vllm/v1/engine/async_llm.py, AsyncLLM.check_admission, v0.33.0).
type FrontDoor struct {
	// MaxNumActiveSeqs limits the running requests of an engine core, 0 to MaxNumSeqs. Unlike MaxNumSeqs it changes
	// neither memory nor CUDA graphs. It exists since vLLM 0.31.
	MaxNumActiveSeqs int `yaml:"max_num_active_seqs" json:"max_num_active_seqs,omitempty"`
	// MaxNumQueuedReqs rejects requests when the server has this many that are waiting or running, MaxNumQueuedTokens
	// when the prompts of those without a token have this many tokens. Both count the requests of all engine cores.
	// nil is no limit. They exist since vLLM 0.29.
	MaxNumQueuedReqs   *int `yaml:"max_num_queued_reqs" json:"max_num_queued_reqs,omitempty"`
	MaxNumQueuedTokens *int `yaml:"max_num_queued_tokens" json:"max_num_queued_tokens,omitempty"`
}

// The first versions with these settings.
var (
	queuedSince = version{0, 29}
	activeSince = version{0, 31}
)

// ActiveSeqs is the largest number of requests that run in an engine core.
func (e *Engine) ActiveSeqs() int {
	if e.MaxNumActiveSeqs > 0 {
		return e.MaxNumActiveSeqs
	}
	return e.MaxNumSeqs
}

// rejects reports whether the server rejects requests.
func (f *FrontDoor) rejects() bool { return f.MaxNumQueuedReqs != nil || f.MaxNumQueuedTokens != nil }

// frontDoor checks the limits of a server.
func (c *resolver) frontDoor(d *Deployment, at string) error {
	e := &d.Engine
	at += ".engine"
	active := at + ".max_num_active_seqs"
	if err := strictyaml.Between[int](c.errorf, active)("", e.MaxNumActiveSeqs, 0, maxCacheTokens); err != nil {
		return err
	}
	if e.MaxNumActiveSeqs > e.MaxNumSeqs {
		return c.errorf(active, "must be at most max_num_seqs = %d, is %d", e.MaxNumSeqs, e.MaxNumActiveSeqs)
	}
	if e.MaxNumActiveSeqs > 0 {
		if err := c.since(e, active, activeSince); err != nil {
			return err
		}
	}
	for _, limit := range []struct {
		path  string
		value *int
	}{{at + ".max_num_queued_reqs", e.MaxNumQueuedReqs}, {at + ".max_num_queued_tokens", e.MaxNumQueuedTokens}} {
		if limit.value == nil {
			continue
		}
		if err := strictyaml.Between[int](c.errorf, limit.path)("", *limit.value, 0, maxCacheTokens); err != nil {
			return err
		}
		if err := c.since(e, limit.path, queuedSince); err != nil {
			return err
		}
		if d.Architecture != "" { // a pool, too
			return c.errorf(limit.path, "is not supported for a disaggregated deployment")
		}
	}
	return nil
}

// since returns an error if the preset is a version without a setting, which exists since the first one.
func (c *resolver) since(e *Engine, path string, first version) error {
	if e.Preset == "" || !versionOf(e.Preset).before(first) {
		return nil
	}
	return c.errorf(path, "exists since vLLM %d.%d, but engine.preset is %s", first.major, first.minor, e.Preset)
}

// validateFrontDoors checks that no request of a server that rejects some goes to another one.
func (c *Config) validateFrontDoors(errorf strictyaml.Errorf) error {
	redirects := c.Policies.Autoscale != nil && c.Policies.Autoscale.Actuation.Drain.Mode == scale.DrainRedirect
	if f := c.Failures; f != nil {
		redirects = redirects || f.Random != nil && f.Random.Redirects() || slices.ContainsFunc(f.Events,
			func(e Failure) bool { return e.Redirects() })
	}
	for i := range c.Deployments {
		if f := &c.Deployments[i].Engine.FrontDoor; redirects && f.rejects() {
			return errorf(deploymentPath(i)+".engine."+f.rejecting(),
				"is not supported with requests that are redirected")
		}
	}
	return nil
}

// rejecting is the first of the limits that reject requests.
func (f *FrontDoor) rejecting() string {
	if f.MaxNumQueuedReqs != nil {
		return "max_num_queued_reqs"
	}
	return "max_num_queued_tokens"
}

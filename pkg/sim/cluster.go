package sim

import (
	_ "embed"
	"fmt"
	"strings"

	"blis/pkg/config"
	"blis/pkg/latency"
	"blis/pkg/named"
	"blis/pkg/policy"
)

// Cluster is the configuration of a run, as cluster files give it.
type Cluster struct {
	Version      int          `yaml:"version" json:"version"`
	Deployments  []Deployment `yaml:"deployments" json:"deployments"`
	ControlPlane ControlPlane `yaml:"control_plane" json:"control_plane"`
	Policies     Policies     `yaml:"policies" json:"policies"`
}

// Deployment is a number of equal replicas of one model.
type Deployment struct {
	ID       string  `yaml:"id" json:"id"`
	Model    string  `yaml:"model" json:"model"`
	GPU      string  `yaml:"gpu" json:"gpu,omitempty"`
	Replicas int     `yaml:"replicas" json:"replicas"`
	Engine   Engine  `yaml:"engine" json:"engine"`
	Latency  Latency `yaml:"latency" json:"latency"`
}

// Engine is how the replicas were started: vLLM's own argument names.
type Engine struct {
	TensorParallelSize  int `yaml:"tensor_parallel_size" json:"tensor_parallel_size"`
	MaxNumSeqs          int `yaml:"max_num_seqs" json:"max_num_seqs"`
	MaxNumBatchedTokens int `yaml:"max_num_batched_tokens" json:"max_num_batched_tokens"`
	BlockSize           int `yaml:"block_size" json:"block_size"`
	// NumGPUBlocksOverride is the number of KV blocks of a replica.
	NumGPUBlocksOverride      int  `yaml:"num_gpu_blocks_override" json:"num_gpu_blocks_override"`
	EnableChunkedPrefill      bool `yaml:"enable_chunked_prefill" json:"enable_chunked_prefill"`
	EnablePrefixCaching       bool `yaml:"enable_prefix_caching" json:"enable_prefix_caching"`
	LongPrefillTokenThreshold int  `yaml:"long_prefill_token_threshold" json:"long_prefill_token_threshold"`
	// MaxModelLen bounds input + output tokens; 0 leaves that to the cache.
	MaxModelLen int `yaml:"max_model_len" json:"max_model_len"`
}

// Latency names a latency model and its coefficients, in µs and µs a token.
type Latency struct {
	Model   string    `yaml:"model" json:"model"`
	AlphaUS []float64 `yaml:"alpha_us" json:"alpha_us"`
	BetaUS  []float64 `yaml:"beta_us" json:"beta_us"`
}

// ControlPlane is what the control plane itself takes, in µs, and remembers.
type ControlPlane struct {
	AdmissionLatencyUS int64 `yaml:"admission_latency_us" json:"admission_latency_us"`
	RoutingLatencyUS   int64 `yaml:"routing_latency_us" json:"routing_latency_us"`
	// ShadowBlocks is how many prompt blocks the router remembers of each replica.
	ShadowBlocks int `yaml:"shadow_blocks" json:"shadow_blocks"`
}

// Policies names the policy of each stage.
type Policies struct {
	Admission  policy.Spec `yaml:"admission" json:"admission"`
	Priority   policy.Spec `yaml:"priority" json:"priority"`
	Routing    policy.Spec `yaml:"routing" json:"routing"`
	Scheduler  policy.Spec `yaml:"scheduler" json:"scheduler"`
	Preemption policy.Spec `yaml:"preemption" json:"preemption"`
}

// UnmarshalYAML decodes a deployment over the defaults of what it leaves out.
func (d *Deployment) UnmarshalYAML(decode func(any) error) error {
	type plain Deployment
	*d = Deployment{Replicas: 1, Engine: defaultEngine()}
	return decode((*plain)(d))
}

// UnmarshalYAML decodes an engine over the defaults of what it leaves out.
func (e *Engine) UnmarshalYAML(decode func(any) error) error {
	type plain Engine
	*e = defaultEngine()
	return decode((*plain)(e))
}

// defaultEngine is vLLM's defaults on most GPUs.
func defaultEngine() Engine {
	return Engine{TensorParallelSize: 1, MaxNumSeqs: 256, MaxNumBatchedTokens: 2048, BlockSize: 16,
		EnableChunkedPrefill: true, EnablePrefixCaching: true}
}

//go:embed default.yaml
var defaultYAML []byte

// loadCluster reads the cluster file called name, the built-in one if name is
// "", and applies sets ("path=value") to it.
func loadCluster(name string, sets []string) (*Cluster, error) {
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
func resolve(doc *config.Doc, sets []string) (*Cluster, error) {
	c := &Cluster{ControlPlane: ControlPlane{ShadowBlocks: policy.ShadowBlocks}}
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

// stage is one policy of the control plane: where files have it, what it is if
// they do not say, and what it can be where that is all there is to check.
type stage struct {
	path, what string
	spec       *policy.Spec
	otherwise  string
	choices    named.Table[struct{}]
}

func (p *Policies) stages() []stage {
	return []stage{
		{"policies.admission", "admission policy", &p.Admission, "always-admit", policy.Admissions},
		{"policies.priority", "priority policy", &p.Priority, "constant", policy.Priorities},
		{"policies.routing", "routing policy", &p.Routing, "round-robin", nil},
		{"policies.scheduler", "scheduler", &p.Scheduler, "fcfs", policy.Schedulers},
		{"policies.preemption", "preemption policy", &p.Preemption, "last-in", policy.Preemptions},
	}
}

// fill names the policies that the file leaves out, and the parameters that
// these then have.
func (p *Policies) fill() {
	for _, s := range p.stages() {
		if s.spec.Type == "" {
			s.spec.Type = s.otherwise
		}
		if len(s.spec.Params) == 0 {
			s.spec.Params = policy.Defaults(s.spec.Type)
		}
	}
}

// forget drops the parameters of every policy that has another type than
// before: they were the other one's.
func (p *Policies) forget(before Policies) {
	old := before.stages()
	for i, s := range p.stages() {
		if s.spec.Type != old[i].spec.Type {
			s.spec.Params = nil
		}
	}
}

// fault makes an error about the value at path.
type fault func(path, format string, args ...any) error

// validate reports the first value that no cluster can have.
func (c *Cluster) validate(fault fault) error {
	if c.Version != 1 {
		return fault("version", "must be 1, is %d", c.Version)
	}
	if len(c.Deployments) == 0 {
		return fault("deployments", "must name at least one deployment")
	}
	seen := map[string]bool{}
	replicas := 0
	for i := range c.Deployments {
		d := &c.Deployments[i]
		path := fmt.Sprintf("deployments[%d]", i)
		if d.ID == "" {
			return fault(path+".id", "must be given")
		}
		if seen[d.ID] {
			return fault(path+".id", "%q is taken by an earlier deployment", d.ID)
		}
		seen[d.ID] = true
		if err := d.validate(path, fault); err != nil {
			return err
		}
		if replicas += d.Replicas; replicas > maxReplicas {
			return fault(path+".replicas", "all deployments together can have %d replicas", maxReplicas)
		}
	}
	if err := c.ControlPlane.validate(fault); err != nil {
		return err
	}
	return c.Policies.validate(fault)
}

func (p *ControlPlane) validate(fault fault) error {
	for _, v := range []struct {
		name            string
		value, min, max int64
	}{
		{"admission_latency_us", p.AdmissionLatencyUS, 0, maxLatencyUS},
		{"routing_latency_us", p.RoutingLatencyUS, 0, maxLatencyUS},
		{"shadow_blocks", int64(p.ShadowBlocks), 1, maxCacheTokens},
	} {
		if v.value < v.min || v.value > v.max {
			return fault("control_plane."+v.name, "must be between %d and %d, is %d", v.min, v.max, v.value)
		}
	}
	return nil
}

const (
	maxReplicas    = 1 << 16
	maxLatencyUS   = 1e12 // eleven days
	maxCacheTokens = 1 << 30
)

func (d *Deployment) validate(path string, fault fault) error {
	if d.Model == "" {
		return fault(path+".model", "must be given")
	}
	e := &d.Engine
	for _, v := range []struct {
		name            string
		value, min, max int
	}{
		{"replicas", d.Replicas, 1, maxReplicas},
		{"engine.tensor_parallel_size", e.TensorParallelSize, 1, 1024},
		{"engine.max_num_seqs", e.MaxNumSeqs, 1, maxCacheTokens},
		{"engine.max_num_batched_tokens", e.MaxNumBatchedTokens, 1, maxCacheTokens},
		{"engine.block_size", e.BlockSize, 1, 65536},
		{"engine.num_gpu_blocks_override", e.NumGPUBlocksOverride, 1, maxCacheTokens},
		{"engine.long_prefill_token_threshold", e.LongPrefillTokenThreshold, 0, maxCacheTokens},
		{"engine.max_model_len", e.MaxModelLen, 0, maxCacheTokens},
	} {
		if v.value < v.min || v.value > v.max {
			return fault(path+"."+v.name, "must be between %d and %d, is %d", v.min, v.max, v.value)
		}
	}
	if slots := int64(e.NumGPUBlocksOverride) * int64(e.BlockSize); slots > maxCacheTokens {
		return fault(path+".engine.num_gpu_blocks_override", "a cache of %d tokens is too large, at most %d", slots, maxCacheTokens)
	}
	if _, err := d.latency(); err != nil {
		return fault(path+".latency", "%v", err)
	}
	return nil
}

// latency makes the deployment's latency model.
func (d *Deployment) latency() (latency.Model, error) {
	build, err := latency.Models.Get("latency model", d.Latency.Model)
	if err != nil {
		return nil, err
	}
	return build(latency.Coefficients{Alpha: d.Latency.AlphaUS, Beta: d.Latency.BetaUS})
}

func (p *Policies) validate(fault fault) error {
	if _, err := policy.NewRouter(p.Routing); err != nil {
		return fault("policies.routing", "%v", err)
	}
	for _, s := range p.stages() {
		if s.choices == nil {
			continue
		}
		if _, err := s.choices.Get(s.what, s.spec.Type); err != nil {
			return fault(s.path+".type", "%v", err)
		}
		if err := s.spec.Check(); err != nil {
			return fault(s.path+".params", "%v", err)
		}
	}
	return nil
}

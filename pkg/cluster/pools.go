package cluster

import (
	"cmp"
	"math"
	"slices"

	"blis/pkg/policy"
	"blis/pkg/strictyaml"
)

// Disaggregated is the Architecture of a deployment with a prefill and a decode pool.
const Disaggregated = "disaggregated"

// Pool are the replicas of a disaggregated deployment that compute prompts, or those that decode. A file states what
// differs from the deployment.
type Pool struct {
	GPU         string         `yaml:"gpu" json:"gpu,omitempty"`
	Replicas    int            `yaml:"replicas" json:"replicas"`
	MinReplicas *int           `yaml:"min_replicas" json:"min_replicas,omitempty"`
	MaxReplicas int            `yaml:"max_replicas" json:"max_replicas,omitempty"`
	Engine      Engine         `yaml:"engine" json:"engine"`
	Latency     Latency        `yaml:"latency" json:"latency"`
	KVTiers     []KVTier       `yaml:"kv_tiers" json:"kv_tiers,omitempty"`
	KVOffload   *KVOffload     `yaml:"kv_offload" json:"kv_offload,omitempty"`
	Derived     *Derived       `yaml:"derived" json:"derived,omitempty"`
	Computed    *Computed      `yaml:"-" json:"computed,omitempty"`
	Printed     map[string]any `yaml:"computed" json:"-"`
}

// UnmarshalYAML decodes a pool over the defaults.
func (p *Pool) UnmarshalYAML(decode func(any) error) error {
	type plain Pool
	*p = Pool{Replicas: 1, Engine: defaultEngine()}
	return decode((*plain)(p))
}

// PDTransfer are the links between the pools, one from each prefill replica and one to each decode replica, which their
// transfers share evenly. Bandwidths are in 10⁹ bytes a second.
type PDTransfer struct {
	LatencyUS int64   `yaml:"latency_us" json:"latency_us"`
	OutGBPerS float64 `yaml:"out_gb_per_s" json:"out_gb_per_s"`
	InGBPerS  float64 `yaml:"in_gb_per_s" json:"in_gb_per_s"`
	// Granularity is what moves at once: request, all blocks of a prompt when it is computed, chunk, those that a step
	// has filled, or block. The decode replica may begin when all have arrived or, with Pipeline, when the last begin
	// to move. stream is block with Pipeline.
	Granularity string `yaml:"granularity" json:"granularity"`
	Pipeline    bool   `yaml:"pipeline" json:"pipeline,omitempty"`
	// HopUS is the time from the end of the prefill until the decode replica gets the request.
	HopUS int64 `yaml:"hop_us" json:"hop_us"`
	// LeaseS is how long the prefill replica keeps the blocks of a computed prompt for the decode replica, which renews
	// the lease when the request enters its queue, in seconds. A request that comes later fails, or the decode replica
	// computes its prompt, as OnExpiry says (fail or recompute).
	LeaseS   float64 `yaml:"lease_s" json:"lease_s"`
	OnExpiry string  `yaml:"on_expiry" json:"on_expiry"`
}

// Backpressure closes a decode replica while MaxWaiting requests that the router sent there have not begun to transfer
// their blocks, because their prompts are being computed or wait for room.
type Backpressure struct {
	MaxWaiting int `yaml:"max_waiting" json:"max_waiting"`
}

// Decider says which requests are computed by the prefill pool: all (always), none (never), those of at least
// PromptTokens of which at least NonCachedTokens are not expected in the cache of the decode replica (prefix-based;
// none if NonCachedTokens is 0), or all but those of which fewer than NewTokens, and less than the share NewRatio, are
// not expected there (conditional).
type Decider struct {
	Type            string  `yaml:"type" json:"type"`
	NonCachedTokens int64   `yaml:"non_cached_tokens" json:"non_cached_tokens"`
	PromptTokens    int64   `yaml:"prompt_tokens" json:"prompt_tokens"`
	NewTokens       int64   `yaml:"new_tokens" json:"new_tokens,omitempty"`
	NewRatio        float64 `yaml:"new_ratio" json:"new_ratio,omitempty"`
}

// The values of Decider.Type, and llm-d's names for them (disagg-profile-handler). DeciderConditional is Dynamo's
// conditional disaggregation (lib/kv-router/src/conditional_disagg.rs).
const (
	DeciderPrefix      = "prefix-based"
	DeciderConditional = "conditional"

	deciderAlways = "always"
	deciderNever  = "never"
)

var deciderAliases = map[string]string{"prefix-based-pd-decider": DeciderPrefix,
	"always-disagg-pd-decider": deciderAlways}

const (
	granularityRequest = "request"
	GranularityChunk   = "chunk"
	GranularityBlock   = "block"
	granularityStream  = "stream"
	decodeFirst        = "decode-first"
	PrefillFirst       = "prefill-first"
	expiryFail         = "fail"
	expiryRecompute    = "recompute"
)

var granularities = []string{granularityRequest, GranularityChunk, GranularityBlock}

// UnmarshalYAML decodes links over the defaults.
func (t *PDTransfer) UnmarshalYAML(decode func(any) error) error {
	type plain PDTransfer
	*t = defaultTransfer
	if err := decode((*plain)(t)); err != nil || t.Granularity != granularityStream {
		return err
	}
	// Decoded over true, only a stated false is false: then the granularity stays what validatePool refuses.
	if t.Pipeline = true; decode((*plain)(t)) == nil && t.Pipeline {
		t.Granularity = GranularityBlock
	}
	return nil
}

// UnmarshalYAML decodes backpressure over the default.
func (b *Backpressure) UnmarshalYAML(decode func(any) error) error {
	type plain Backpressure
	*b = Backpressure{MaxWaiting: 8}
	return decode((*plain)(b))
}

// The defaults of Dynamo (DEFAULT_CONDITIONAL_DISAGG_EFF_ISL_THRESHOLD and …_RATIO_THRESHOLD).
const (
	dynamoNewTokens = 2048
	dynamoNewRatio  = 0.7
)

// UnmarshalYAML decodes a decider over the defaults.
func (d *Decider) UnmarshalYAML(decode func(any) error) error {
	type plain Decider
	*d = defaultDecider
	if err := decode((*plain)(d)); err != nil || d.Type != DeciderConditional {
		return err
	}
	d.NewTokens, d.NewRatio = dynamoNewTokens, dynamoNewRatio
	return decode((*plain)(d))
}

var (
	defaultTransfer = PDTransfer{LatencyUS: 205, OutGBPerS: 50, InGBPerS: 50, Granularity: granularityRequest,
		LeaseS: 30, OnExpiry: expiryFail}
	defaultDecider = Decider{Type: DeciderPrefix, NonCachedTokens: 256}
)

// InPieces reports whether blocks of a prompt move while the rest of it is computed.
func (t *PDTransfer) InPieces() bool { return t != nil && t.Granularity != granularityRequest }

// ComputesPieces reports whether d is a prefill pool whose prompts move in pieces.
func (d *Deployment) ComputesPieces() bool {
	return d.Disaggregates() && d.Prefill == nil && d.Transfer.InPieces()
}

// LeaseUS is LeaseS in µs.
func (t *PDTransfer) LeaseUS() int64 { return int64(math.Round(t.LeaseS * 1e6)) }

// Recomputes reports whether the decode replica computes a prompt whose lease has run out.
func (t *PDTransfer) Recomputes() bool { return t.OnExpiry == expiryRecompute }

// MaxWaiting is the limit of the backpressure of d, 0 if it has none.
func (d *Deployment) MaxWaiting() int {
	if d.Backpressure == nil {
		return 0
	}
	return d.Backpressure.MaxWaiting
}

// Disaggregates reports whether d has a prefill pool.
func (d *Deployment) Disaggregates() bool { return d.Architecture == Disaggregated }

// Disaggregated reports whether any deployment is.
func (c *Config) Disaggregated() bool {
	return slices.ContainsFunc(c.Deployments, func(d Deployment) bool { return d.Disaggregates() })
}

// Disaggregates reports whether a request of this many tokens, of which cached are expected in the cache of the decode
// replica, is computed by the prefill pool.
func (d *Decider) Disaggregates(input, cached int64) bool {
	switch d.Type {
	case deciderAlways:
		return true
	case deciderNever:
		return false
	case DeciderConditional:
		return input-cached >= d.NewTokens || float64(input-cached) >= float64(d.NewRatio*float64(input))
	}
	return d.NonCachedTokens > 0 && input >= d.PromptTokens && input-cached >= d.NonCachedTokens
}

// Ever reports whether any request is computed by the prefill pool.
func (d *Decider) Ever() bool { return d.Type == deciderAlways || d.ReadsCaches() }

// ReadsCaches reports whether the decision depends on the cached tokens.
func (d *Decider) ReadsCaches() bool {
	return d.Type == DeciderPrefix && d.NonCachedTokens > 0 || d.Type == DeciderConditional
}

// PrefillFirst reports whether the prefill replica of a request is chosen before its decode replica.
func (d *Deployment) PrefillFirst() bool { return d.StageOrder == PrefillFirst }

// Pools returns the deployments, and behind them the prefill pools of those that are disaggregated, in the same order.
func (c *Config) Pools() (all []*Deployment) {
	var prefill []*Deployment
	for i := range c.Deployments {
		d := &c.Deployments[i]
		all = append(all, d)
		if d.Disaggregates() {
			prefill = append(prefill, d.prefillPool())
		}
	}
	return append(all, prefill...)
}

// prefillPool returns the prefill pool of d as a deployment of its own.
func (d *Deployment) prefillPool() *Deployment {
	p := d.Prefill
	return &Deployment{ID: d.ID + ".prefill", Model: d.Model, ModelConfig: d.ModelConfig, Architecture: d.Architecture,
		GPU: p.GPU, Replicas: p.Replicas, MinReplicas: p.MinReplicas, MaxReplicas: p.MaxReplicas, Cost: d.Cost,
		Encode: d.Encode, Transfer: d.Transfer,
		Engine: p.Engine, Latency: p.Latency, KVTiers: p.KVTiers, KVOffload: p.KVOffload, Derived: p.Derived,
		Computed: p.Computed, Printed: p.Printed}
}

// eachPool calls f for d, at path at, and for its prefill pool as a deployment of its own.
func (d *Deployment) eachPool(at string, f func(d *Deployment, at string) error) error {
	if err := f(d, at); err != nil || !d.Disaggregates() {
		return err
	}
	p := d.prefillPool()
	err := f(p, at+".prefill")
	*d.Prefill = Pool{GPU: p.GPU, Replicas: p.Replicas, MinReplicas: p.MinReplicas, MaxReplicas: p.MaxReplicas,
		Engine: p.Engine, Latency: p.Latency, KVTiers: p.KVTiers, KVOffload: p.KVOffload, Derived: p.Derived,
		Computed: p.Computed, Printed: p.Printed}
	return err
}

// wholePoolKeys are what a pool may state as a whole, poolKeys also that of which it may state a part.
var (
	wholePoolKeys = []string{"gpu", "replicas", "min_replicas", "max_replicas", "kv_tiers"}
	poolKeys      = slices.Concat(wholePoolKeys, []string{"engine", "latency", "kv_offload"})
)

// splitPools completes the pools of disaggregated deployments by what the deployment states, and moves the decode pool
// into the deployment. It reports whether it changed the document, and warns about what both pools state themselves. A
// prefill pool that --print-config has written is complete.
func (s *source) splitPools(c *Config, warn func(string)) (changed bool) {
	for i := range c.Deployments {
		d := &c.Deployments[i]
		if !d.Disaggregates() {
			continue
		}
		at := deploymentPath(i)
		for _, key := range wholePoolKeys {
			if s.doc.Has(at+"."+key) && s.doc.Has(at+".prefill."+key) && s.doc.Has(at+".decode."+key) {
				warn("deployments." + d.ID + "." + key + " has no effect: its pools prefill and decode each set it")
			}
		}
		if d.Prefill == nil || d.Prefill.Printed == nil {
			s.doc.Merge(at+".prefill", at+".prefill", at, poolKeys...)
		}
		s.doc.Merge(at, at+".decode", at, poolKeys...)
		s.doc.Delete(at + ".decode")
		changed = true
	}
	return changed
}

// completePools sets the defaults of disaggregated deployments.
func (c *Config) completePools() {
	for i := range c.Deployments {
		d := &c.Deployments[i]
		if !d.Disaggregates() {
			continue
		}
		if d.Prefill == nil { // nothing is stated
			d.Prefill = &Pool{Replicas: 1, Engine: defaultEngine()}
		}
		if d.Transfer == nil {
			t := defaultTransfer
			d.Transfer = &t
		}
		if d.Decider == nil {
			decider := defaultDecider
			if d.PrefillFirst() {
				decider.Type, decider.NewTokens, decider.NewRatio = DeciderConditional, dynamoNewTokens, dynamoNewRatio
			}
			d.Decider = &decider
		}
		if name, isAlias := deciderAliases[d.Decider.Type]; isAlias {
			d.Decider.Type = name
		}
		if d.Decider.Type != DeciderConditional { // they have no effect
			d.Decider.NewTokens, d.Decider.NewRatio = 0, 0
		}
		d.StageOrder = cmp.Or(d.StageOrder, decodeFirst)
	}
}

// validatePool checks what only disaggregated deployments have.
func (d *Deployment) validatePool(path string, errorf strictyaml.Errorf) error {
	if d.Architecture == "" {
		for _, part := range []struct {
			name string
			set  bool
		}{{"prefill", d.Prefill != nil}, {"decode", d.Decode != nil}, {"transfer", d.Transfer != nil},
			{"decider", d.Decider != nil}, {"stage_order", d.StageOrder != ""},
			{"backpressure", d.Backpressure != nil}} {
			if part.set {
				return errorf(path+"."+part.name, "needs architecture: %s", Disaggregated)
			}
		}
		return nil
	}
	between := strictyaml.Between[int64](errorf, path+".")
	switch t, deciders := d.Transfer, []string{DeciderPrefix, DeciderConditional, deciderAlways, deciderNever}; {
	case !d.Disaggregates():
		return errorf(path+".architecture", "must be %s, or not set, is %q", Disaggregated, d.Architecture)
	case d.StageOrder != decodeFirst && d.StageOrder != PrefillFirst:
		return errorf(path+".stage_order", "must be %s or %s, is %q", decodeFirst, PrefillFirst, d.StageOrder)
	case d.PrefillFirst() && d.Backpressure != nil:
		return errorf(path+".backpressure", "is not supported with stage_order: %s", PrefillFirst)
	case d.PrefillFirst() && (d.MaxReplicas > 0 || d.Prefill.MaxReplicas > 0):
		return errorf(path+".stage_order", "auto-scaling is not supported with %s", PrefillFirst)
	case t.Granularity == granularityStream:
		return errorf(path+".transfer.pipeline", "must be true with granularity: %s; without a pipeline it is %s",
			granularityStream, GranularityBlock)
	case !slices.Contains(granularities, t.Granularity):
		return errorf(path+".transfer.granularity", "must be one of %q, is %q",
			append(granularities, granularityStream), t.Granularity)
	case t.OnExpiry != expiryFail && t.OnExpiry != expiryRecompute:
		return errorf(path+".transfer.on_expiry", "must be %s or %s, is %q", expiryFail, expiryRecompute, t.OnExpiry)
	case !slices.Contains(deciders, d.Decider.Type):
		return errorf(path+".decider.type", "must be one of %q, is %q", deciders, d.Decider.Type)
	}
	return cmp.Or(d.prefillPool().validateBounds(path+".prefill", errorf),
		between("transfer.latency_us", d.Transfer.LatencyUS, 0, maxLatencyUS),
		between("transfer.hop_us", d.Transfer.HopUS, 0, maxLatencyUS),
		strictyaml.Between[float64](errorf, path)(".transfer.lease_s", d.Transfer.LeaseS, 1e-6, maxLatencyUS/1e6),
		d.checkBackpressure(between),
		checkGBPerS(path+".transfer.out_gb_per_s", d.Transfer.OutGBPerS, errorf),
		checkGBPerS(path+".transfer.in_gb_per_s", d.Transfer.InGBPerS, errorf),
		between("decider.non_cached_tokens", d.Decider.NonCachedTokens, 0, maxCacheTokens),
		between("decider.prompt_tokens", d.Decider.PromptTokens, 0, maxCacheTokens),
		between("decider.new_tokens", d.Decider.NewTokens, 0, maxCacheTokens),
		strictyaml.Between[float64](errorf, path)(".decider.new_ratio", d.Decider.NewRatio, 0, 1),
		strictyaml.Between[int](errorf, path)(".prefill.replicas", d.Prefill.Replicas, 1, maxReplicas),
		d.Prefill.Latency.validate(path+".prefill.latency", errorf))
}

func (d *Deployment) checkBackpressure(between func(string, int64, int64, int64) error) error {
	if d.Backpressure == nil {
		return nil
	}
	return between("backpressure.max_waiting", int64(d.Backpressure.MaxWaiting), 1, maxCacheTokens)
}

// pool checks and completes a deployment that is a pool of a disaggregated one.
func (c *resolver) pool(d *Deployment, at string) error {
	if !d.Disaggregates() {
		return nil
	}
	if len(d.Computed.KVGroups) > 0 {
		return c.errorf(at, "disaggregation is not supported for a model with several KV cache groups or with windows")
	}
	return c.blockBytes(d, at, "the transfer between pools")
}

// validatePools checks that the pools of disaggregated deployments fit together, and the control plane.
func (c *Config) validatePools(errorf strictyaml.Errorf) error {
	for i := range c.Deployments {
		d := &c.Deployments[i]
		if !d.Disaggregates() {
			continue
		}
		at, prefill, decode := deploymentPath(i), &d.Prefill.Engine, &d.Engine
		switch {
		case prefill.BlockSize != decode.BlockSize:
			return errorf(at+".prefill.engine.block_size", "must be that of the decode pool, %d, is %d",
				decode.BlockSize, prefill.BlockSize)
		case d.Prefill.Computed.KVBlockBytes != d.Computed.KVBlockBytes:
			return errorf(at+".prefill.engine",
				"must have KV blocks as large as those of the decode pool, %d bytes, has %d",
				d.Computed.KVBlockBytes, d.Prefill.Computed.KVBlockBytes)
		case d.PrefillFirst() && c.servedTwice(d.Model):
			return errorf(at+".stage_order", "%s is not supported where several deployments serve the model %q",
				PrefillFirst, d.Model)
		case d.PrefillFirst() && c.Fails():
			return errorf(at+".stage_order", "%s is not supported with failures", PrefillFirst)
		case d.Backpressure != nil && c.servedTwice(d.Model):
			return errorf(at+".backpressure", "is not supported where several deployments serve the model %q", d.Model)
		}
		if err := c.checkPieces(d, at, errorf); err != nil {
			return err
		}
		if err := c.ControlPlane.FlowControl.checkPools(errorf); err != nil {
			return err
		}
		plane, err := c.Plane(func(string) uint64 { return 0 })
		if err != nil {
			return err
		}
		if countsInFlight(plane.Needs()) {
			stage := "routing"
			switch {
			case countsInFlight(plane.Routing.Needs()):
			case plane.PrefillRouting != nil && countsInFlight(plane.PrefillRouting.Needs()):
				stage = "prefill_routing"
			case plane.Autoscale != nil && countsInFlight(plane.Autoscale.Needs()):
				stage = "autoscale"
			}
			return errorf("policies."+stage, "a policy that counts tokens or blocks in flight is not supported with "+
				"a disaggregated deployment")
		}
	}
	return nil
}

// warnUnusedDeciders reports what only another type of decider reads.
func (c *Config) warnUnusedDeciders(report func(path, why string)) {
	for i := range c.Deployments {
		d := &c.Deployments[i]
		if x := d.Decider; x != nil && x.Type != DeciderPrefix {
			why := "decider.type is " + x.Type
			if x.NonCachedTokens != defaultDecider.NonCachedTokens {
				report("deployments."+d.ID+".decider.non_cached_tokens", why)
			}
			if x.PromptTokens != defaultDecider.PromptTokens {
				report("deployments."+d.ID+".decider.prompt_tokens", why)
			}
		}
	}
}

// countsInFlight reports whether policies read the tokens or blocks in flight at replicas.
func countsInFlight(needs policy.Needs) bool {
	return needs&(policy.NeedPrefillTokens|policy.NeedActiveBlocks) != 0
}

// checkPieces checks that d has nothing that does not go with pieces of prompts or with requests that run while blocks
// arrive.
func (c *Config) checkPieces(d *Deployment, at string, errorf strictyaml.Errorf) error {
	field, value := ".transfer.granularity", d.Transfer.Granularity
	if !d.Transfer.InPieces() {
		field, value = ".transfer.pipeline", "true"
	}
	switch {
	case !d.Transfer.InPieces() && !d.Transfer.Pipeline:
		return nil
	case d.MaxReplicas > 0 || d.Prefill.MaxReplicas > 0:
		return errorf(at+field, "%s is not supported with auto-scaling (max_replicas)", value)
	case c.Fails():
		return errorf(at+field, "%s is not supported with failures", value)
	case d.Encode != nil:
		return errorf(at+field, "%s is not supported with encode replicas", value)
	case d.Transfer.Pipeline && len(d.KVTiers) > 0:
		return errorf(at+".transfer.pipeline", "is not supported with kv_tiers of the decode pool")
	}
	return nil
}

// checkPools checks that flow control, which may be nil, does not count tokens in flight.
func (f *FlowControl) checkPools(errorf strictyaml.Errorf) error {
	if f == nil {
		return nil
	}
	gate, _, err := f.Gate()
	if err == nil && countsInFlight(gate.Needs()) {
		err = errorf("control_plane.flow_control.detector", "a detector that counts tokens in flight is not supported "+
			"with a disaggregated deployment")
	}
	return err
}

// servedTwice reports whether several deployments serve a model.
func (c *Config) servedTwice(model string) bool {
	n := 0
	for i := range c.Deployments {
		if c.Deployments[i].Model == model {
			n++
		}
	}
	return n > 1
}

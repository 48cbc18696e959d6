package sim

import (
	"slices"

	"blis/pkg/cluster"
	"blis/pkg/dist"
	"blis/pkg/engine"
	"blis/pkg/kv"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// newSimulation builds the cluster with idle, empty replicas.
func newSimulation(c *cluster.Config, classes []stream.SLOClass, specs []replicaSpec, o *Options) (*simulation, error) {
	plane, err := c.Plane(func(name string) uint64 { return dist.NewStream(o.Seed, name).Uint64() })
	if err != nil {
		return nil, err
	}
	r, err := newRouter(c, classes, plane)
	if err != nil {
		return nil, err
	}
	s := &simulation{horizon: noHorizon, dividesCost: c.DividesCost(), energy: c.Energy, draftSeed: o.Seed,
		events: eventQueue{limit: noLimit},
		tree:   kv.NewTree(), router: r, decisions: decisions{override: override{decision: -1}}}
	if o.Counterfactual.enabled() { // estimates need the output lengths that policies would predict
		s.router.needs.all |= policy.NeedPredicted
	}
	pools := c.Pools()
	for i, d := range pools {
		if err := s.addDeployment(c, d, i, &specs[i], o); err != nil {
			return nil, err
		}
	}
	s.connectPools(c)
	s.addEncoders(c)
	s.addBackpressure()
	s.setUpRouter(pools)
	s.telemetry = newTelemetry(s)
	for i := range s.replicas {
		s.telemetry.start(s, int32(i))
	}
	if c.Fails() || s.scales() {
		s.setUpFleet(&fleet{})
	}
	if c.Fails() {
		return s, s.setUpFailures(c, o.Seed)
	}
	return s, nil
}

// addDeployment adds d, deployment i, and its replicas.
func (s *simulation) addDeployment(c *cluster.Config, d *cluster.Deployment, i int, spec *replicaSpec,
	o *Options) error {
	added := deployment{id: d.ID, first: len(s.replicas), end: len(s.replicas) + d.Replicas*d.Engine.Ranks(),
		model: spec.model, limits: limitsOf(d), tokenBudget: int64(d.Engine.MaxNumBatchedTokens),
		gpus:          d.Engine.GPUs() / d.Engine.Ranks(),
		stages:        len(d.Computed.PipelineLayers),
		perGPUHour:    c.PerGPUHour(d),
		power:         spec.power,
		blockBytes:    d.Computed.KVBlockBytes,
		hasTiers:      len(d.KVTiers) > 0,
		speculates:    d.Engine.SpeculativeConfig != nil,
		grammars:      newGrammarTimes(d, o.Seed),
		door:          frontDoorOf(&d.Engine),
		encoders:      noEncoders,
		measuredRange: d.Latency.Range, unmeasured: unmeasured(d), fromFile: d.FromFile()}
	k := 0
	build := func() {
		s.replicas = append(s.replicas, s.newReplica(d, i, k, spec, o))
		k++
	}
	for range d.Replicas * d.Engine.Ranks() {
		build()
	}
	s.addServers(d)
	if c.Scales(d) {
		e, err := newElastic(c, d, s.router.policies, policyEngine(d, spec.model, i >= len(c.Deployments)), o.Seed)
		if err != nil {
			return err
		}
		if i < len(c.Deployments) && len(c.Fleet(i)) > 1 {
			e.placement = s.router.policies.Placement.Clone()
		}
		e.build, added.elastic = build, e
	}
	s.deployments = append(s.deployments, added)
	if i < len(c.Deployments) { // the others are prefill pools
		s.addModel(d.Model, i)
	}
	return nil
}

// newReplica returns replica k of deployment i, which will be the next replica of the cluster.
func (s *simulation) newReplica(d *cluster.Deployment, i, k int, spec *replicaSpec, o *Options) replica {
	cache := kv.NewCache(s.tree, cacheConfig(d))
	cfg := engineConfig(d)
	cfg.KeepGaps, cfg.KeepBatches = o.ITL, o.Trace == stream.TraceLevels[2]
	if cfg.Offload = offloadConfig(d, s.tree, !s.router.needs.fcfs); cfg.Offload != nil {
		if s.transfers == nil { // only records and routers that read tiers see when stores end
			s.transfers = &transfers{left: map[int32]string{},
				quiet: !cfg.KeepBatches && s.router.needs.all&policy.NeedTierBlocks == 0}
		}
		cfg.Offload.Storage = s.storageOf(d, i)
		cfg.Offload.QuietStores = s.transfers.quiet && cfg.Offload.Storage == nil
	}
	cfg.ByArrival = !s.router.needs.fcfs
	if cfg.Encoder != nil {
		cfg.Encoder.Remote = d.Encode != nil
	}
	cfg.Intensity = spec.power.intensity
	cfg.PreemptionScore = s.preemptionScorer(int32(len(s.replicas)))
	jitter := spec.newJitter(k)
	model := jitter.wrap(spec.model)
	if d.Lockstep() {
		model = spec.model // the jitter is that of joint steps
	}
	return replica{engine: engine.New(cfg, model, cache), deployment: i, index: stream.Index(k),
		maxSeqs: cfg.MaxNumSeqs, jitter: jitter, server: missing,
		pipelined: d.Prefill != nil && d.Transfer.Pipeline}
}

// setUpRouter adds the parts of the router that depend on the replicas.
func (s *simulation) setUpRouter(pools []*cluster.Deployment) {
	r := s.router
	if r.needs.all&policy.NeedShadow != 0 {
		var blockSizes []int
		for i := range s.replicas {
			blockSizes = append(blockSizes, pools[s.replicas[i].deployment].HitSize())
		}
		r.prefixes.index = policy.NewShadow(s.tree, r.config.ShadowBlocks, blockSizes)
	}
	var blockTokens, capacity []int
	for i := range s.replicas {
		cache := s.replicas[i].engine.Cache()
		blockTokens, capacity = append(blockTokens, cache.BlockSize()), append(capacity, cache.Total())
	}
	if r.needs.all&policy.NeedBlockIndex != 0 {
		r.prefixes.blocks = policy.NewBlockIndex(s.tree, r.policies.BlockIndex, blockTokens, capacity)
	}
	if r.needs.all&policy.NeedActiveBlocks != 0 {
		r.active = policy.NewActiveBlocks(blockTokens)
	}
	if r.config.FlowControl != nil {
		r.flow.sent = make([]recentlySent, len(s.replicas))
		for range s.models {
			r.flow.queues = append(r.flow.queues, policy.NewFlow(r.flow.config.Queue()))
		}
	}
}

// addReplica makes room for a new replica with this cache.
func (r *router) addReplica(s *simulation, cache *kv.Cache, hitSize int) {
	if r.needs.all&policy.NeedShadow != 0 {
		r.prefixes.index.AddReplica(s.tree, r.config.ShadowBlocks, hitSize)
	}
	if r.prefixes.blocks != nil {
		r.prefixes.blocks.AddReplica(cache.BlockSize(), cache.Total())
	}
	if r.active != nil {
		r.active.AddReplica(cache.BlockSize())
	}
	if r.config.FlowControl != nil {
		r.flow.sent = append(r.flow.sent, recentlySent{})
	}
}

func (s *simulation) addModel(model string, deployment int) {
	i := slices.IndexFunc(s.models, func(m servedModel) bool { return m.name == model })
	if i < 0 {
		i = len(s.models)
		s.models = append(s.models, servedModel{name: model})
	}
	s.models[i].deployments = append(s.models[i].deployments, deployment)
}

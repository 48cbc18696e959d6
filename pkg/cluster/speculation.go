package cluster

import (
	"slices"

	"blis/pkg/latency"
	"blis/pkg/model"
	"blis/pkg/registry"
	"blis/pkg/strictyaml"
)

// SpeculativeConfig is speculative decoding, with the names of vLLM 0.33 (vllm/config/speculative.py). Its rules are
// those of that version, whatever the preset.
type SpeculativeConfig struct {
	// Method is one of SpeculativeMethods. Model is the drafter's model, which the method draft_model needs.
	Method               string `yaml:"method" json:"method"`
	Model                string `yaml:"model" json:"model,omitempty"`
	NumSpeculativeTokens int    `yaml:"num_speculative_tokens" json:"num_speculative_tokens"`
	// NumSpeculativeTokensPerBatchSize replaces NumSpeculativeTokens, if that is larger: entries [first, last, tokens]
	// of the number of sequences in a step. The tokens of an entry are also those of larger numbers up to the next one.
	NumSpeculativeTokensPerBatchSize [][]int `yaml:"num_speculative_tokens_per_batch_size" json:"num_speculative_tokens_per_batch_size,omitempty"`
	// AcceptanceRate is the probability that a draft is accepted if those before it are. SyntheticAcceptanceRates are
	// the shares of drafts at each position that are accepted, and SyntheticAcceptanceLength is the mean number of
	// tokens of a step that verifies drafts. One of the three is set. A request can have its own rate.
	AcceptanceRate            *float64  `yaml:"acceptance_rate" json:"acceptance_rate,omitempty"`
	SyntheticAcceptanceRates  []float64 `yaml:"synthetic_acceptance_rates" json:"synthetic_acceptance_rates,omitempty"`
	SyntheticAcceptanceLength *float64  `yaml:"synthetic_acceptance_length" json:"synthetic_acceptance_length,omitempty"`
	// DisableLookaheadBlockHashes drops the last block of prefix hits instead of hashing the token behind each block,
	// and DisableEagleBlockDrop does neither. Both are for methods with the target's hidden states.
	DisableLookaheadBlockHashes bool `yaml:"disable_lookahead_block_hashes" json:"disable_lookahead_block_hashes,omitempty"`
	DisableEagleBlockDrop       bool `yaml:"disable_eagle_block_drop" json:"disable_eagle_block_drop,omitempty"`
	// DraftPassUS and DraftSequenceUS are the time of one draft token of all sequences: constant, and for each of them.
	// Without them it follows from the latency model.
	DraftPassUS     *float64 `yaml:"draft_pass_us" json:"draft_pass_us,omitempty"`
	DraftSequenceUS *float64 `yaml:"draft_sequence_us" json:"draft_sequence_us,omitempty"`
}

// SpeculativeMethod is a way to propose tokens.
type SpeculativeMethod struct {
	// hidden: the drafter reads hidden states of the model and the next token. own: it is a model of its own.
	hidden, own bool
}

// SpeculativeMethods are those that are simulated.
var SpeculativeMethods = registry.Table[SpeculativeMethod]{
	{Name: "mtp", Doc: "the model's own layer for later tokens", Value: SpeculativeMethod{hidden: true}},
	{Name: "eagle", Doc: "a layer that was trained for the model", Value: SpeculativeMethod{hidden: true}},
	{Name: "eagle3", Doc: "as eagle", Value: SpeculativeMethod{hidden: true}},
	{Name: "draft_model", Doc: "a smaller model", Value: SpeculativeMethod{own: true}},
	{Name: "ngram", Doc: "text that came before, found on the host"},
}

const (
	maxSpeculativeTokens = 64
	// The time on the host of a draft token of n-grams, which is assumed.
	ngramPassUS, ngramSequenceUS = 10, 1
)

func (s *SpeculativeConfig) method() SpeculativeMethod {
	m, err := SpeculativeMethods.Get("method", s.Method)
	if err != nil {
		panic("cluster: " + err.Error()) // it is checked
	}
	return m
}

// Lookahead is vLLM's num_lookahead_tokens.
func (s *SpeculativeConfig) Lookahead() int {
	if m := s.method(); m.hidden || m.own {
		return s.NumSpeculativeTokens
	}
	return 0
}

// BudgetSlots is vLLM's max_num_new_slots_for_drafting.
func (s *SpeculativeConfig) BudgetSlots() int {
	if s.method().own {
		return 1
	}
	return 0
}

// HashLookahead is vLLM's num_hash_lookahead_tokens, and DropLastHit its use_eagle_block_drop.
func (s *SpeculativeConfig) HashLookahead() int {
	if s != nil && s.method().hidden && !s.DisableEagleBlockDrop && !s.DisableLookaheadBlockHashes {
		return 1
	}
	return 0
}

// DropLastHit reports whether the last block of a prefix hit is computed again.
func (s *SpeculativeConfig) DropLastHit() bool {
	return s != nil && s.method().hidden && !s.DisableEagleBlockDrop && s.DisableLookaheadBlockHashes
}

// Rates are the probabilities of drafts, each if those before it are accepted.
func (s *SpeculativeConfig) Rates() []float64 {
	rates := make([]float64, s.NumSpeculativeTokens)
	shares := s.SyntheticAcceptanceRates
	switch {
	case s.AcceptanceRate != nil:
		for i := range rates {
			rates[i] = *s.AcceptanceRate
		}
		return rates
	case s.SyntheticAcceptanceLength != nil: // the schedule of the least variance: all but one of the drafts are 0 or 1
		shares = nil
		for left := *s.SyntheticAcceptanceLength - 1; len(shares) < len(rates); left-- {
			shares = append(shares, max(0, min(1, left)))
		}
	}
	before := 1.0
	for i, share := range shares {
		if before > 0 {
			rates[i] = min(1, share/before)
		}
		before = share
	}
	return rates
}

// MeanAcceptanceLength is the mean number of tokens of a step that verifies all drafts.
func (s *SpeculativeConfig) MeanAcceptanceLength() float64 {
	mean, all := 1.0, 1.0
	for _, r := range s.Rates() {
		all = float64(all * r)
		mean += all
	}
	return mean
}

// Schedule is the number of drafts by the number of sequences of a step, nil if it is always the same.
func (s *SpeculativeConfig) Schedule(most int) []int {
	if len(s.NumSpeculativeTokensPerBatchSize) == 0 {
		return nil
	}
	all := []int{0}
	for i, e := range s.NumSpeculativeTokensPerBatchSize {
		end := most + 1
		if i+1 < len(s.NumSpeculativeTokensPerBatchSize) {
			end = min(end, s.NumSpeculativeTokensPerBatchSize[i+1][0])
		}
		for len(all) < end {
			all = append(all, min(e[2], s.NumSpeculativeTokens))
		}
	}
	return all
}

// DraftSlots is how many more tokens than those that are computed a request can have blocks for.
func (d *Deployment) DraftSlots() int64 {
	s := d.Engine.SpeculativeConfig
	if s == nil {
		return 0
	}
	drafts := int64(s.NumSpeculativeTokens)
	if d.Engine.AsyncScheduling { // those of two steps, and one step too many
		return 2*drafts + 1 + int64(s.Lookahead())
	}
	return drafts + int64(s.Lookahead())
}

// TokensOfStep is the largest number of tokens that a step can compute.
func (e *Engine) TokensOfStep() int {
	if e.SpeculativeConfig == nil {
		return e.MaxNumBatchedTokens
	}
	return e.MaxNumBatchedTokens - e.SpeculativeConfig.BudgetSlots()
}

// validate returns an error for the first invalid value.
func (s *SpeculativeConfig) validate(path string, e *Engine, errorf strictyaml.Errorf) error {
	if s == nil {
		return nil
	}
	if _, err := SpeculativeMethods.Get("method", s.Method); err != nil {
		return errorf(path+".method", "%v", err)
	}
	if err := strictyaml.Between[int](errorf, path)(".num_speculative_tokens", s.NumSpeculativeTokens, 1,
		maxSpeculativeTokens); err != nil {
		return err
	}
	if err := s.validateAcceptance(path, errorf); err != nil {
		return err
	}
	for _, f := range []struct {
		name  string
		value *float64
	}{{".draft_pass_us", s.DraftPassUS}, {".draft_sequence_us", s.DraftSequenceUS}} {
		if f.value != nil {
			if err := strictyaml.Between[float64](errorf, path)(f.name, *f.value, 0, maxLatencyUS); err != nil {
				return err
			}
		}
	}
	threshold, least := max(e.LongPrefillTokenThreshold, e.ChunkSize), 1+s.NumSpeculativeTokens
	switch {
	case s.Model != "" && s.Method == "ngram":
		return errorf(path+".model", "must not be set: n-grams have no model")
	case s.DraftSequenceUS != nil && s.DraftPassUS == nil:
		return errorf(path+".draft_pass_us", "must be set, since draft_sequence_us is")
	case threshold > 0 && threshold < least:
		return errorf(path, "must not be set with a long_prefill_token_threshold below 1 + num_speculative_tokens = "+
			"%d, which fails in vLLM, is %d", least, threshold)
	case e.MaxNumBatchedTokens < least+s.BudgetSlots():
		return errorf(path, "needs max_num_batched_tokens of at least %d for the drafts of a request, has %d",
			least+s.BudgetSlots(), e.MaxNumBatchedTokens)
	case len(s.NumSpeculativeTokensPerBatchSize) > 0 && e.DataParallelSize > 1:
		return errorf(path+".num_speculative_tokens_per_batch_size",
			"is not possible with data parallelism: its ranks could have different numbers of drafts")
	}
	return s.validateSchedule(path+".num_speculative_tokens_per_batch_size", errorf)
}

// validateAcceptance checks what says how many drafts are accepted.
func (s *SpeculativeConfig) validateAcceptance(path string, errorf strictyaml.Errorf) error {
	stated := 0
	for _, is := range []bool{s.AcceptanceRate != nil, s.SyntheticAcceptanceRates != nil,
		s.SyntheticAcceptanceLength != nil} {
		if is {
			stated++
		}
	}
	if stated != 1 {
		return errorf(path+".acceptance_rate",
			"set exactly one of acceptance_rate, synthetic_acceptance_rates and synthetic_acceptance_length")
	}
	between, n := strictyaml.Between[float64](errorf, path), s.NumSpeculativeTokens
	switch {
	case s.AcceptanceRate != nil:
		return between(".acceptance_rate", *s.AcceptanceRate, 0, 1)
	case s.SyntheticAcceptanceLength != nil:
		return between(".synthetic_acceptance_length", *s.SyntheticAcceptanceLength, 1, float64(n+1))
	}
	rates := s.SyntheticAcceptanceRates
	for i, r := range rates {
		if !(r >= 0) || r > 1 || i > 0 && r > rates[i-1] {
			return errorf(path+".synthetic_acceptance_rates", "must be between 0 and 1 and not rise, is %v", rates)
		}
	}
	if len(rates) != n {
		return errorf(path+".synthetic_acceptance_rates", "must have num_speculative_tokens = %d numbers, has %d", n,
			len(rates))
	}
	return nil
}

// validateSchedule checks the numbers of drafts by batch size, as validate_and_normalize_dynamic_sd_schedule does.
func (s *SpeculativeConfig) validateSchedule(path string, errorf strictyaml.Errorf) error {
	last := 0
	for i, e := range s.NumSpeculativeTokensPerBatchSize {
		if len(e) != 3 {
			return errorf(path, "must have entries [first, last, tokens], has %v", e)
		}
		if e[0] <= last || e[1] < e[0] || e[2] < 0 || i == 0 && e[0] != 1 {
			return errorf(path, "must have rising ranges of batch sizes from 1 on, and at least 0 tokens, has %v",
				s.NumSpeculativeTokensPerBatchSize)
		}
		last = e[1]
	}
	return nil
}

// speculation checks whether speculative decoding goes with the rest of a deployment, and how long drafts take.
func (c *resolver) speculation(d *Deployment, at string, arch *model.Architecture) error {
	s := d.Engine.SpeculativeConfig
	if s == nil {
		return nil
	}
	at += ".engine.speculative_config"
	switch {
	case len(d.KVTiers) > 0:
		return c.errorf(at, "is not supported with kv_tiers")
	case d.Architecture != "": // a pool, too
		return c.errorf(at, "is not supported for a disaggregated deployment")
	case len(d.Computed.KVGroups) > 0:
		return c.errorf(at, "is not supported for a model with several KV cache groups or with windows")
	}
	m := s.method()
	if !m.hidden && (s.DisableLookaheadBlockHashes || s.DisableEagleBlockDrop) {
		c.warnf(d, "the block hashes and hits in engine.speculative_config have no effect with the method %s", s.Method)
	}
	c.warnOfRules(d, "speculative decoding")
	switch {
	case s.DraftPassUS != nil:
	case !m.hidden && !m.own:
		s.DraftPassUS, s.DraftSequenceUS = new(float64(ngramPassUS)), new(float64(ngramSequenceUS))
	case arch == nil && m.hidden:
		return c.errorf(at+".draft_pass_us", "must be set, since the number of the model's layers is unknown")
	case m.own:
		return c.draftModel(d, at)
	default:
		d.Computed.DraftShare = 1 / float64(arch.Work().Layers)
	}
	return nil
}

// draftModel finds the step times of a drafter that is a model of its own.
func (c *resolver) draftModel(d *Deployment, at string) error {
	s := d.Engine.SpeculativeConfig
	if s.Model == "" {
		return c.errorf(at+".model", "must be set with the method draft_model, or draft_pass_us")
	}
	arch, err := model.BuiltIn(s.Model)
	if err != nil {
		return c.errorf(at+".model", "%v; or set draft_pass_us", err)
	}
	if d.GPU == "" {
		return c.errorf(at+".draft_pass_us", "must be set, since no gpu is set")
	}
	gpu, err := c.catalog.GPU(d.GPU)
	if err != nil {
		return c.errorf(at+".model", "%v", err)
	}
	tp := d.Engine.TensorParallelSize
	if slices.ContainsFunc(arch.Layers, func(l model.Layers) bool { return !canShard(&l.Attention, tp) }) {
		return c.errorf(at+".model", "cannot be sharded over tensor_parallel_size = %d GPUs", tp)
	}
	d.Computed.Draft = &latency.Replica{Work: arch.Work(), Machine: machine(d, arch, gpu)}
	return nil
}

// drafting is how long the drafter takes behind steps that m times.
func (d *Deployment) drafting(m latency.Model) (latency.Drafting, error) {
	s := d.Engine.SpeculativeConfig
	switch {
	case s.DraftPassUS != nil:
		x := latency.Drafting{PassUS: *s.DraftPassUS}
		if s.DraftSequenceUS != nil {
			x.SequenceUS = *s.DraftSequenceUS
		}
		return x, nil
	case d.Computed.Draft != nil:
		build, err := latency.Models.Get("latency model", "roofline")
		if err != nil {
			return latency.Drafting{}, err
		}
		own, err := build(latency.Coefficients{Alpha: []float64{0, 0, 0}, Replica: d.Computed.Draft})
		return latency.Drafting{Model: own, Share: 1}, err
	}
	return latency.Drafting{Model: m, Share: d.Computed.DraftShare}, nil
}

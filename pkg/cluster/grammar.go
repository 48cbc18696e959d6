package cluster

import (
	"cmp"

	"blis/pkg/strictyaml"
)

// StructuredOutput is what outputs that follow a grammar cost. vLLM has it for all models; the rules are those of 0.33,
// whatever the preset.
type StructuredOutput struct {
	// CompileUS is the mean time to compile a grammar that a replica does not have, and CompileCV the coefficient of
	// variation between grammars, whose times are log-normal. Workers grammars are compiled at a time.
	CompileUS *float64 `yaml:"grammar_compile_us" json:"grammar_compile_us,omitempty"`
	CompileCV float64  `yaml:"grammar_compile_cv" json:"grammar_compile_cv,omitempty"`
	Workers   int      `yaml:"grammar_workers" json:"grammar_workers,omitempty"`
	// MaskUS is the time in which the host fills the mask of one token. SamplingUS is the part of a step, at its end,
	// that waits for the masks.
	MaskUS     *float64 `yaml:"grammar_mask_us" json:"grammar_mask_us,omitempty"`
	SamplingUS *float64 `yaml:"sampling_us" json:"sampling_us,omitempty"`
}

// compileUS and maskUS are medians over 10163 JSON schemas (MaskBench of JSONSchemaBench, xgrammar 0.1.10 with one
// thread on an AMD EPYC 7V13: TTFM p50 and TBM p50). grammarWorkers is that of vLLM, (CPUs + 1) / 2, for the 224 CPUs
// of a DGX H100.
const (
	compileUS      = 535_498
	maskUS         = 8
	grammarWorkers = 112
	minSamplingUS  = 1
)

const (
	maxCompileUS      = 3_600_000_000
	maxCompileCV      = 100
	maxGrammarWorkers = 1 << 16
)

// IsSet reports whether any setting is stated.
func (s *StructuredOutput) IsSet() bool { return *s != StructuredOutput{} }

// WithDefaults returns s with the defaults of what is not set.
func (s StructuredOutput) WithDefaults() StructuredOutput {
	or := func(p *float64, by float64) *float64 {
		if p == nil {
			return &by
		}
		return p
	}
	s.CompileUS, s.MaskUS, s.SamplingUS = or(s.CompileUS, compileUS), or(s.MaskUS, maskUS),
		or(s.SamplingUS, minSamplingUS)
	s.Workers = cmp.Or(s.Workers, grammarWorkers)
	return s
}

// validate returns an error for the first invalid value.
func (s *StructuredOutput) validate(path string, errorf strictyaml.Errorf) error {
	of := s.WithDefaults()
	between := strictyaml.Between[float64](errorf, path+".")
	return cmp.Or(
		between("grammar_compile_us", *of.CompileUS, 0, maxCompileUS),
		between("grammar_compile_cv", of.CompileCV, 0, maxCompileCV),
		strictyaml.Between[int](errorf, path+".")("grammar_workers", of.Workers, 1, maxGrammarWorkers),
		between("grammar_mask_us", *of.MaskUS, 0, maxLatencyUS),
		between("sampling_us", *of.SamplingUS, minSamplingUS, maxLatencyUS))
}

// SimulatesGrammars reports whether requests with a grammar can be served as structured output.
func (d *Deployment) SimulatesGrammars() bool { return d.withoutGrammars() == "" && !d.Disaggregates() }

// withoutGrammars says with what structured output is not supported, "" if it is.
func (d *Deployment) withoutGrammars() string {
	const elsewhere = ": structured output is not simulated there"
	switch e := &d.Engine; {
	case len(d.KVTiers) > 0:
		return "with kv_tiers" + elsewhere
	case d.Architecture != "": // a pool, too
		return "for a disaggregated deployment" + elsewhere
	case e.DataParallelSize > 1:
		return "with data_parallel_size above 1, since each rank compiles its own grammars"
	case e.PipelineParallelSize > 1:
		return "with pipeline_parallel_size above 1: masks of batches in flight are not simulated"
	case e.MaxTokensPerItem > 0:
		return "with mm_max_tokens_per_item" + elsewhere
	}
	return ""
}

// structuredOutput checks whether its settings go with the rest of a deployment, and fills in the defaults if any is
// set.
func (c *resolver) structuredOutput(d *Deployment, at string) error {
	s := &d.Engine.StructuredOutput
	if !s.IsSet() {
		return nil
	}
	if why := d.withoutGrammars(); why != "" {
		return c.errorf(at+".engine."+s.first(), "is not supported %s", why)
	}
	c.warnOfRules(d, "structured output")
	*s = s.WithDefaults()
	return nil
}

// first is the name of a setting that is stated.
func (s *StructuredOutput) first() string {
	switch {
	case s.CompileUS != nil:
		return "grammar_compile_us"
	case s.CompileCV != 0:
		return "grammar_compile_cv"
	case s.Workers != 0:
		return "grammar_workers"
	case s.MaskUS != nil:
		return "grammar_mask_us"
	}
	return "sampling_us"
}

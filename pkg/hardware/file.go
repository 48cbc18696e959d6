package hardware

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"blis/pkg/latency"
	"blis/pkg/registry"
	"blis/pkg/strictyaml"
)

// File is a file of the catalog. All parts are optional.
type File struct {
	Version int `yaml:"version" json:"version"`
	// Sources has the texts of the keys in the GPUs' sources. GPUs may also use keys of earlier
	// files.
	Sources  map[string]string `yaml:"sources" json:"sources,omitempty"`
	Defaults Defaults          `yaml:"defaults" json:"defaults"`
	GPUs     []*GPU            `yaml:"gpus" json:"gpus,omitempty"`
	// Coefficients are latency coefficients fitted to measurements.
	Coefficients []*Set `yaml:"coefficients" json:"coefficients,omitempty"`
}

// Defaults apply to GPUs of a file, and of later ones, that do not state them.
type Defaults struct {
	Efficiency latency.Efficiency `yaml:"efficiency" json:"efficiency"`
}

// addGPUs adds the GPUs of a file to the catalog.
func (c *Catalog) addGPUs(f *File, doc *strictyaml.Doc) error {
	if f.Version != 1 {
		return doc.Errorf("version", "must be 1, is %d", f.Version)
	}
	maps.Copy(c.sources, f.Sources)
	fill(doc, "defaults.efficiency", &f.Defaults.Efficiency, c.defaults)
	c.defaults = f.Defaults.Efficiency
	seen := map[string]bool{}
	for i, g := range f.GPUs {
		at := fmt.Sprintf("gpus[%d]", i)
		if g == nil {
			return doc.Errorf(at, "must have an id and facts")
		}
		fill(doc, at+".efficiency", &g.Efficiency, c.defaults)
		if err := c.check(g, at, doc.Errorf); err != nil {
			return err
		}
		if seen[normalize(g.ID)] {
			return doc.Errorf(at+".id", "%q is the id of an earlier GPU of this file", g.ID)
		}
		seen[normalize(g.ID)] = true
		if err := c.put(g, at, doc.Errorf); err != nil {
			return err
		}
	}
	return nil
}

// errorf makes an error about the value at a path.
type errorf func(path, format string, args ...any) error

// put puts a GPU into the catalog, at the index of the one that it replaces.
func (c *Catalog) put(g *GPU, at string, errorf errorf) error {
	index := slices.IndexFunc(c.gpus, func(have *GPU) bool { return normalize(have.ID) == normalize(g.ID) })
	if index < 0 {
		index = len(c.gpus)
		c.gpus = append(c.gpus, g)
	}
	old := c.gpus[index]
	if g.Aliases == nil {
		g.Aliases = old.Aliases // of the GPU that it replaces
	}
	maps.DeleteFunc(c.names, func(_ string, have *GPU) bool { return have == old })
	c.gpus[index] = g
	claim := func(at, name string) error {
		if have := c.names[normalize(name)]; have != nil && have != g {
			return errorf(at, "%q is already a name of %s; a GPU with that id replaces it", name, have.ID)
		}
		c.names[normalize(name)] = g
		return nil
	}
	if err := claim(at+".id", g.ID); err != nil {
		return err
	}
	for i, a := range g.Aliases {
		if err := claim(fmt.Sprintf("%s.aliases[%d]", at, i), a); err != nil {
			return err
		}
	}
	if g.Name != "" {
		return claim(at+".name", g.Name)
	}
	return nil
}

// check returns an error about the first invalid fact, and replaces source keys by their
// texts.
func (c *Catalog) check(g *GPU, at string, errorf errorf) error {
	if g.ID == "" {
		return errorf(at+".id", "must be given")
	}
	facts := []struct {
		name     string
		value    float64
		min, max float64
	}{
		{"peak_tflops.bf16", g.PeakTFLOPS.BF16, 0.001, 1e9},
		{"peak_tflops.fp8", g.PeakTFLOPS.FP8, 0, 1e9},
		{"peak_tflops.fp4", g.PeakTFLOPS.FP4, 0, 1e9},
		{"memory_gib", g.MemoryGiB, 0.001, 1e6},
		{"memory_gb_per_s", g.MemoryGBPerS, 0.001, 1e9},
		{"link_gb_per_s", g.LinkGBPerS, 0, 1e9},
		{"tdp_w", g.TDPW, 0, 1e6},
	}
	for _, f := range facts {
		if !(f.value >= f.min) || f.value > f.max {
			return errorf(at+"."+f.name, "must be between %g and %g, is %g", f.min, f.max, f.value)
		}
	}
	for _, f := range efficiencies(&g.Efficiency) {
		lo := 0.0
		if f.max == 1 {
			lo = 0.001
		}
		if !(*f.value >= lo) || *f.value > f.max {
			return errorf(at+".efficiency."+f.name, "must be between %g and %g, is %g", lo, f.max, *f.value)
		}
	}
	if g.Link != "" && !slices.Contains(links, g.Link) {
		return errorf(at+".link", "%v", registry.Unknown("link", g.Link, links))
	}
	for _, fact := range slices.Sorted(maps.Keys(g.Sources)) {
		path := at + ".sources." + fact
		if !slices.Contains(sourced, fact) {
			return errorf(path, "%v", registry.Unknown("fact", fact, sourced))
		}
		text, ok := c.sources[g.Sources[fact]]
		if !ok {
			return errorf(path, "%v", registry.Unknown("source", g.Sources[fact], slices.Sorted(maps.Keys(c.sources))))
		}
		g.Sources[fact] = text
	}
	return nil
}

var (
	links   = []string{"nvlink", "pcie", "infinity-fabric"}
	sourced = []string{"peak_tflops", "memory_gib", "memory_gb_per_s", "link_gb_per_s", "tdp_w", "efficiency"}
)

// efficiency is one number of a latency.Efficiency: a fraction if max is 1, else µs.
type efficiency struct {
	name  string
	value *float64
	max   float64
}

func efficiencies(e *latency.Efficiency) []efficiency {
	return []efficiency{
		{"compute", &e.Compute, 1},
		{"attention", &e.Attention, 1},
		{"memory", &e.Memory, 1},
		{"link", &e.Link, 1},
		{"past", &e.PriorContext, 1},
		{"mixed", &e.Mixed, 1},
		{"step_us", &e.StepUS, 1e9},
		{"sequence_us", &e.SequenceUS, 1e9},
		{"launch_us", &e.LaunchUS, 1e9},
		{"layer_us", &e.LayerUS, 1e9},
		{"collective_us", &e.CollectiveUS, 1e9},
	}
}

// fill sets the defaults of what the document does not state at path.
func fill(doc *strictyaml.Doc, path string, e *latency.Efficiency, defaults latency.Efficiency) {
	from := efficiencies(&defaults)
	for i, f := range efficiencies(e) {
		if !doc.Has(path + "." + f.name) {
			*f.value = *from[i].value
		}
	}
}

// addSets adds the coefficients of a file to the catalog.
func (c *Catalog) addSets(f *File, doc *strictyaml.Doc) error {
	before := len(c.sets)
	for i, s := range f.Coefficients {
		at := fmt.Sprintf("coefficients[%d]", i)
		if s == nil {
			return doc.Errorf(at, "must have a model, a gpu and a latency")
		}
		if err := c.checkSet(s, at, doc.Errorf); err != nil {
			return err
		}
		index := slices.IndexFunc(c.sets, func(have *Set) bool { return have.Key.same(s.Key) })
		if index >= before {
			return doc.Errorf(at+".model", "an earlier entry of this file is for the same model, GPU and parallelism")
		}
		if index >= 0 {
			c.sets = slices.Delete(c.sets, index, index+1)
			before--
		}
		c.sets = append(c.sets, s)
	}
	return nil
}

// checkSet returns an error about the first invalid value, and replaces the GPU's alias by
// its id.
func (c *Catalog) checkSet(s *Set, at string, errorf errorf) error {
	if s.Model == "" {
		return errorf(at+".model", "must be given")
	}
	g, err := c.GPU(s.GPU)
	if err != nil {
		return errorf(at+".gpu", "%v", err)
	}
	s.GPU = g.ID
	for _, d := range []struct {
		name   string
		degree int
	}{
		{"tensor_parallel_size", s.TensorParallelSize},
		{"pipeline_parallel_size", s.PipelineParallelSize},
		{"data_parallel_size", s.DataParallelSize},
	} {
		if d.degree < 1 || d.degree > maxDegree {
			return errorf(at+"."+d.name, "must be between 1 and %d, is %d", maxDegree, d.degree)
		}
	}
	if _, err := s.Latency.Build(); err != nil {
		return errorf(at+".latency", "%v", err)
	}
	if strings.TrimSpace(s.Source) == "" {
		return errorf(at+".source", "must say what was measured, and where to find it")
	}
	if name, err := s.Range.Check(); err != nil {
		return errorf(at+".range."+name, "%v", err)
	}
	for i, e := range s.Errors {
		if e.Metric == "" || e.Data == "" {
			return errorf(fmt.Sprintf("%s.errors[%d]", at, i), "must have metric and data")
		}
	}
	if err := s.checkIntervals(at+".ci", &s.CI, errorf); err != nil {
		return err
	}
	return s.checkIntervals(at+".uncertainty", &s.Uncertainty, errorf)
}

func (s *Set) checkIntervals(at string, of *Intervals, errorf errorf) error {
	if !(of.Level >= 0) || of.Level >= 1 {
		return errorf(at+".level", "must be a probability, such as 0.9, is %g", of.Level)
	}
	for _, v := range []struct {
		name      string
		values    []float64
		intervals [][]float64
	}{
		{"alpha_us", s.Latency.AlphaUS, of.AlphaUS},
		{"beta_us", s.Latency.BetaUS, of.BetaUS},
	} {
		if len(v.intervals) > 0 && len(v.intervals) != len(v.values) {
			return errorf(at+"."+v.name, "must have %d intervals, one for each coefficient, has %d",
				len(v.values), len(v.intervals))
		}
		for i, r := range v.intervals {
			if len(r) != 2 || !(r[0] <= r[1]) {
				return errorf(fmt.Sprintf("%s.%s[%d]", at, v.name, i), "must be [lo, hi], is %v", r)
			}
		}
	}
	return nil
}

// maxDegree is beyond the parallelism of any replica.
const maxDegree = 4096

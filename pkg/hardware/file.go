package hardware

import (
	"cmp"
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
	if err := doc.DecodeAt("defaults.efficiency", &c.defaults); err != nil {
		return err
	}
	for i, g := range f.GPUs {
		at := fmt.Sprintf("gpus[%d]", i)
		if g == nil {
			return doc.Errorf(at, "must have an id and facts")
		}
		g.Efficiency = c.defaults
		if err := doc.DecodeAt(at+".efficiency", &g.Efficiency); err != nil {
			return err
		}
		if err := c.check(g, at, doc.Errorf); err != nil {
			return err
		}
		if slices.ContainsFunc(f.GPUs[:i], g.hasIDOf) {
			return doc.Errorf(at+".id", "%q is the id of an earlier GPU of this file", g.ID)
		}
		if err := c.put(g, at, doc.Errorf); err != nil {
			return err
		}
	}
	return nil
}

// put puts a GPU into the catalog, at the index of the one that it replaces.
func (c *Catalog) put(g *GPU, at string, errorf strictyaml.Errorf) error {
	index := slices.IndexFunc(c.gpus, g.hasIDOf)
	if index < 0 {
		c.gpus = append(c.gpus, g)
	} else {
		if g.Aliases == nil {
			g.Aliases = c.gpus[index].Aliases
		}
		c.gpus[index] = g
	}
	type claim struct{ path, name string }
	claims := []claim{{".id", g.ID}}
	for i, alias := range g.Aliases {
		claims = append(claims, claim{fmt.Sprintf(".aliases[%d]", i), alias})
	}
	for _, n := range append(claims, claim{".name", g.Name}) {
		if have := c.find(n.name, g); have != nil {
			return errorf(at+n.path, "%q is already a name of %s; a GPU with that id replaces it", n.name, have.ID)
		}
	}
	return nil
}

// check returns an error about the first invalid fact, and replaces source keys by their
// texts.
func (c *Catalog) check(g *GPU, at string, errorf strictyaml.Errorf) error {
	if g.ID == "" {
		return errorf(at+".id", "must be given")
	}
	e := &g.Efficiency
	between := strictyaml.Between[float64](errorf, at+".")
	if err := cmp.Or(
		between("peak_tflops.bf16", g.PeakTFLOPS.BF16, 0.001, 1e9),
		between("peak_tflops.fp8", g.PeakTFLOPS.FP8, 0, 1e9),
		between("peak_tflops.fp4", g.PeakTFLOPS.FP4, 0, 1e9),
		between("memory_gib", g.MemoryGiB, 0.001, 1e6),
		between("memory_gb_per_s", g.MemoryGBPerS, 0.001, 1e9),
		between("link_gb_per_s", g.LinkGBPerS, 0, 1e9),
		between("tdp_w", g.TDPW, 0, maxPower),
		between("efficiency.compute", e.Compute, 0.001, 1),
		between("efficiency.attention", e.Attention, 0.001, 1),
		between("efficiency.memory", e.Memory, 0.001, 1),
		between("efficiency.link", e.Link, 0.001, 1),
		between("efficiency.past", e.PriorContext, 0.001, 1),
		between("efficiency.mixed", e.Mixed, 0.001, 1),
		between("efficiency.step_us", e.StepUS, 0, 1e9),
		between("efficiency.sequence_us", e.SequenceUS, 0, 1e9),
		between("efficiency.launch_us", e.LaunchUS, 0, 1e9),
		between("efficiency.layer_us", e.LayerUS, 0, 1e9),
		between("efficiency.collective_us", e.CollectiveUS, 0, 1e9),
	); err != nil {
		return err
	}
	if g.Link != "" && !slices.Contains(links, g.Link) {
		return errorf(at+".link", "%v", registry.Unknown("link", g.Link, links))
	}
	if g.Power != nil {
		if name, err := g.Power.Check(); err != nil {
			return errorf(at+".power."+name, "%v", err)
		}
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
	sourced = []string{"peak_tflops", "memory_gib", "memory_gb_per_s", "link_gb_per_s", "tdp_w", "power",
		"efficiency"}
)

// addSets adds the coefficients of a file to the catalog.
func (c *Catalog) addSets(f *File, doc *strictyaml.Doc) error {
	for i, s := range f.Coefficients {
		at := fmt.Sprintf("coefficients[%d]", i)
		if s == nil {
			return doc.Errorf(at, "must have a model, a gpu and a latency")
		}
		if err := c.checkSet(s, at, doc.Errorf); err != nil {
			return err
		}
		isSame := func(have *Set) bool { return have.Key.same(s.Key) }
		if slices.ContainsFunc(f.Coefficients[:i], isSame) {
			return doc.Errorf(at+".model", "an earlier entry of this file is for the same model, GPU and parallelism")
		}
		c.sets = append(slices.DeleteFunc(c.sets, isSame), s)
	}
	return nil
}

// checkSet returns an error about the first invalid value, and replaces the GPU's alias by
// its id.
func (c *Catalog) checkSet(s *Set, at string, errorf strictyaml.Errorf) error {
	if s.Model == "" {
		return errorf(at+".model", "must be given")
	}
	g, err := c.GPU(s.GPU)
	if err != nil {
		return errorf(at+".gpu", "%v", err)
	}
	s.GPU = g.ID
	between := strictyaml.Between[int](errorf, at+".")
	if err := cmp.Or(
		between("tensor_parallel_size", s.TensorParallelSize, 1, maxDegree),
		between("pipeline_parallel_size", s.PipelineParallelSize, 1, maxDegree),
		between("data_parallel_size", s.DataParallelSize, 1, maxDegree),
	); err != nil {
		return err
	}
	l := &s.Latency
	switch _, err := latency.Models.Get("latency model", l.Model); {
	case err != nil:
		return errorf(at+".latency", "%v", err)
	case l.Model == "table" && l.BetaUS != nil:
		return errorf(at+".latency", "beta_us has no effect on a table")
	case l.Model != "table" && l.Table != nil:
		return errorf(at+".latency", "a table has no effect on the model %s", l.Model)
	case l.Model == "operators" && l.Factors == nil:
		return errorf(at+".latency", "the model operators needs factors")
	case l.Model != "operators" && l.Factors != nil:
		return errorf(at+".latency", "factors have no effect on the model %s", l.Model)
	}
	if err := l.check(); err != nil {
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

// check returns an error about the first invalid coefficient.
func (l *Latency) check() error {
	if l.Factors == nil {
		_, err := l.Build(nil, nil)
		return err
	}
	line := Latency{Model: "linear", AlphaUS: l.AlphaUS, BetaUS: []float64{0, 0, 0}}
	if _, err := line.Build(nil, nil); err != nil { // the kernels are those of the deployment
		return err
	}
	return l.Factors.Check()
}

func (s *Set) checkIntervals(at string, of *Intervals, errorf strictyaml.Errorf) error {
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
	for _, name := range slices.Sorted(maps.Keys(of.Factors)) {
		if r := of.Factors[name]; len(r) != 2 || !(r[0] <= r[1]) {
			return errorf(at+".factors."+name, "must be [lo, hi], is %v", r)
		}
	}
	return nil
}

// maxDegree is beyond the parallelism of any replica.
const maxDegree = 4096

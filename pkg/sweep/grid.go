package sweep

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"

	"blis/pkg/strictyaml"
)

// Grid is a file of runs: all combinations of its axes. Without an axis, the value is that of the call.
type Grid struct {
	Version int `yaml:"version" json:"version"`
	// Set has the values of settings, by path as for blis-sim --set: every combination is a configuration.
	Set map[string][]any `yaml:"set" json:"set"`
	// Policies are files of policy bundles.
	Policies []string `yaml:"policies" json:"policies"`
	// Runs are the configurations one by one, instead of Set and Policies.
	Runs []Override `yaml:"runs" json:"runs"`
	// Workloads are files. Each configuration runs on each.
	Workloads []string `yaml:"workloads" json:"workloads"`
	// Rates are mean arrivals per second, as for blis-gen --rate. Each configuration runs on each workload at each.
	Rates []float64 `yaml:"rates" json:"rates"`
	// Seeds are those of blis-sim --seed. Each configuration runs with each.
	Seeds []uint64 `yaml:"seeds" json:"seeds"`
	// Halving ends most configurations early; nil runs all on the whole workloads.
	Halving *Halving `yaml:"halving" json:"halving"`
}

// Override is a configuration: what differs from that of the call.
type Override struct {
	// Policies is the file of a policy bundle, "" for none.
	Policies string `yaml:"policies" json:"policies"`
	// Set are settings by path, as for blis-sim --set.
	Set map[string]any `yaml:"set" json:"set"`
}

// Point is one run of a sweep. A line of stdin is one.
type Point struct {
	Override `yaml:",inline"`
	// Workload is a file, "" for that of the call.
	Workload string `yaml:"workload" json:"workload"`
	// Rate is the mean number of arrivals per second to which the workload is scaled, 0 for its own.
	Rate float64 `yaml:"rate" json:"rate"`
	// Seed is nil for that of the call.
	Seed *uint64 `yaml:"seed" json:"seed"`
	// err is why it is no point: the line is wrong.
	err error
}

// readGrid reads a grid. Errors in it are *strictyaml.Error.
func readGrid(name string) (*Grid, error) {
	doc, err := strictyaml.Read(name)
	if err != nil {
		return nil, err
	}
	g := new(Grid)
	if err := doc.Decode(g); err != nil {
		return nil, err
	}
	return g, g.check(doc.Errorf)
}

func (g *Grid) check(errorf strictyaml.Errorf) error {
	if g.Version != 1 {
		return errorf("version", "must be 1, is %d", g.Version)
	}
	if g.Runs != nil && (g.Set != nil || g.Policies != nil) {
		return errorf("runs", "lists the configurations, so set and policies have no effect: "+
			"move them into each run, or remove runs")
	}
	if g.Halving != nil {
		if err := g.Halving.check(errorf); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(g.Set)) {
		if len(g.Set[path]) == 0 {
			return errorf("set."+path, "has no values: the grid is empty")
		}
	}
	for i, rate := range g.Rates {
		if err := checkRate(rate); err != nil {
			return errorf(fmt.Sprintf("rates[%d]", i), "%v", err)
		}
	}
	for _, axis := range []struct {
		name  string
		empty bool
	}{
		{"policies", g.Policies != nil && len(g.Policies) == 0}, {"runs", g.Runs != nil && len(g.Runs) == 0},
		{"seeds", g.Seeds != nil && len(g.Seeds) == 0}, {"workloads", g.Workloads != nil && len(g.Workloads) == 0},
		{"rates", g.Rates != nil && len(g.Rates) == 0},
	} {
		if axis.empty {
			return errorf(axis.name, "has no values: the grid is empty")
		}
	}
	return nil
}

// checkRate returns an error if a workload cannot have this rate.
func checkRate(rate float64) error {
	if !(rate > 0) || math.IsInf(rate, 0) {
		return fmt.Errorf("must be a number above 0, is %v", rate)
	}
	return nil
}

// points returns the points on these workloads, if the grid names none: configurations in the order of the file
// (paths of Set in alphabetical order, the last one changing first), each with all workloads, each
// at all rates, each with all seeds.
func (g *Grid) points(workloads []string) iter.Seq[Point] {
	if g.Workloads != nil {
		workloads = g.Workloads
	}
	seeds := []*uint64{nil}
	if g.Seeds != nil {
		seeds = nil
		for i := range g.Seeds {
			seeds = append(seeds, &g.Seeds[i])
		}
	}
	rates := g.Rates
	if rates == nil {
		rates = []float64{0}
	}
	return func(yield func(Point) bool) {
		for o := range g.configurations() {
			for _, w := range workloads {
				for _, rate := range rates {
					for _, s := range seeds {
						if !yield(Point{Override: o, Workload: w, Rate: rate, Seed: s}) {
							return
						}
					}
				}
			}
		}
	}
}

// configurations returns the runs, or else all combinations of policies and settings.
func (g *Grid) configurations() iter.Seq[Override] {
	if g.Runs != nil {
		return slices.Values(g.Runs)
	}
	bundles := g.Policies
	if bundles == nil {
		bundles = []string{""}
	}
	paths := slices.Sorted(maps.Keys(g.Set))
	return func(yield func(Override) bool) {
		for _, bundle := range bundles {
			// at is an odometer of the values of each path.
			for at := make([]int, len(paths)); at != nil; at = g.following(paths, at) {
				o := Override{Policies: bundle}
				if len(paths) > 0 {
					o.Set = map[string]any{}
				}
				for i, path := range paths {
					o.Set[path] = g.Set[path][at[i]]
				}
				if !yield(o) {
					return
				}
			}
		}
	}
}

// following returns the next combination of values, nil after the last one.
func (g *Grid) following(paths []string, at []int) []int {
	for i := len(paths) - 1; i >= 0; i-- {
		if at[i]++; at[i] < len(g.Set[paths[i]]) {
			return at
		}
		at[i] = 0
	}
	return nil
}

// maxLine is the longest line of stdin.
const maxLine = 16 << 20

// readPoints returns the points of a stream of lines, as they arrive. A line that is wrong is a point with an
// error.
func readPoints(in io.Reader) iter.Seq[Point] {
	return func(yield func(Point) bool) {
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxLine)
		for n := 1; lines.Scan(); n++ {
			line := bytes.TrimSpace(lines.Bytes())
			if len(line) > 0 && !yield(readPoint(fmt.Sprintf("stdin:%d", n), line)) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			if errors.Is(err, bufio.ErrTooLong) {
				err = fmt.Errorf("stdin: a line is longer than %d MiB", maxLine>>20)
			}
			yield(Point{err: err})
		}
	}
}

func readPoint(name string, line []byte) (p Point) {
	doc, err := strictyaml.Parse(name, line)
	if err == nil {
		err = doc.Decode(&p)
	}
	if err == nil && p.Rate != 0 {
		if wrong := checkRate(p.Rate); wrong != nil {
			err = doc.Errorf("rate", "%v", wrong)
		}
	}
	if err != nil {
		return Point{err: err}
	}
	return p
}

// overrides returns the settings as for blis-sim --set, in alphabetical order.
func (o *Override) overrides() (all []string, err error) {
	for _, path := range slices.Sorted(maps.Keys(o.Set)) {
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false) // expressions contain < and &
		if err := enc.Encode(o.Set[path]); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, path+"="+string(bytes.TrimSpace(text.Bytes())))
	}
	return all, nil
}

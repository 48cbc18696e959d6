package sweep

import (
	"strings"
	"sync"

	"blis/pkg/cluster"
	"blis/pkg/metrics"
	"blis/pkg/sim"
	"blis/pkg/stream"
)

// minimal is the trace level without anomalies.
var minimal = stream.TraceLevels[0]

// cache holds what several runs use, by name. Each value is made once; a run that needs one that is being made
// waits for it.
type cache[T any] struct {
	mu  sync.Mutex
	all map[string]func() (T, error)
	// names are in the order in which they were added; the oldest leave if there are more than limit, if not 0.
	names []string
	limit int
}

func (c *cache[T]) get(name string, load func() (T, error)) (T, error) {
	c.mu.Lock()
	value, ok := c.all[name]
	if !ok {
		if c.all == nil {
			c.all = map[string]func() (T, error){}
		}
		if c.limit > 0 && len(c.names) >= c.limit {
			delete(c.all, c.names[0])
			c.names = c.names[1:]
		}
		value = sync.OnceValues(load)
		c.all[name], c.names = value, append(c.names, name)
	}
	c.mu.Unlock()
	return value()
}

// configuration is a loaded cluster and the warnings about it.
type configuration struct {
	*cluster.Config
	warnings []string
}

// cacheLimit is the number of configurations that are kept, and of workloads at other rates. The runs of a
// configuration follow each other.
const cacheLimit = 256

// workload returns the workload of that name, at another rate unless it is 0.
func (s *sweep) workload(name string, rate float64) (*sim.Workload, error) {
	if name == "" {
		return nil, errNoWorkload
	}
	of := &s.workloads
	if rate != 0 {
		of, name = &s.scaled, s.call.AtRate(name, rate)
	}
	return of.get(name, func() (*sim.Workload, error) {
		in, err := s.call.Open(name)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		return sim.ReadWorkload(in)
	})
}

// configuration loads the cluster of the call with these overrides.
func (s *sweep) configuration(p *Override) (*configuration, error) {
	sets, err := p.overrides()
	if err != nil {
		return nil, err
	}
	return s.configs.get(p.Policies+"\x00"+strings.Join(sets, "\x00"), func() (*configuration, error) {
		o := s.call.Run
		if p.Policies != "" {
			o.Policies = p.Policies
		}
		o.Set = append(o.Set[:len(o.Set):len(o.Set)], sets...)
		c := new(configuration)
		o.Warn = func(text string) { c.warnings = append(c.warnings, text) }
		c.Config, err = o.LoadCluster()
		if err != nil {
			return nil, err
		}
		return c, nil
	})
}

// id identifies what determines the bytes of a run or, if gates can end it, its result.
func (s *sweep) id(run *sim.Case, w *sim.Workload) string {
	of := []any{run.Header, w.Digest(), s.call.Build}
	if s.earlyStop {
		of = append(of, s.fitness.Gates, s.fitness.Weights)
	}
	return stream.Digest(of)[:idDigits]
}

// idDigits are those of a digest that identify a run: among a million, two equal ones have probability 10⁻²⁷.
const idDigits = 32

// emptyRecord is a record of metrics before it is decoded.
func emptyRecord() *metrics.Record {
	return &metrics.Record{Raw: metrics.Raw{FromUS: stream.Never, UntilUS: stream.Never}}
}

package gen

import (
	"math"
	"slices"

	"blis/pkg/registry"
	"blis/pkg/stream"
)

// check reports the first value that no class can have.
func (c *Class) check(path string, fault fault) error {
	if c.Name == "" {
		return fault(path+".name", "must be given")
	}
	if !slices.Contains(stream.Tiers, c.Tier) {
		return fault(path+".tier", "%v", registry.Unknown("tier", c.Tier, stream.Tiers))
	}
	if math.IsNaN(c.Priority) || math.IsInf(c.Priority, 0) {
		return fault(path+".priority", "must be a finite number, is %g", c.Priority)
	}
	for _, target := range []struct {
		name string
		ms   float64
	}{{"ttft_ms", c.Targets.TTFTMS}, {"tpot_ms", c.Targets.TPOTMS}, {"e2e_ms", c.Targets.E2EMS}} {
		if !(target.ms >= 0 && target.ms <= maxTargetMS) {
			return fault(path+".targets."+target.name, "must be between 0 (none) and %g, is %g", float64(maxTargetMS), target.ms)
		}
	}
	return nil
}

// maxTargetMS is eleven days, more than any promise and less than what
// overflows in µs.
const maxTargetMS = 1e9

// usedClasses returns the classes of the clients, in the order in which they
// first appear.
func (s *Spec) usedClasses(fault fault) ([]stream.SLOClass, error) {
	declared := registry.Table[stream.SLOClass]{}
	for i := range s.SLOClasses {
		c := stream.SLOClass(s.SLOClasses[i])
		path := elementPath("slo_classes", i)
		if err := s.SLOClasses[i].check(path, fault); err != nil {
			return nil, err
		}
		if slices.Contains(declared.Names(), c.Name) {
			return nil, fault(path+".name", "%q is taken by an earlier class", c.Name)
		}
		declared = append(declared, registry.Entry[stream.SLOClass]{Name: c.Name, Value: c})
	}
	all := slices.Concat(declared, stream.Classes) // Get finds the first of a name
	var used []stream.SLOClass
	for i := range s.Clients {
		name := s.Clients[i].SLOClass
		if name == "" || slices.ContainsFunc(used, func(c stream.SLOClass) bool { return c.Name == name }) {
			continue
		}
		c, err := all.Get("SLO class", name)
		if err != nil {
			return nil, fault(elementPath("clients", i)+".slo_class", "%v; declare it under slo_classes", err)
		}
		used = append(used, c)
	}
	return used, nil
}

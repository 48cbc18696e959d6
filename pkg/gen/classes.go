package gen

import (
	"math"
	"slices"

	"blis/pkg/registry"
	"blis/pkg/stream"
)

// check reports the first invalid value of the class.
func (c *Class) check(path string, errorf errorFunc) error {
	if c.Name == "" {
		return errorf(path+".name", "must be given")
	}
	if !slices.Contains(stream.Tiers, c.Tier) {
		return errorf(path+".tier", "%v", registry.Unknown("tier", c.Tier, stream.Tiers))
	}
	if math.IsNaN(c.Priority) || math.IsInf(c.Priority, 0) {
		return errorf(path+".priority", "must be a finite number, is %g", c.Priority)
	}
	for _, target := range []struct {
		name string
		ms   float64
	}{{"ttft_ms", c.Targets.TTFTMS}, {"tpot_ms", c.Targets.TPOTMS}, {"e2e_ms", c.Targets.E2EMS}} {
		if !(target.ms >= 0 && target.ms <= maxTargetMS) {
			return errorf(path+".targets."+target.name, "must be between 0 (none) and %g, is %g", float64(maxTargetMS),
				target.ms)
		}
	}
	return nil
}

// maxTargetMS is eleven days: above any target and below what overflows in µs.
const maxTargetMS = 1e9

// usedClasses returns the SLO classes of the clients, in order of first use.
func (s *Spec) usedClasses(errorf errorFunc) ([]stream.SLOClass, error) {
	declared := registry.Table[stream.SLOClass]{}
	for i := range s.SLOClasses {
		c := stream.SLOClass(s.SLOClasses[i])
		path := elementPath("slo_classes", i)
		if err := s.SLOClasses[i].check(path, errorf); err != nil {
			return nil, err
		}
		if slices.Contains(declared.Names(), c.Name) {
			return nil, errorf(path+".name", "%q is taken by an earlier class", c.Name)
		}
		declared = append(declared, registry.Entry[stream.SLOClass]{Name: c.Name, Value: c})
	}
	all := slices.Concat(declared, stream.Classes) // Get returns the first class of a name
	var used []stream.SLOClass
	for i := range s.Clients {
		name := s.Clients[i].SLOClass
		if name == "" || slices.ContainsFunc(used, func(c stream.SLOClass) bool { return c.Name == name }) {
			continue
		}
		c, err := all.Get("SLO class", name)
		if err != nil {
			return nil, errorf(elementPath("clients", i)+".slo_class", "%v; declare it under slo_classes", err)
		}
		used = append(used, c)
	}
	return used, nil
}

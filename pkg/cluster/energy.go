package cluster

import (
	"blis/pkg/hardware"
	"blis/pkg/latency"
	"blis/pkg/model"
	"blis/pkg/strictyaml"
)

// Energy makes a run count the energy of its GPUs. It is that of GPUs only, not of hosts, networks or cooling.
type Energy struct {
	// CarbonGPerKWh is how much CO2 the electricity causes, in g per kWh. It differs between grids by a factor of 20,
	// so that it has no default; nil leaves out carbon.
	CarbonGPerKWh *float64 `yaml:"carbon_g_per_kwh" json:"carbon_g_per_kwh,omitempty"`
}

// ReplicaPower is what the energy of a replica follows from: the power of one of its GPUs, and the work and the
// machine, from which follows how compute-bound a step is.
type ReplicaPower struct {
	hardware.Power
	Source  string          `json:"source,omitempty"`
	Replica latency.Replica `json:"replica"`
}

// maxCarbon is beyond that of any fuel, in g per kWh.
const maxCarbon = 1e5

// validate checks the numbers; e may be nil.
func (e *Energy) validate(errorf strictyaml.Errorf) error {
	if e == nil || e.CarbonGPerKWh == nil {
		return nil
	}
	return strictyaml.Between[float64](errorf, "energy.")("carbon_g_per_kwh", *e.CarbonGPerKWh, 0, maxCarbon)
}

// power finds the power of a GPU of d. Where it is unknown the run has no energy.
func (c *resolver) power(d *Deployment, arch *model.Architecture, gpu *hardware.GPU) {
	switch {
	case !c.energy:
	case arch == nil || gpu == nil:
		c.warnf(d, "the energy is unknown, and the metrics have none: %s", missingInfo(d, arch, gpu))
	case gpu.Power == nil:
		c.warnf(d, "the energy is unknown, and the metrics have none: the power of %s is in no hardware file; "+
			"--hardware FILE adds one", gpu.ID)
	default:
		d.Computed.Power = &ReplicaPower{Power: *gpu.Power, Source: gpu.Sources["power"],
			Replica: latency.Replica{Work: arch.Work(), Machine: machine(d, arch, gpu)}}
	}
}

// restorePower checks a printed power at a path.
func (k *Computed) restorePower(at string, errorf strictyaml.Errorf) error {
	if k.Power == nil {
		return nil
	}
	if name, err := k.Power.Check(); err != nil {
		return errorf(at+".power."+name, "%v", err)
	}
	if _, err := latency.NewIntensity(&k.Power.Replica); err != nil {
		return errorf(at+".power.replica", "%v", err)
	}
	return nil
}

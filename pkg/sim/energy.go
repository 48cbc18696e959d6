package sim

import (
	"fmt"

	"blis/pkg/cluster"
	"blis/pkg/hardware"
	"blis/pkg/latency"
	"blis/pkg/metrics"
)

// power is that of the GPUs of a replica; its parts are nil if it is unknown or energy is not counted.
type power struct {
	watts     *hardware.Power
	intensity *latency.Intensity
}

func newPower(d *cluster.Deployment) (p power, err error) {
	if k := d.Computed.Power; k != nil {
		p.watts = &k.Power
		p.intensity, err = latency.NewIntensity(&k.Replica)
	}
	return p, err
}

// oneRank is the power of a data-parallel rank.
func (p power) oneRank() power {
	if p.intensity != nil {
		p.intensity = p.intensity.OneRank()
	}
	return p
}

// energyTotals is the energy of replica i of the run, nil if its power is unknown. While no step runs, each of its GPUs
// draws idle_w, from the time when it is provisioned until it is gone, also while it loads, or is down after a failure.
// A step draws between decode_w and prefill_w, as far as it is compute-bound, and one with a dummy batch decode_w.
func (s *simulation) energyTotals(i int) *metrics.EnergyTotals {
	r := &s.replicas[i]
	d := &s.deployments[r.deployment]
	w := d.power.watts
	if w == nil {
		return nil
	}
	stats := r.engine.Stats()
	stats.BusyUS += r.ranks.dummyUS
	idle := max(0, s.upUS(i)-stats.BusyUS)
	e := &metrics.EnergyTotals{IdleJ: float64(float64(int64(d.gpus)*idle)*w.IdleW) / 1e6}
	busy := float64(float64(stats.BusyUS)*w.DecodeW) + float64(stats.ComputeUS*(w.PrefillW-w.DecodeW))
	e.J = e.IdleJ + float64(float64(d.gpus)*busy)/1e6
	return e
}

// unknownEnergy warns of deployments because of which a run that counts energy has none.
func (s *simulation) unknownEnergy() (warnings []string) {
	for i := range s.deployments {
		if d := &s.deployments[i]; s.energy != nil && d.power.watts == nil {
			warnings = append(warnings, fmt.Sprintf("deployment %s: the power of its GPUs is unknown, so that the run "+
				"has no energy; add their idle_w, decode_w and prefill_w with --hardware", d.id))
		}
	}
	return warnings
}

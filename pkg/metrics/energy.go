package metrics

// Energy reports the energy of the GPUs, in J: of those of all replicas while these hold them. IdleJ is the part of
// TotalJ in which no step ran. PerOutputToken is TotalJ per output token of completed requests, absent if none
// completed. MeanW is TotalJ over the run's duration, absent without one. CarbonG is in g of CO2, absent without a
// carbon_g_per_kwh.
type Energy struct {
	TotalJ         float64  `json:"total_j"`
	IdleJ          float64  `json:"idle_j"`
	PerOutputToken *float64 `json:"j_per_output_token,omitempty"`
	MeanW          *float64 `json:"mean_w,omitempty"`
	CarbonG        *float64 `json:"carbon_g,omitempty"`
}

// EnergyTotals is the energy of a replica over its lifetime, and the part of it in which no step ran.
type EnergyTotals struct{ J, IdleJ float64 }

// energy is what the Accumulator counts with.
type energy struct {
	carbonGPerKWh *float64 // nil if it is unknown
}

// CountEnergy makes Raw report energy, if that of all replicas is known. carbonGPerKWh may be nil.
func (a *Accumulator) CountEnergy(carbonGPerKWh *float64) { a.energy = &energy{carbonGPerKWh} }

// energyOfAll is the energy of all replicas, whose completed requests had these output tokens; nil if that of one is
// unknown, or if it is not counted.
func (a *Accumulator) energyOfAll(outputTokens int64) *Energy {
	if a.energy == nil {
		return nil
	}
	e := &Energy{}
	for i := range a.replicas {
		x := a.replicas[i].Energy
		if x == nil {
			return nil
		}
		e.TotalJ, e.IdleJ = e.TotalJ+x.J, e.IdleJ+x.IdleJ
	}
	e.Divide(outputTokens, float64(elapsed(a.from, a.until))/1e6)
	if factor := a.energy.carbonGPerKWh; factor != nil {
		grams := float64(e.TotalJ*(*factor)) / joulesPerKWh
		e.CarbonG = &grams
	}
	return e
}

const joulesPerKWh = 3.6e6

// Divide sets the energy per token and the mean power over some seconds.
func (e *Energy) Divide(outputTokens int64, seconds float64) {
	if outputTokens > 0 {
		x := e.TotalJ / float64(outputTokens)
		e.PerOutputToken = &x
	}
	if seconds > 0 {
		x := e.TotalJ / seconds
		e.MeanW = &x
	}
}

// Plus returns the sum with the energy of another run, which is not divided. It is nil if one of them is nil, and
// without CarbonG if one of them has none.
func (e *Energy) Plus(o *Energy) *Energy {
	if e == nil || o == nil {
		return nil
	}
	sum := &Energy{TotalJ: e.TotalJ + o.TotalJ, IdleJ: e.IdleJ + o.IdleJ}
	if e.CarbonG != nil && o.CarbonG != nil {
		grams := *e.CarbonG + *o.CarbonG
		sum.CarbonG = &grams
	}
	return sum
}

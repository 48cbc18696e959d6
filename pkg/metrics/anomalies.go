package metrics

// AddAnomaly counts an anomaly by its type.
func (a *Accumulator) AddAnomaly(of string) { a.anomalies[of]++ }

// TrackAnomalies declares the types of anomalies that are detected, so that their counts
// are 0 instead of missing. It must be called before AddAnomaly.
func (a *Accumulator) TrackAnomalies(types []string) {
	a.anomalies = map[string]int64{}
	for _, of := range types {
		a.anomalies[of] = 0
	}
}

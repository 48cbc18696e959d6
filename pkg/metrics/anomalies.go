package metrics

// Anomaly counts an episode by its type.
func (a *Accumulator) Anomaly(of string) {
	if a.anomalies == nil {
		a.anomalies = map[string]int64{}
	}
	a.anomalies[of]++
}

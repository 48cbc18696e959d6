package metrics

// Anomaly counts an episode by its type.
func (a *Accumulator) Anomaly(of string) { a.anomalies[of]++ }

// Watch says that somebody looks for anomalies of these types: what is not found is 0,
// and not absent. It must be called before Anomaly.
func (a *Accumulator) Watch(types []string) {
	a.anomalies = map[string]int64{}
	for _, of := range types {
		a.anomalies[of] = 0
	}
}

//go:build !race

package sim

// raceEnabled: the race detector is on, which is ten times slower.
const raceEnabled = false

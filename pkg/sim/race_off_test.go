//go:build !race

package sim

// raceEnabled: the race detector is on, which makes everything ten times slower.
const raceEnabled = false

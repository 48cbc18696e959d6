// Package dist provides seeded random streams, distributions of lengths in tokens, and arrival
// processes. All results depend only on the parameters and the stream.
package dist

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"blis/pkg/des"
)

// NewStream returns the random stream called name of seed: a PCG whose state is a hash of both.
// Streams can be created in any order, and adding one does not change the others.
func NewStream(seed uint64, name string) *rand.Rand { return rand.New(NewSource(seed, name)) }

// NewSource returns the source of NewStream, for callers that copy its state.
func NewSource(seed uint64, name string) *rand.PCG {
	sum := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, seed), name...))
	return rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:]))
}

// maxMicros is the maximum time, 285 years: up to it every integer is exact as a float64 and in
// JSON.
const maxMicros = 1 << 53

// Micros rounds a workload time half up to integer µs. To sum gaps, add them unrounded and round
// the sum, so that rounding errors do not accumulate.
func Micros(us float64) (int64, error) {
	if !(us >= 0 && us <= maxMicros) { // also for NaN
		return 0, fmt.Errorf("a time must be between 0 and %d µs, is %g", int64(maxMicros), us)
	}
	return des.Micros(us), nil
}

// variate draws from a distribution.
type variate func(*rand.Rand) float64

// ParamError is an invalid part of a description. Path names it ("type", "params.mean", "cv").
type ParamError struct{ Path, Msg string }

func (e *ParamError) Error() string { return e.Path + ": " + e.Msg }

func invalid(path, format string, args ...any) *ParamError {
	return &ParamError{path, fmt.Sprintf(format, args...)}
}

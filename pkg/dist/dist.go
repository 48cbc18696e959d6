// Package dist draws: seeded streams of random numbers, distributions of
// lengths in tokens, and processes of arrivals. Everything is a function of
// its parameters and of the stream that it is drawn from.
package dist

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"blis/pkg/des"
)

// NewStream returns the random stream called name of seed: a PCG whose state is
// a hash of both. It depends on nothing else, so that streams can be made in
// any order, and one more leaves all others alone.
func NewStream(seed uint64, name string) *rand.Rand { return rand.New(NewSource(seed, name)) }

// NewSource is the source of NewStream, for whoever goes on from a copy of it.
func NewSource(seed uint64, name string) *rand.PCG {
	sum := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, seed), name...))
	return rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:]))
}

// maxMicros bounds times: up to there every whole number is a float64, and an
// exact number to every JSON reader. It is 285 years.
const maxMicros = 1 << 53

// Micros rounds a time of a workload half up to whole µs; whoever adds up gaps adds them unrounded and
// rounds the sum, so that roundings do not add up.
func Micros(us float64) (int64, error) {
	if !(us >= 0 && us <= maxMicros) { // also if it is no number
		return 0, fmt.Errorf("a time must be between 0 and %d µs, is %g", int64(maxMicros), us)
	}
	return des.Micros(us), nil
}

// variate is one draw of a distribution from a stream.
type variate func(*rand.Rand) float64

// ParamError is a fault in a description. Path says where in it ("type",
// "params.mean", "cv").
type ParamError struct{ Path, Msg string }

func (e *ParamError) Error() string { return e.Path + ": " + e.Msg }

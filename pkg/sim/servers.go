package sim

import (
	"fmt"
	"math"
	"math/rand/v2"

	"blis/pkg/cluster"
	"blis/pkg/dist"
	"blis/pkg/engine"
	"blis/pkg/kv"
	"blis/pkg/latency"
)

// server is how long the replicas of a deployment take and what sequences hold
// there, as far as that follows from the model; jitter is drawn from streams
// named by the seed and the deployment's id.
type server struct {
	model  latency.Model
	window int // of the model's sliding-window layers; 0: none
	hold   kv.Window
	jitter float64
	id     string
	seed   uint64
}

// serversOf makes the servers of all deployments of c.
func serversOf(c *cluster.Config, jitterSeed uint64) ([]server, error) {
	var all []server
	for i := range c.Deployments {
		d := &c.Deployments[i]
		model, err := d.LatencyModel()
		if err != nil {
			return nil, err
		}
		s := server{model: model, hold: d.Computed.Window.Hold(), jitter: d.Latency.Jitter.CV, id: d.ID, seed: jitterSeed}
		if d.Computed.Window != nil {
			s.window = d.Computed.Window.Tokens
		}
		all = append(all, s)
	}
	return all, nil
}

// jitter is the noise on one replica's step times and where it is drawn from.
type jitter struct {
	cv     float64
	stream *rand.PCG
}

// noise is the jitter of replica k.
func (s *server) noise(k int) jitter {
	return jitter{s.jitter, dist.NewSource(s.seed, fmt.Sprintf("jitter/%s/%d", s.id, k))}
}

// of returns m with the jitter.
func (j jitter) of(m latency.Model) latency.Model {
	return latency.Jitter(m, j.cv, rand.New(j.stream).NormFloat64)
}

// clone draws the same numbers from here on.
func (j jitter) clone() jitter {
	stream := *j.stream
	return jitter{j.cv, &stream}
}

// bounds are a deployment's in the engine's own terms. The engine cores of a
// replica with data parallelism are one engine of as many times the size.
func bounds(d *cluster.Deployment, window int, keepGaps bool) engine.Config {
	e := &d.Engine
	cores := e.DataParallelSize
	threshold := max(e.LongPrefillTokenThreshold, e.ChunkSize)
	if cores > 1 && (threshold == 0 || threshold > e.MaxNumBatchedTokens) {
		threshold = e.MaxNumBatchedTokens // a sequence has one core's budget
	}
	return engine.Config{MaxNumSeqs: e.MaxNumSeqs * cores, MaxNumBatchedTokens: e.MaxNumBatchedTokens * cores,
		ChunkedPrefill: e.EnableChunkedPrefill, LongPrefillTokenThreshold: threshold,
		AsyncScheduling: e.AsyncScheduling, ReserveFullSequence: e.ReserveFullSequence,
		WatermarkBlocks: int(math.Floor(e.Watermark * float64(d.Blocks()*cores))), Window: window, KeepGaps: keepGaps}
}

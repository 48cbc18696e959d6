package engine

import (
	"fmt"
	"testing"

	"blis/pkg/internal/reference"
)

// pipelineOf converts that of the reference.
func pipelineOf(c reference.Config) *Pipeline {
	p := c.Pipeline
	if p == nil {
		return nil
	}
	return &Pipeline{Layers: p.Layers, Batches: p.Batches, EmptyBatches: p.EmptyBatches, Cadence: p.Cadence,
		HopUS: p.HopUS, HopTokenUS: p.HopTokenUS, MaxModelLen: c.MaxModelLen}
}

// TestReferenceOnPipelines is TestReference with pipeline parallelism.
func TestReferenceOnPipelines(t *testing.T) {
	compareFeature(t, 1000, reference.RandomPipeline, func(c *reference.Config) any { return *c.Pipeline }, nil)
}

// TestPipelineThroughput: four equal stages take 1 ms each. N requests whose prompts fill a batch each decode in N
// batches, which give N tokens in 4 ms.
func TestPipelineThroughput(t *testing.T) {
	const tokens = 101
	for _, n := range []int{1, 2, 4} {
		c := reference.Config{Replicas: 1, MaxNumSeqs: 8, MaxNumBatchedTokens: 8, BlockSize: 4, NumBlocks: 1000,
			Chunked: true, Beta: []float64{4000, 0, 0}, Routing: "round-robin", HorizonUS: reference.Never,
			Pipeline: &reference.Pipeline{Layers: []int{8, 8, 8, 8}, Batches: 4, Cadence: 1,
				EmptyBatches: true}}
		var requests []reference.Request
		for i := range n {
			requests = append(requests, reference.Request{ID: fmt.Sprint(i), Input: 8, Output: tokens,
				DeadlineUS: reference.Never})
		}
		p := newHarness(t, c, requests, reference.Run(c, requests))
		p.run()
		s := p.engine.Stats()
		busy, computed := int64(4000*tokens+1000*(n-1)), int64(4000*tokens*n)
		if s.BusyUS != busy || s.StageUS != computed {
			t.Errorf("%d batches: busy for %d µs, want %d; stages computed for %d µs, want %d", n, s.BusyUS, busy,
				s.StageUS, computed)
		}
		t.Logf("%d batches: bubbles %.4f", n, 1-float64(s.StageUS)/float64(4*s.BusyUS))
	}
}

package sim

import (
	"fmt"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
)

// TestReferenceOnPipelines compares random clusters with pipeline parallelism.
func TestReferenceOnPipelines(t *testing.T) {
	compareSeeds(t, 2000, 150, reference.RandomPipeline)
}

// TestReferenceOnPipelineSessions compares those with sessions, and with clients that send requests again.
func TestReferenceOnPipelineSessions(t *testing.T) {
	compareSeeds(t, 500, 100, reference.RandomPipelineSessions)
}

// setPipeline converts that of the reference.
func setPipeline(d *cluster.Deployment, c *reference.Config) {
	p := c.Pipeline
	if p == nil {
		return
	}
	e := &d.Engine
	e.PipelineParallelSize = len(p.Layers)
	e.UseV2ModelRunner = new(p.Batches > len(p.Layers))
	e.PipelineEmptyBatches, e.PipelineHopUS, e.PipelineHopTokenUS = &p.EmptyBatches, &p.HopUS, &p.HopTokenUS
	d.Computed.PipelineLayers, d.Computed.MaxConcurrentBatches = p.Layers, p.Batches
}

// stageTotals reports metrics of pipelines that do not follow from the times in which the stages computed.
func (got *runFields) stageTotals(want reference.Result) string {
	computed := int64(0)
	for _, us := range want.StageUS {
		computed += us
	}
	p := got.metrics.Pipeline
	if p == nil {
		return ""
	}
	if p.StageMS != float64(computed)/1000 || p.BubbleShare < 0 || p.BubbleShare >= 1 {
		return fmt.Sprintf("stages computed for %d µs, the metrics are %+v", computed, p)
	}
	return ""
}

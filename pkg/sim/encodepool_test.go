package sim

import (
	"fmt"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
	"blis/pkg/stream"
)

// TestReferenceOnEncodePools compares random clusters with images and encode replicas with the plain reference: all
// times, counts, steps and transfers must be equal.
func TestReferenceOnEncodePools(t *testing.T) {
	compareSeeds(t, 2000, 200, reference.RandomEncodePool)
}

// TestReferenceOnEncodePoolSessions compares those with sessions, and with clients that send requests again.
func TestReferenceOnEncodePoolSessions(t *testing.T) {
	compareSeeds(t, 1000, 100, reference.RandomEncodePoolSessions)
}

// TestReferenceOnEncodePrefill compares random clusters with pools of encode, prefill and decode replicas.
func TestReferenceOnEncodePrefill(t *testing.T) {
	compareSeeds(t, 2000, 200, reference.RandomEncodePrefill)
}

// setEncodePool sets the encode replicas of the reference.
func setEncodePool(d *cluster.Deployment, c *reference.Config) {
	p := c.EncodePool
	if p == nil {
		return
	}
	d.Computed.EmbeddingBytes = int64(p.TokenBytes)
	d.Encode = &cluster.EncodePool{Replicas: p.Replicas, GPUs: 1, MaxNumSeqs: p.MaxSeqs, MaxNumInputTokens: p.Budget,
		CacheSize: p.Cache, TokenUS: &p.TokenUS, ItemUS: &p.ItemUS, Routing: "least-loaded",
		Transfer: cluster.EncoderTransfers{LatencyUS: p.LatencyUS, OutGBPerS: p.OutGBPerS, InGBPerS: p.InGBPerS}}
	if p.RoundRobin {
		d.Encode.Routing = cluster.EncodeRoundRobin
	}
}

// embeddingsOf converts a transfer of embeddings to a replica.
func embeddingsOf(x *stream.Transfer, replica int) reference.EmbeddingsTransfer {
	t := reference.EmbeddingsTransfer{From: int(x.EncodeReplica), To: replica, Tokens: int(x.Tokens),
		Request: x.Request, AskedUS: int64(x.AskedUS), EndedUS: int64(x.EndedUS)}
	_, err := fmt.Sscanf(x.ID, "embeddings-%d", &t.N)
	must(err)
	return t
}

// encodeTotals compares what encode replicas did.
func (got *runFields) encodeTotals(want reference.Result) string {
	p := got.metrics.EncodePool
	if p == nil {
		return ""
	}
	if c := want.EncodePool; p.Items != int64(c.Encoded) || p.CacheHits != int64(c.Hits) ||
		p.Transfers != int64(len(want.Embeddings)) {
		return fmt.Sprintf("encode replicas: %+v, want %+v and %d transfers", p, c, len(want.Embeddings))
	}
	return ""
}

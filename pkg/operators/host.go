package operators

import "blis/pkg/latency"

// The host's times in µs. They were chosen by hand on 343 configurations of servers on H100, H200, B200
// and B300 (vLLM 0.10 to 0.19, scripts/silicon), the same for all: median errors of 3.8 % in TPOT and 6.9 %
// in TTFT there. Times chosen on one half of these servers have 4.2 % and 7.8 % on the other half
// (scripts/silicon-holdout). The two without asynchronous scheduling are those of a prototype on other servers.
const (
	// A step and each sequence: preparation of inputs, sampling, and what scheduling does not hide.
	asyncStepUS, asyncSequenceUS = 50, 2
	// Without asynchronous scheduling the GPU waits while the scheduler works.
	syncStepUS, syncSequenceUS = 1500, 40
	// Launching the pieces of a layer that are CUDA graphs, and what is between them; with experts, for steps of
	// 512 tokens and more. A piece is one launch however many kernels it has (CUDAGraphWrapper.__call__ in
	// vllm/compilation/cuda_graph.py, v0.15.1), so that experts do not make it longer for the host. The servers that
	// the second time was chosen on had steps of 800 to 2048 tokens there: it is more time on the GPU than
	// was measured of its kernels, and less for fewer tokens.
	piecesLayerUS, piecesExpertsUS = 100, 600
	// Launching the kernels of a layer one by one where no CUDA graph has the size; with experts, and of
	// a model compiled as a whole. With chunks of a model with experts, a step takes less than that longer.
	eagerLayerUS, eagerExpertsUS, eagerWholeUS = 100, 600, 450
	eagerExpertChunksUS                        = 350
	// The kernels of steps with chunks but experts, compared with their measurements one by one.
	chunkFactor = 1.1
)

// host returns the work of the host.
func (c *compiler) host() latency.Host {
	h := latency.Host{StepUS: asyncStepUS, SequenceUS: asyncSequenceUS, Captured: c.machine.Captured,
		ChunkFactor: chunkFactor}
	if !c.machine.AsyncScheduling {
		h.StepUS, h.SequenceUS = syncStepUS, syncSequenceUS
	}
	for _, l := range c.arch.Layers {
		eager, chunks := float64(eagerLayerUS), float64(eagerLayerUS)
		if l.MLP.Experts > 0 {
			h.ExpertPiecesUS += float64(float64(l.Count) * (max(piecesExpertsUS, piecesLayerUS) - piecesLayerUS))
			eager, chunks = eagerExpertsUS, eagerExpertChunksUS
		}
		if c.machine.Graphs == WholeDecodeOnly {
			eager, chunks = max(eager, eagerWholeUS), max(chunks, eagerWholeUS)
		}
		h.PiecesUS += float64(float64(l.Count) * piecesLayerUS)
		h.EagerUS += float64(float64(l.Count) * eager)
		h.EagerChunksUS += float64(float64(l.Count) * chunks)
	}
	switch c.machine.Graphs {
	case NoGraphs:
		h.Captured = 0
	case PiecesOnly:
		h.DecodeInPieces = true
	case WholeDecodeOnly:
		h.ChunksEager = true
	case WholeSteps:
		h.PiecesUS, h.ExpertPiecesUS = 0, 0
	}
	return h
}

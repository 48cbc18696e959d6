package operators

import (
	"fmt"

	"blis/pkg/model"
)

// activationBytes is the size of an activation.
const activationBytes = 2

// Short kernels of a layer besides products, attention and exchanges: norm and rotation of queries
// and keys, writing the cache, two norms with residuals; activation of a dense
// MLP, or choice of experts, their order and their sum. The counts, 6 and 7, are what a fit of servers
// prefers; they are not counted in a trace.
const (
	attentionKernels = 4
	denseKernels     = 2
	expertKernels    = 3
	// MLA modules have their own norms and rotations.
	moduleKernels = 2
)

// layer adds the kernels of a group of layers.
func (c *compiler) layer(l *model.Layers) error {
	count := float64(l.Count)
	if err := c.attention(l); err != nil {
		return err
	}
	if l.MLP == (model.MLP{}) {
		return nil
	}
	_, mlp, _ := c.arch.Precision.Formats()
	m := &l.MLP
	hidden := c.arch.Hidden
	tp := c.machine.TensorParallel
	if m.Intermediate > 0 {
		up := 2
		if m.Plain {
			up = 1
		}
		inner := ceilDiv(m.Intermediate, tp)
		c.fusedProduct(count, mlp, up*inner, hidden)
		c.fusedProduct(count, mlp, hidden, inner)
		c.smalls(count, denseKernels, up*inner)
	}
	if m.Latent > 0 {
		c.product(count, mlp, m.Latent, hidden)
		c.product(count, mlp, hidden, m.Latent)
	}
	if m.Experts == 0 {
		return c.allReduce(count, &c.tokens)
	}
	c.router(count, m.Experts)
	c.smalls(count, expertKernels, hidden)
	if err := c.routed(count, m); err != nil {
		return err
	}
	return c.expertExchange(count)
}

// ceilDiv is a part of n that d share.
func ceilDiv(n, d int) int { return (n + d - 1) / d }

// smalls adds n short kernels in count layers, which read and write width numbers for each token.
func (c *compiler) smalls(count float64, n, width int) {
	c.tokens = append(c.tokens, kernel{count * float64(n), func(tokens float64) float64 {
		return c.small(tokens * float64(2*activationBytes*width))
	}})
}

// product adds the product of tokens with a matrix of n by k in count layers.
func (c *compiler) product(count float64, format string, n, k int) {
	c.tokens = append(c.tokens, kernel{count, c.gemm(format, n, k)})
}

// fusedProduct adds a product whose input comes from a norm or an activation. In the tables, products in fp8
// have a kernel before them that quantizes their inputs (fp8_static of aiconfigurator_core/sdk 0.12.0 is such a
// product less the times of compute_scale and scale_matrix). In a compiled model it is part of the norm or the
// activation (RMSNormQuantFusionPass and ActivationQuantFusionPass in vllm/compilation/passes/fusion, v0.19.1,
// and the compiler's own fusion before). It reads a number in 16 bits and writes one in 8: within 15 % of the
// measured times of both kernels on H200, and up to 35 % less than these on B200.
func (c *compiler) fusedProduct(count float64, format string, n, k int) {
	us := c.gemm(format, n, k)
	if c.gemmDType(format) == "fp8" {
		measured := us
		us = func(tokens float64) float64 {
			return max(launchUS, measured(tokens)-c.small(tokens*float64((activationBytes+1)*k)))
		}
	}
	c.tokens = append(c.tokens, kernel{count, us})
}

// allReduce adds the sum of the hidden state over the GPUs of a tensor-parallel group.
func (c *compiler) allReduce(count float64, to *[]kernel) error {
	tp := c.machine.TensorParallel
	if tp == 1 {
		return nil
	}
	us, err := c.sumOver(tp)
	hidden := float64(c.arch.Hidden)
	*to = append(*to, kernel{count, func(tokens float64) float64 {
		elements := float64(tokens * hidden)
		if activationBytes*elements <= float64(c.machine.FusedBytes) {
			return c.fused(us, elements) + waitUS
		}
		return us(elements) + waitUS
	}})
	return err
}

// waitUS is how long a sum over GPUs waits for the last of them: the tables were measured with nothing but sums,
// before which no GPU has other work than another. It was chosen on the rows of scripts/silicon, where models on
// one GPU need none.
const waitUS = 2.0

// fused is the time of a sum over GPUs of n elements in one kernel with the norm after it (FlashInfer's
// trtllm_allreduce_fusion). The norm needs no launch, and does not read the sum again. The table has
// the time of the sum alone; where each GPU reads the data of all others at once, the kernel takes
// little more than the least time.
func (c *compiler) fused(us func(elements float64) float64, n float64) float64 {
	time, bytes := us(n), n*activationBytes
	if bytes <= float64(c.machine.OneShotBytes) && c.machine.Link > 0 {
		time = min(time, us(1)+float64(c.machine.TensorParallel-1)*bytes*1e6/c.machine.Link)
	}
	return max(launchUS, time-c.small(2*bytes))
}

// sumOver returns the time of an all-reduce of a number of elements over GPUs.
func (c *compiler) sumOver(gpus int) (func(elements float64) float64, error) {
	if g := c.tables.series[key("allreduce", gpus)]; g != nil {
		return func(n float64) float64 { return g.interpolate(n, 0) }, nil
	}
	if g := c.tables.series[key("nccl", "all_reduce", gpus)]; g != nil {
		c.note("all-reduce over %d GPUs: by NCCL", gpus)
		return func(n float64) float64 { return g.interpolate(n, 0) }, nil
	}
	for _, most := range []int{8, 4, 2} {
		if g := c.tables.series[key("allreduce", most)]; g != nil {
			// A ring sends 2(n−1)/n of the data.
			factor := 2 * float64(gpus-1) / float64(gpus) / (2 * float64(most-1) / float64(most))
			c.note("all-reduce over %d GPUs: that over %d, times %.2g", gpus, most, factor)
			return func(n float64) float64 { return factor * g.interpolate(n, 0) }, nil
		}
	}
	return nil, fmt.Errorf("%w of all-reduce on %s", ErrNone, c.tables.System)
}

// collective returns the time of a NCCL collective of a number of elements over GPUs.
func (c *compiler) collective(name string, gpus int) (func(elements float64) float64, error) {
	for n := gpus; n >= 2; n-- {
		if g := c.tables.series[key("nccl", name, n)]; g != nil {
			if n != gpus {
				c.note("%s over %d GPUs: that over %d", name, gpus, n)
			}
			return func(n float64) float64 { return g.interpolate(n, 0) }, nil
		}
	}
	for n := gpus + 1; n <= 8; n++ {
		if g := c.tables.series[key("nccl", name, n)]; g != nil {
			c.note("%s over %d GPUs: that over %d", name, gpus, n)
			return func(n float64) float64 { return g.interpolate(n, 0) }, nil
		}
	}
	return nil, fmt.Errorf("%w of %s on %s", ErrNone, name, c.tables.System)
}

// expertExchange adds the exchange after the experts: a sum over the tensor-parallel group or, where
// data-parallel ranks share experts, an all-gather before and a reduce-scatter after them, vLLM's
// default (AgRsAll2AllManager in vllm/distributed/device_communicators/all2all.py, v0.15.1).
func (c *compiler) expertExchange(count float64) error {
	m := c.machine
	if m.DataParallel == 1 {
		return c.allReduce(count, &c.experts)
	}
	for _, name := range []string{"all_gather", "reduce_scatter"} {
		us, err := c.collective(name, m.DataParallel)
		if err != nil {
			return err
		}
		hidden := float64(c.arch.Hidden)
		c.experts = append(c.experts, kernel{count, func(tokens float64) float64 { return us(tokens * hidden) }})
	}
	return c.allReduce(count, &c.tokens)
}

// samplerKernels are the short kernels after the logits: conversion, penalties, temperature, softmax,
// choice (Sampler.forward in vllm/v1/sample/sampler.py, v0.15.1 to v0.33.0).
const samplerKernels = 10

// samplerPasses is how often they read or write the logits, in 32 bits.
const samplerPasses = 5

// head returns the kernels that depend on the sequences: the head, and sampling. It adds the
// embedding.
func (c *compiler) head() ([]kernel, error) {
	tp, vocab, hidden := c.machine.TensorParallel, c.arch.Vocab, c.arch.Hidden
	list := []kernel{
		{1, c.gemm("", ceilDiv(vocab, tp), hidden)},
		{1, func(n float64) float64 {
			return samplerKernels*launchUS + n*float64(vocab)*4*samplerPasses*1e6/(smallEfficiency*c.machine.Bandwidth)
		}},
	}
	c.smalls(1, 2, hidden)
	if tp == 1 {
		return list, nil
	}
	us, err := c.collective("all_gather", tp)
	if err != nil {
		return nil, err
	}
	list = append(list, kernel{1, func(n float64) float64 { return us(n * float64(vocab)) }})
	return list, c.allReduce(1, &c.tokens)
}

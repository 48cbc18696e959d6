package operators

// float32Routers are the types of models whose routers vLLM computes in 32 bits: the gates have params_dtype or
// dtype torch.float32 (minimax_m2.py, mimo_v2_flash.py and step3p5.py of vllm/model_executor/models, v0.15.1 and
// v0.19.0; vllm/models/minimax_m3, v0.33.0).
var float32Routers = map[string]bool{"minimax_m2": true, "minimax_m3": true, "minimax_m3_vl": true,
	"mimo_v2_flash": true, "step3p7": true}

// router adds the product that chooses experts, in 16 bits unless the model's is in 32.
func (c *compiler) router(count float64, experts int) {
	hidden := c.arch.Hidden
	if !float32Routers[c.arch.Type] {
		c.product(count, "", experts, hidden)
		return
	}
	c.smalls(count, 1, hidden) // conversion of the input
	if c.machine.TensorFloat32 {
		c.product(count, "", experts, hidden)
		return
	}
	c.tokens = append(c.tokens, kernel{count, func(tokens float64) float64 {
		return float32Product(tokens, float64(experts), float64(hidden))
	}})
}

// float32Product is the time of a product of tokens with a matrix of n by k in 32 bits without tensor cores. The
// tables have none. A multiprocessor has 128 units for additions of products (data sheets of A100 to B300: 64 to
// 128) at some 1.8 GHz. Few tokens leave most of the multiprocessors idle: 16 columns of the result for up to 128
// tokens are on one, which is a choice; servers with 64 and 128 users and VLLM_FLOAT32_MATMUL_PRECISION=high take
// about 30 us less for a layer of MiniMax-M2.5 than without it.
func float32Product(tokens, n, k float64) float64 {
	const (
		perUS          = 2 * 128 * 1.8e3 // FLOPs of a multiprocessor
		multiprocessor = 130             // of a GPU: 132 on Hopper, 148 on Blackwell
		columns, rows  = 16, 128
	)
	alone := 2 * min(tokens, rows) * columns * k / perUS
	return launchUS + alone + 2*float64(tokens*n)*k/(perUS*multiprocessor)
}

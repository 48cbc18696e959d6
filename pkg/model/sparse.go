package model

import "fmt"

// Compressed is the attention of DeepSeek-V4 (vllm/model_executor/models/deepseek_v4.py): a layer
// attends to a window of tokens and, with a Ratio, to the rest in groups of Ratio tokens that are
// stored as one vector each. Queries and output are of low rank.
type Compressed struct {
	QRank int `json:"q_rank"`
	// OutGroups groups of heads are mapped to OutRank numbers each.
	OutRank   int `json:"out_rank"`
	OutGroups int `json:"out_groups"`
	Ratio     int `json:"ratio,omitempty"`
}

// overlapRatio is the compression whose groups overlap with the next, and that has an indexer.
const overlapRatio = 4

// parameters counts the queries, the one vector of keys and values, the output, the matrices that
// compress (twice as wide for groups that overlap) and the indexer with those of its keys.
func (z *Compressed) parameters(hidden int64, t *Attention) int64 {
	dim, rank, out := int64(t.HeadDim), int64(z.QRank), int64(z.OutRank)
	heads := int64(t.Heads)
	n := hidden*rank + rank + rank*heads*dim + hidden*dim + dim + heads*dim*out + int64(z.OutGroups)*out*hidden + heads
	wide := int64(1)
	if z.Ratio == overlapRatio {
		wide = 2
	}
	if z.Ratio > 0 {
		n += 2*hidden*wide*dim + int64(z.Ratio)*wide*dim + dim
	}
	if t.Index.Heads > 0 {
		index := int64(t.Index.Dim)
		n += rank*int64(t.Index.Heads)*index + hidden*int64(t.Index.Heads) + 2*hidden*wide*index +
			int64(z.Ratio)*wide*index + index
	}
	return n
}

// compressed sets the attention of layer i of a DeepSeek-V4.
func (c *hfConfig) compressed(t Attention, i int) (Attention, error) {
	z := &Compressed{}
	t.Compressed, t.KeysAreValues = z, true
	for _, v := range []struct {
		name string
		from *int
		to   *int
		most int
	}{
		{"q_lora_rank", c.QRank, &z.QRank, maxWidth},
		{"o_lora_rank", c.OutRank, &z.OutRank, maxWidth},
		{"o_groups", c.OutGroups, &z.OutGroups, maxHeads},
		{"sliding_window", c.Window, &t.Window, maxSize},
	} {
		if *v.to = deref(v.from, 0); *v.to < 1 || *v.to > v.most {
			return t, fieldError(v.name, v.from, "must be between 1 and %d", v.most)
		}
	}
	if i >= len(c.CompressRatios) {
		return t, fmt.Errorf("compress_ratios: must have an entry for each layer, has %d", len(c.CompressRatios))
	}
	if z.Ratio = c.CompressRatios[i]; z.Ratio < 0 || z.Ratio > maxHeads {
		return t, fmt.Errorf("compress_ratios[%d]: must be between 0 and %d, is %d", i, maxHeads, z.Ratio)
	}
	if z.Ratio != overlapRatio {
		return t, nil
	}
	var err error
	t.Index, err = c.index(i)
	return t, err
}

// hfSparse holds the fields of sparse attention.
type hfSparse struct {
	IndexHeads     *int           `json:"index_n_heads"`
	IndexDim       *int           `json:"index_head_dim"`
	IndexTopK      *int           `json:"index_topk"`
	IndexTypes     []string       `json:"indexer_types"`
	BlockSparse    *hfBlockSparse `json:"sparse_attention_config"`
	CompressRatios []int          `json:"compress_ratios"`
	OutRank        *int           `json:"o_lora_rank"`
	OutGroups      *int           `json:"o_groups"`
}

// hfBlockSparse is sparse_attention_config of MiniMax-M3, which chooses blocks of tokens.
type hfBlockSparse struct {
	Layers []int `json:"sparse_attention_freq"`
	Heads  *int  `json:"sparse_num_index_heads"`
	Dim    *int  `json:"sparse_index_dim"`
	TopK   *int  `json:"sparse_topk_blocks"`
	Block  *int  `json:"sparse_block_size"`
}

// index returns the indexer of layer i. One that indexer_types calls shared has no heads.
func (c *hfConfig) index(i int) (x Index, err error) {
	heads, dim, topK, block := c.IndexHeads, c.IndexDim, c.IndexTopK, 1
	names := [3]string{"index_n_heads", "index_head_dim", "index_topk"}
	if b := c.BlockSparse; b != nil {
		if i < len(b.Layers) && b.Layers[i] == 0 {
			return x, nil
		}
		heads, dim, topK, block = b.Heads, b.Dim, b.TopK, deref(b.Block, 1)
		at := "sparse_attention_config."
		names = [3]string{at + "sparse_num_index_heads", at + "sparse_index_dim", at + "sparse_topk_blocks"}
		if block < 1 || block > maxWidth {
			return x, fieldError(at+"sparse_block_size", b.Block, "must be between 1 and %d", maxWidth)
		}
	}
	for k, v := range []struct {
		from *int
		to   *int
		most int
	}{{heads, &x.Heads, maxHeads}, {dim, &x.Dim, maxHeads}, {topK, &x.TopK, maxWidth}} {
		if *v.to = deref(v.from, 0); *v.to < 0 || *v.to > v.most {
			return x, fieldError(names[k], v.from, "must be between 0 and %d", v.most)
		}
	}
	if x.TopK *= block; i < len(c.IndexTypes) && c.IndexTypes[i] == "shared" {
		x.Heads, x.Dim = 0, 0
	}
	return x, nil
}

package model

// AdapterSlots are Count slots for LoRA adapters of Model up to a rank. Without a Model there are none.
type AdapterSlots struct {
	Model       *Architecture
	Count, Rank int
	// ExpertParallel: each GPU has some of the experts, not a part of each.
	ExpertParallel bool
}

// bytes is the memory of the slots on one of tp GPUs that share each layer: for each matrix the buffers of A, which
// maps its input to the rank, and of B, which maps the rank to its output, with numbers of 2 bytes. All linear layers
// have them, experts too, and in some families the embedding matrices, which every GPU has in whole
// (create_lora_weights in vllm/lora/layers, get_supported_lora_modules in vllm/lora/utils.py, v0.33.0, with
// fully_sharded_loras off). It returns those of layers and of embedding matrices.
func (a *AdapterSlots) bytes(tp int) (layers, ends int64) {
	if a.Model == nil {
		return 0, 0
	}
	m, s := a.Model, slot{int64(tp), a.ExpertParallel}
	hidden := int64(m.Hidden)
	for i := range m.Layers {
		l := &m.Layers[i]
		layers += int64(l.Count) * (s.attention(&l.Attention, hidden) + s.mlp(&l.MLP, hidden))
	}
	if m.adaptsEmbeddings() {
		ends = 2 * s.whole(hidden, int64(m.Vocab))
	}
	const number = 2
	each := number * int64(a.Count) * int64(a.Rank)
	return each * layers, each * ends
}

// adaptsEmbeddings reports whether adapters also apply to the embedding matrices.
func (a *Architecture) adaptsEmbeddings() bool {
	for _, f := range families {
		if f.Name == a.Type {
			return f.Value.adaptedEmbeddings
		}
	}
	return false
}

// AdaptsAll reports whether AdapterSlots count all matrices of the model: those of DeepSeek-V4's attention and of
// indexers are left out.
func (a *Architecture) AdaptsAll() bool {
	for i := range a.Layers {
		if t := &a.Layers[i].Attention; t.Compressed != nil || t.Index.Heads > 0 {
			return false
		}
	}
	return true
}

// slot counts the numbers of a slot for each rank, on one of tp GPUs.
type slot struct {
	tp             int64
	expertParallel bool
}

// whole is for a matrix that all GPUs have.
func (s slot) whole(in, out int64) int64 { return in + out }

// columns is for matrices with the same input whose outputs are divided: each GPU has A of every one of them.
func (s slot) columns(in int64, outs ...int64) (n int64) {
	for _, out := range outs {
		n += in + max(1, out/s.tp)
	}
	return n
}

// rows is for a matrix whose input is divided.
func (s slot) rows(in, out int64) int64 { return in/s.tp + out }

func (s slot) attention(t *Attention, hidden int64) int64 {
	heads := int64(t.Heads)
	switch {
	case t.Linear != nil:
		keys, values := t.Linear.widths()
		return s.columns(hidden, keys, keys, values, values) + s.rows(values, hidden)
	case t.Heads == 0, t.Compressed != nil:
		return 0
	case t.MLA != nil:
		m := t.MLA
		rank, query, value := int64(m.KVRank), heads*int64(m.NopeDim+m.RopeDim), heads*int64(m.VDim)
		n := s.whole(hidden, rank+int64(m.RopeDim)) + s.columns(rank, heads*int64(m.NopeDim)+value) +
			s.rows(value, hidden)
		if q := int64(m.QRank); q > 0 {
			return n + s.whole(hidden, q) + s.columns(q, query)
		}
		return n + s.columns(hidden, query)
	}
	queries, out := heads*int64(t.HeadDim), heads*int64(t.valueDim())
	if t.Gate {
		queries += out
	}
	kv := max(int64(t.KVHeads), s.tp) // heads are copied if there are fewer than GPUs
	n := s.columns(hidden, queries, kv*int64(t.HeadDim)) + s.rows(out, hidden)
	if !t.KeysAreValues {
		n += s.columns(hidden, kv*int64(t.valueDim()))
	}
	return n
}

func (s slot) mlp(m *MLP, hidden int64) (n int64) {
	if m.Intermediate > 0 {
		n += s.feedForward(m, hidden, int64(m.Intermediate))
	}
	if m.Experts == 0 {
		return n
	}
	n += s.whole(hidden, int64(m.Experts)) // the router
	if m.Latent > 0 {
		n += 2 * s.whole(hidden, int64(m.Latent))
		hidden = int64(m.Latent)
	}
	experts := int64(m.Experts)
	if s.expertParallel {
		experts, s.tp = (experts+s.tp-1)/s.tp, 1
	}
	return n + experts*s.feedForward(m, hidden, int64(m.ExpertIntermediate))
}

// feedForward is for the matrices of an MLP of this width.
func (s slot) feedForward(m *MLP, hidden, inner int64) (n int64) {
	for range m.matrices() - 1 {
		n += s.columns(hidden, inner)
	}
	return n + s.rows(inner, hidden)
}

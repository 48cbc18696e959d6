package latency_test

import (
	"encoding/csv"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"blis/pkg/latency"
	"blis/pkg/model"
	"blis/pkg/stream"
)

// step is a measured step: a cell of a table.
type step struct {
	kind  string // prefill, decode or mixed
	batch latency.Batch
	work  *model.Work
	tp    int
	us    float64
	// sequences and length are the axes of residual tables: the number of sequences and the tokens of
	// each (in a mixed step, of each decode sequence).
	sequences, length int64
}

// measurement holds steps of one GPU and one server.
type measurement struct {
	name, gpu string
	steps     []step
}

// halves splits the steps alternately, in the order of their cells: both halves cover the range,
// and share no cell.
func (m measurement) halves() (fit, heldOut []step) {
	for i, s := range m.steps {
		if i%2 == 0 {
			fit = append(fit, s)
		} else {
			heldOut = append(heldOut, s)
		}
	}
	return fit, heldOut
}

// transformer is a dense 16-bit model with gated MLPs.
func transformer(layers, hidden, heads, kvHeads, headDim, inner, vocabulary int64) model.Work {
	params := layers * (hidden*headDim*(2*heads+2*kvHeads) + 3*hidden*inner)
	return model.Work{
		Layers: int(layers), Reduces: int(2 * layers), Hidden: int(hidden), KVHeads: int(kvHeads),
		Dense:     model.Weights{Params: params, Bytes: 2 * params},
		Head:      model.Weights{Params: hidden * vocabulary, Bytes: 2 * hidden * vocabulary},
		PairFLOPs: 4 * heads * headDim * layers, DecodePairFLOPs: 4 * heads * headDim * layers,
		KVBytes: 2 * 2 * kvHeads * headDim * layers,
	}
}

var (
	llama8B  = transformer(32, 4096, 32, 8, 128, 14336, 128256)
	llama70B = transformer(80, 8192, 64, 8, 128, 28672, 32000)
	qwen32B  = transformer(64, 5120, 64, 8, 128, 25600, 151936)
	llama7B  = transformer(32, 4096, 32, 32, 128, 11008, 32000)
	code34B  = transformer(48, 8192, 64, 8, 128, 22016, 32000)
)

// mixtral8x7B has Mixtral's experts instead of MLPs.
var mixtral8x7B = func() model.Work {
	w := transformer(32, 4096, 32, 8, 128, 0, 32000)
	w.ExpertLayers, w.Experts, w.ExpertsPerToken = 32, 8, 2
	w.Expert = model.Weights{Params: 3 * 4096 * 14336, Bytes: 2 * 3 * 4096 * 14336}
	return w
}()

// rows reads a table of measured steps, by column, or skips the test.
func rows(t *testing.T, parts ...string) func(yield func(map[string]string) bool) {
	t.Helper()
	path := filepath.Join("../../../shared/data", filepath.Join(parts...))
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is not there", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plain, release := stream.Decompress(f)
	defer release()
	all, err := csv.NewReader(plain).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(map[string]string) bool) {
		for _, fields := range all[1:] {
			row := make(map[string]string, len(fields))
			for i, column := range all[0] {
				row[column] = fields[i]
			}
			if !yield(row) {
				return
			}
		}
	}
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// splitwise returns Splitwise's measurements of Llama-2-70b (splitwise-sim 8f99e7dc,
// data/perf_model.csv): whole steps of a server of 2023, prompts alone and decode alone, five or
// more runs each; a cell is their median. A decode step is the mean over 128 tokens.
//
// 64 sequences on two GPUs are left out: they take less time than 8, so they cannot have been in
// one batch (their KV cache does not fit).
func splitwise(t *testing.T, gpu, column string) measurement {
	type cell struct {
		tp, prefill, sequences, decode int64
		context                        float64
	}
	cells := map[cell][]float64{}
	for row := range rows(t, "steps", "splitwise_steps.csv.zst") {
		if row["model"] != "llama2-70b" || row["gpu"] != column {
			continue
		}
		n := func(c string) int64 { return int64(number(t, row[c])) }
		c := cell{n("tp"), n("prefill_tokens"), n("prefill_seqs"), n("decode_tokens"),
			number(t, row["context_tokens_mean_per_seq"])}
		if c.tp == 2 && max(c.sequences, c.decode) == 64 {
			continue
		}
		cells[c] = append(cells[c], 1000*number(t, row["step_ms"]))
	}
	m := measurement{name: "Llama-2-70b, " + gpu, gpu: gpu}
	for _, c := range slices.SortedFunc(maps.Keys(cells), func(a, b cell) int {
		for _, d := range []int64{a.tp - b.tp, a.prefill - b.prefill, a.sequences - b.sequences,
			a.decode - b.decode, int64(a.context - b.context)} {
			if d != 0 {
				return int(d)
			}
		}
		return 0
	}) {
		times := cells[c]
		slices.Sort(times)
		s := step{work: &llama70B, tp: int(c.tp), us: times[len(times)/2]}
		if c.decode > 0 {
			s.kind, s.sequences, s.length = "decode", c.decode, int64(c.context)
			s.batch = latency.Batch{Decode: c.decode, Context: int64(float64(c.decode) * c.context)}
		} else {
			length := c.prefill / c.sequences
			s.kind, s.sequences, s.length = "prefill", c.sequences, length
			s.batch = latency.Batch{Prefill: c.prefill, Chunks: c.sequences,
				Pairs: c.sequences * length * (length + 1) / 2}
		}
		m.steps = append(m.steps, s)
	}
	return m
}

// llmServingSim returns LLMServingSim's measurements (5daddb21, profiler/perf): steps composed from
// kernels of vLLM 0.19, GPU time only, with at most one chunk. capacity is the number of tokens
// whose keys and values fit into memory with the weights; steps that need more are left out, since
// no server can run them.
func llmServingSim(t *testing.T, name, column, gpu string, work *model.Work, capacity int64) measurement {
	m := measurement{name: name + ", " + gpu, gpu: gpu}
	type key [4]int64
	steps := map[key]step{}
	for row := range rows(t, "steps", "llmservingsim_composed_steps.csv.zst") {
		if !strings.HasSuffix(row["model"], name) || row["gpu"] != column {
			continue
		}
		n := func(c string) int64 { return int64(number(t, row[c])) }
		prefill, prior, decode, context := n("prefill_tokens"), n("prefill_kv_before"), n("decode_tokens"), n(
			"decode_kv_each")
		if prefill+prior+decode*(context+1) > capacity {
			continue
		}
		s := step{work: work, tp: 1, us: number(t, row["step_us_gpu_only"])}
		s.batch = latency.Batch{Prefill: prefill, PriorContext: prior, Decode: decode, Context: decode * context}
		s.kind, s.sequences, s.length = "decode", decode, context
		if prefill > 0 {
			s.batch.Chunks = 1
			s.batch.Pairs = prefill*prior + prefill*(prefill+1)/2
			s.kind, s.sequences, s.length = "prefill", 1, prior
			if decode > 0 {
				s.kind, s.sequences, s.length = "mixed", decode, context
			}
		}
		steps[key{prefill, prior, decode, context}] = s
	}
	for _, k := range slices.SortedFunc(maps.Keys(steps), func(a, b key) int { return slices.Compare(a[:], b[:]) }) {
		m.steps = append(m.steps, steps[k])
	}
	return m
}

// fromClients returns decode steps of vLLM 0.15.1 on an H100, from client timings of whole runs
// (inference-sim/training c4f03409): a request's time per token, over 248 tokens, is the step time
// at the mean number of sequences that decode with it. A cell is the median of at least 30
// requests. Prompts have about 575 tokens and repeat, so that the prefix cache has them and chunks
// have about 15 tokens, which are neglected.
func fromClients(t *testing.T, file string, work *model.Work, tp int) []step {
	const output, prompt, warm, slot, grid = 248, 575, 30, 8, 0.05
	type request struct{ from, to float64 }
	var requests []request
	last := 0.0
	for row := range rows(t, "vllm", "requests", file) {
		at := number(t, row["arrival_s"])
		r := request{at + number(t, row["ttft_s"]), at + number(t, row["e2e_s"])}
		requests = append(requests, r)
		last = max(last, r.to)
	}
	// sum[i] is the integral, up to i·grid, of the number of decoding sequences.
	sum := make([]float64, int(last/grid)+3)
	for _, r := range requests {
		sum[int(r.from/grid)+1]++
		sum[int(r.to/grid)+1]--
	}
	for range 2 {
		for i := 1; i < len(sum); i++ {
			sum[i] += sum[i-1]
		}
	}
	cells := map[int64][]float64{}
	for _, r := range requests {
		if r.from < warm || r.to-r.from < 1 {
			continue
		}
		i, j := int(r.from/grid), int(r.to/grid)
		n := (sum[j] - sum[i]) / float64(j-i)
		cells[int64(n/slot)] = append(cells[int64(n/slot)], 1e6*(r.to-r.from)/(output-1))
	}
	var steps []step
	for _, c := range slices.Sorted(maps.Keys(cells)) {
		if times := cells[c]; len(times) >= 30 {
			slices.Sort(times)
			n, length := c*slot+slot/2, int64(prompt+output/2)
			steps = append(steps, step{
				kind: "decode", batch: latency.Batch{Decode: n, Context: n * length}, work: work, tp: tp,
				us: times[len(times)/2], sequences: n, length: length,
			})
		}
	}
	return steps
}

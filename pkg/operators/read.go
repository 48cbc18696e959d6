package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"blis/pkg/parquet"
)

// source is a table of a system: its file, the operator it becomes, the columns of its key and of its
// axes, and how to convert its rows.
type source struct {
	folder, file string
	operator     string
	texts        []string // columns of the key that are texts
	numbers      []string // columns of the key that are integers
	x, y         string   // columns of the axes; y may be empty
	keep         func(c map[string]parquet.Column, i int) bool
	// sum: rows with the same sizes are the kernels of one operator.
	sum bool
	// variant reports rows of another kernel for the same work, whose first text ends in tritonSuffix.
	variant func(c map[string]parquet.Column, i int) bool
}

// sources lists the tables that are used.
var sources = []source{
	{folder: "gemm", file: "gemm", operator: "gemm", texts: []string{"gemm_dtype"}, numbers: []string{"n", "k"},
		x: "m"},
	{folder: "attention", file: "context_attention", operator: "prefill", texts: []string{"kv_cache_dtype"},
		numbers: []string{"head_dim", "window_size", "num_key_value_heads", "num_heads"}, x: "batch_size", y: "isl"},
	{folder: "attention", file: "generation_attention", operator: "decode", texts: []string{"kv_cache_dtype"},
		numbers: []string{"head_dim", "window_size", "num_key_value_heads", "num_heads"}, x: "batch_size", y: "step"},
	{folder: "moe", file: "moe", operator: "moe", variant: isTriton, texts: []string{"moe_dtype", "distribution"},
		numbers: []string{"hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size"},
		x:       "num_tokens"},
	{folder: "comm", file: "custom_allreduce", operator: "allreduce", numbers: []string{"num_gpus"}, x: "message_size",
		keep: isCaptured},
	{folder: "comm", file: "nccl", operator: "nccl", texts: []string{"op_name"}, numbers: []string{"num_gpus"},
		x: "message_size", keep: isHalf},
	module("mla", "mla_context_module", "prefill-module"),
	module("mla", "mla_generation_module", "decode-module"),
	module("msa", "msa_context_module", "prefill-module"),
	module("msa", "msa_generation_module", "decode-module"),
	module("sparse_attention", "dsa_context_module", "prefill-module"),
	module("sparse_attention", "dsa_generation_module", "decode-module"),
	compressedModule("dsv4_csa_context_module", "prefill-module"),
	compressedModule("dsv4_csa_generation_module", "decode-module"),
	compressedModule("dsv4_hca_context_module", "prefill-module"),
	compressedModule("dsv4_hca_generation_module", "decode-module"),
	linearTable("linear_attention", "gdn"),
	linearTable("kda", "kda"),
}

// module is a table of whole attention blocks, with projections, without tokens before.
func module(folder, file, operator string) source {
	return source{folder: folder, file: file, operator: operator, texts: []string{"architecture", "kv_cache_dtype",
		"gemm_type"},
		numbers: []string{"num_heads"}, x: "batch_size", y: axisOf(operator), keep: isFirstChunk}
}

func compressedModule(file, operator string) source {
	s := module("sparse_attention", file, operator)
	s.texts, s.numbers = []string{"model", "kv_cache_dtype", "gemm_type"}, []string{"compress_ratio", "num_heads"}
	return s
}

func axisOf(operator string) string {
	if operator == "prefill-module" {
		return "isl"
	}
	return "step"
}

// linearTable is a table of the kernels of linear attention, which add up.
func linearTable(folder, file string) source {
	return source{folder: folder, file: file, operator: file, texts: []string{"phase"},
		numbers: []string{"num_k_heads", "num_v_heads"},
		x:       "batch_size", y: "seq_len", sum: true, keep: isDecodeOrPrefill}
}

// isCaptured: servers exchange data in CUDA graphs.
func isCaptured(c map[string]parquet.Column, i int) bool {
	return strings.Contains(text(c, "backend", i), "graph")
}

// isTriton reports Triton's kernels of experts, which servers use unless FlashInfer has one.
func isTriton(c map[string]parquet.Column, i int) bool {
	kernel := text(c, "kernel_source", i)
	return kernel == "vllm_fused_moe" || strings.HasSuffix(kernel, "_tritonexperts")
}

// tritonSuffix marks the format of experts' kernels in Triton where FlashInfer has one, too.
const tritonSuffix = "_triton"

func isHalf(c map[string]parquet.Column, i int) bool { return text(c, "nccl_dtype", i) == "half" }

// isFirstChunk leaves out chunks with tokens before, and attention in 8 bits.
func isFirstChunk(c map[string]parquet.Column, i int) bool {
	if dtype := text(c, "mla_dtype", i); dtype != "bfloat16" && dtype != "" {
		return false
	}
	return !strings.Contains(text(c, "op_name", i), "context") || number(c, "step", i) == 0
}

func isDecodeOrPrefill(c map[string]parquet.Column, i int) bool {
	return text(c, "phase", i) != "verify"
}

// text and number return a cell; "" and 0 if there is no such column.
func text(c map[string]parquet.Column, name string, i int) string {
	if texts := c[name].Texts; i < len(texts) {
		return texts[i]
	}
	return ""
}

func number(c map[string]parquet.Column, name string, i int) float64 {
	if numbers := c[name].Numbers; i < len(numbers) {
		return numbers[i]
	}
	return 0
}

// columns returns the columns to read.
func (s *source) columns() []string {
	names := slices.Concat(s.texts, s.numbers, []string{s.x, "latency"})
	if s.y != "" {
		names = append(names, s.y)
	}
	return append(names, "backend", "nccl_dtype", "mla_dtype", "op_name", "step", "phase", "d_model", "kernel_source")
}

// read reads the tables of a system in a folder systems of aiconfigurator-core.
func read(systems, system string) (*Tables, error) {
	root := filepath.Join(systems, "data", system)
	if _, err := os.Stat(root); err != nil {
		return nil, err
	}
	t := newTables(system)
	for i := range sources {
		if err := t.readSource(root, &sources[i]); err != nil {
			return nil, err
		}
	}
	if len(t.series) == 0 {
		return nil, fmt.Errorf("%s: has no tables of vLLM", root)
	}
	t.nameOnlyKernels()
	t.cleanProducts()
	for name, g := range t.series {
		if !strings.HasPrefix(name, "gemm|") {
			g.clean()
		}
	}
	return t, nil
}

// readSource reads all versions of a table. Of a kernel in several versions the newest counts.
func (t *Tables) readSource(root string, s *source) error {
	library := "vllm"
	if s.file == "nccl" {
		library = "nccl"
	}
	parent := filepath.Join(root, s.folder, library)
	versions, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) { // before 0.11, all operators are in one folder
		parent = filepath.Join(root, library)
		versions, err = os.ReadDir(parent)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	slices.SortFunc(versions, func(a, b fs.DirEntry) int { return CompareVersions(b.Name(), a.Name()) })
	for _, v := range versions {
		name := filepath.Join(parent, v.Name(), s.file+"_perf.parquet")
		columns, n, err := readColumns(name, s.columns())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := t.add(s, columns, n); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// nameOnlyKernels gives Triton's kernels of experts the plain name of their format where there are no
// others for the same work.
func (t *Tables) nameOnlyKernels() {
	for _, f := range t.fields("moe") {
		plain, isTriton := strings.CutSuffix(f[0], tritonSuffix)
		if !isTriton {
			continue
		}
		rest := strings.Join(f[1:], "|")
		from, to := key("moe", f[0], rest), key("moe", plain, rest)
		if t.series[to] == nil {
			t.series[to] = t.series[from]
			delete(t.series, from)
		}
	}
}

func readColumns(name string, columns []string) (map[string]parquet.Column, int, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	return parquet.ReadColumns(f, info.Size(), columns...)
}

// add adds the n rows of a table whose kernels no newer version has.
func (t *Tables) add(s *source, c map[string]parquet.Column, n int) error {
	for _, name := range slices.Concat(s.texts, s.numbers, []string{s.x, "latency"}) {
		// Early tables are without windows.
		if len(c[name].Numbers)+len(c[name].Texts) == 0 && n > 0 && name != "window_size" {
			return fmt.Errorf("has no column %s", name)
		}
	}
	rows := map[string][]row{}
	for i := range n {
		if s.keep != nil && !s.keep(c, i) {
			continue
		}
		name := s.operator
		for k, column := range s.texts {
			name += "|" + text(c, column, i)
			if k == 0 && s.variant != nil && s.variant(c, i) {
				name += tritonSuffix
			}
		}
		for _, column := range s.numbers {
			name = key(name, int(number(c, column, i)))
		}
		r := row{x: number(c, s.x, i), model: number(c, "d_model", i), us: 1000 * number(c, "latency", i)}
		if s.y != "" {
			r.y = number(c, s.y, i)
		}
		if !(r.us > 0) {
			return fmt.Errorf("row %d: latency must be above 0, is %g", i, r.us)
		}
		rows[name] = append(rows[name], r)
	}
	for name, list := range rows {
		if t.series[name] != nil {
			continue
		}
		if s.sum {
			list = sums(list)
		}
		t.series[name] = newGrid(list)
	}
	return nil
}

// sums adds up the times of rows with the same sizes of the same model.
func sums(rows []row) []row {
	type size struct{ x, y, model float64 }
	at := map[size]int{}
	var list []row
	for _, r := range rows {
		i, ok := at[size{r.x, r.y, r.model}]
		if !ok {
			at[size{r.x, r.y, r.model}] = len(list)
			list = append(list, r)
			continue
		}
		list[i].us += r.us
	}
	return list
}

package model

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const llama = `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
 "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
 "max_position_embeddings": 131072, "tie_word_embeddings": false, "torch_dtype": "bfloat16"}`

const mixtral7 = `{"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
 "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 8,
 "num_experts_per_tok": 2, "vocab_size": 32000, "max_position_embeddings": 32768}`

// TestParse: equivalent files give the same model.
func TestParse(t *testing.T) {
	edit := func(text, old, new string) string { return strings.Replace(text, old, new, 1) }
	for _, c := range []struct {
		why, text    string
		total, kv    int64
		quantization string
	}{
		{"unchanged", llama, 8030261248, 131072, ""},
		{"dtype for torch_dtype", edit(llama, "torch_dtype", "dtype"), 8030261248, 131072, ""},
		{"with a head_dim", edit(llama, `"vocab_size"`, `"head_dim": 64, "vocab_size"`),
			8030261248 - 32*64*2*4096*(32+8), 65536, ""},
		{"hidden size no multiple", edit(edit(llama, `"hidden_size": 4096`, `"hidden_size": 4100`), `"vocab_size"`,
			`"head_dim": 128, "vocab_size"`), 0, 131072, ""},
		{"text_config", `{"model_type": "mistral3", "torch_dtype": "bfloat16", "text_config": ` + edit(llama,
			"llama", "mistral") + `}`, 8030261248, 131072, ""},
		{"a window that is not used", edit(llama, `"vocab_size"`,
			`"sliding_window": 4096, "use_sliding_window": false, "vocab_size"`), 8030261248, 131072, ""},
		{"null", edit(llama, `"vocab_size"`, `"sliding_window": null, "head_dim": null, "vocab_size"`), 8030261248,
			131072, ""},
		{"awq", edit(llama, `"vocab_size"`,
			`"quantization_config": {"quant_method": "awq", "bits": 4}, "vocab_size"`), 8030261248, 131072, "awq"},
		{"gptq, 8 bits", edit(llama, `"vocab_size"`,
			`"quantization_config": {"quant_method": "gptq", "bits": 8}, "vocab_size"`), 8030261248, 131072, "int8"},
		{"compressed", edit(llama, `"vocab_size"`,
			`"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": `+
				`{"weights": {"num_bits": 8, "type": "float"}}}}, "vocab_size"`), 8030261248, 131072, "fp8"},
		{"modelopt", edit(llama, `"vocab_size"`,
			`"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}, "vocab_size"`), 8030261248,
			131072, "nvfp4"},
		{"experts", mixtral7, 46702792704, 131072, ""},
		{"experts by another name", edit(mixtral7, "num_local_experts", "num_experts"), 46702792704, 131072, ""},
	} {
		a, err := parse("x", []byte(c.text), nil)
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		if c.total != 0 && a.TotalParameters() != c.total || a.KVBytesPerToken() != c.kv ||
			a.Precision.Quantization != c.quantization {
			t.Errorf("%s: %d parameters, %d KV bytes, quantization %q; want %d, %d, %q", c.why, a.TotalParameters(),
				a.KVBytesPerToken(), a.Precision.Quantization, c.total, c.kv, c.quantization)
		}
	}
}

// TestInvalidConfigsAreRejected expects an error that names the field.
func TestInvalidConfigsAreRejected(t *testing.T) {
	for _, c := range []struct{ text, old, new, want string }{
		{llama, "32,", "0,", "x: num_hidden_layers: must be between 1 and"},
		{llama, `"hidden_size": 4096,`, "", "x: hidden_size: must be between 1 and 1048576, is missing"},
		{llama, `"num_key_value_heads": 8`, `"num_key_value_heads": 40`,
			"num_key_value_heads: must be between 1 and num_attention_heads, 32, is 40"},
		{llama, `"num_attention_heads": 32`, `"num_attention_heads": 31`,
			"hidden_size: must be a multiple of num_attention_heads, 31, if head_dim is not given, is 4096"},
		{llama, `"num_attention_heads": 32`, `"num_attention_heads": -1`, "num_attention_heads: must be between 1 and"},
		{llama, `"num_attention_heads": 32`, `"num_attention_heads": "many"`,
			"x: num_attention_heads: must be an integer, is string"},
		{llama, "bfloat16", "float12", `unknown dtype "float12"; did you mean "float16"?`},
		{llama, `"vocab_size"`, `"quantization_config": {"quant_method": "magic"}, "vocab_size"`,
			`quantization_config.quant_method: unknown quant_method "magic"`},
		{llama, `"llama"`, `"mamba2"`, `unknown model_type "mamba2"`},
		{llama, `"vocab_size"`, `"layer_types": ["full_attention"], "vocab_size"`,
			"layer_types: must have num_hidden_layers, 32, entries, has 1"},
		{llama, `"vocab_size"`, `"sliding_window": 0, "vocab_size"`, "sliding_window: must be between 1 and"},
		{mixtral7, `"num_local_experts": 8`, `"num_local_experts": 1`, "x: num_local_experts: must be between 2 and"},
		{mixtral7, `"num_local_experts": 8,`, "",
			"num_local_experts, n_routed_experts or num_experts: one must be given"},
		{mixtral7, `"num_experts_per_tok": 2`, `"num_experts_per_tok": 9`,
			"num_experts_per_tok: must be between 1 and the number of experts, 8, is 9"},
		{mixtral7, `"num_experts_per_tok": 2,`, "",
			"num_experts_per_tok: must be between 1 and the number of experts, 8, is missing"},
		{llama, `"intermediate_size": 14336`,
			`"intermediate_size": 1000000, "num_experts": 1000000, "num_experts_per_tok": 1`,
			"more than 1e+15 parameters"},
		{llama, "{", "", "x: is not JSON"},
	} {
		_, err := parse("x", []byte(strings.Replace(c.text, c.old, c.new, 1)), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.new, err, c.want)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.json")
	if err := os.WriteFile(file, []byte(llama), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		file: file, dir: file,
		"meta-llama/Llama-3.1-8B-Instruct":      "meta-llama/Llama-3.1-8B",
		"meta-llama/Meta-Llama-3.1-8B-Instruct": "meta-llama/Llama-3.1-8B",
		"META-LLAMA/llama-3.1-8b":               "meta-llama/Llama-3.1-8B",
		"meta-llama/Llama-2-7b-chat-hf":         "meta-llama/Llama-2-7b",
		"meta-llama/Llama-3.3-70B-Instruct":     "meta-llama/Llama-3.1-70B",
		"google/gemma-3-12b-it":                 "google/gemma-3-12b",
	} {
		a, err := Find(name, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if a.Name != want {
			t.Errorf("%s is %s, want %s", name, a.Name, want)
		}
	}
	if _, err := Find("missing", "meta-llama/Llama-3.1-9B"); err == nil ||
		!strings.Contains(err.Error(), `did you mean "meta-llama/Llama-3.1-8B"?`) {
		t.Errorf("an unknown name: %v", err)
	}
	for name, base := range map[string]string{
		"RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic": "meta-llama/Llama-4-Scout-17B-16E",
		"Qwen/Qwen3-30B-A3B-Instruct-2507":                    "Qwen/Qwen3-30B-A3B",
	} {
		_, err := Find(name, name)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("its base seems to be %q", base)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzParse: no input crashes the parser, and accepted ones have positive counts.
func FuzzParse(f *testing.F) {
	f.Add(llama)
	f.Add(mixtral7)
	f.Add(
		`{"model_type": "gemma3", "text_config": {"hidden_size": 64, "intermediate_size": 4, "num_hidden_layers": ` +
			`7, "sliding_window": 16}}`,
	)
	f.Add(
		`{"model_type": "gpt_oss", "num_experts": 4, "num_experts_per_tok": 2, ` + small + `, ` +
			`"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}}`,
	)
	f.Add(`{"model_type": "gemma4_text", "hidden_size_per_layer_input": 0, "attention_k_eq_v": true, ` + small + `}`)
	f.Add(
		`{"model_type": "deepseek_v3", "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, ` +
			`"kv_lora_rank": 4, "intermediate_size": 3}`,
	)
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parse("x", []byte(text), nil)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x: ") {
				t.Errorf("%q: an error without its file: %v", text, err)
			}
			return
		}
		w := a.Work()
		// Sums that overflow an int64 would differ from those in float64.
		bytes := float64(w.Dense.Bytes) + float64(w.Head.Bytes) + float64(w.Embedding.Bytes) + float64(
			w.ExpertLayers)*float64(w.Experts)*float64(w.Expert.Bytes)
		if total := float64(a.TotalParameters()); total > maxParameters || bytes > 4.001*total ||
			math.Abs(bytes-float64(a.WeightBytes())) > 1e-6*bytes {
			t.Errorf("%q: %g parameters, %g and %d bytes", text, total, bytes, a.WeightBytes())
		}
		if a.TotalParameters() < 1 || a.KVBytesPerToken() < 1 || w.KVHeads+w.WindowKVHeads < 1 || w.Layers < 1 ||
			w.Dense.Bytes < 1 {
			t.Errorf("%q: %+v", text, w)
		}
	})
}

// TestInfiniteNumbersAreNull: Python writes them, and JSON has none. Texts stay.
func TestInfiniteNumbersAreNull(t *testing.T) {
	const python = `{"a": Infinity, "b": "Infinity", "c": [-Infinity, NaN, 1], "d": "\"NaN"}`
	const want = `{"a": null, "b": "Infinity", "c": [null, null, 1], "d": "\"NaN"}`
	if got := string(finite([]byte(python))); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestLatentExperts: experts behind a latent projection have its size, not that of the hidden state.
func TestLatentExperts(t *testing.T) {
	m := MLP{ExpertIntermediate: 10, Latent: 4}
	if got := m.expert(100); got != 3*4*10 {
		t.Errorf("%d parameters, want 120", got)
	}
	if m.Latent = 0; m.expert(100) != 3*100*10 {
		t.Errorf("%d parameters, want 3000", m.expert(100))
	}
}

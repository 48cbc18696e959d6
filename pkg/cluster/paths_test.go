package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPathsStayInTheFolder: files that a cluster file names are below its folder, unless the caller allows
// others or names them.
func TestPathsStayInTheFolder(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "stranger")
	t.Chdir(root)
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	config := `{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, ` +
		`"num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1000, "max_position_embeddings": 4096}`
	write("stranger/own/config.json", config)
	write("mine/config.json", config)
	write("stranger/leaky/config.json", config)
	write("mine/hf_quant_config.json", "{}")
	if err := os.Symlink("../../mine/hf_quant_config.json", "stranger/leaky/hf_quant_config.json"); err != nil {
		t.Fatal(err)
	}
	write("coefficients.yaml", "version: 1\ncoefficients:\n  - {model: m, gpu: H100, latency: {model: linear, "+
		"alpha_us: [1, 2, 3], beta_us: [4, 5, 6]}, source: x}\n")
	const outside = "outside of the folder of this file"
	absolute := filepath.Join(root, "mine")
	for _, c := range []struct {
		fields string
		sets   []string
		allow  bool
		want   string // part of the error; "" is none
	}{
		{"model_config: own", nil, false, ""},
		{"model_config: own/config.json", nil, false, ""},
		{"model_config: ../mine", nil, false, "deployments[0].model_config: \"../mine\" is " + absolute},
		{"model_config: " + absolute, nil, false, outside},
		{"model_config: leaky", nil, false, "\"leaky\" is " + absolute},
		{"model_config: leaky/config.json", nil, false, absolute},
		{"model_config: mine/config.json", nil, false, "no such file"}, // not relative to the working directory
		{"model_config: meta-llama/Llama-3.1-8B", nil, false, ""},
		{"model_config: ../mine", nil, true, ""},
		{"model_config: ../stranger/own", nil, true, ""},
		{"model_config: ../mine", []string{"model_config=stranger/own"}, false, ""},
		{"model_config: own", []string{"model_config=" + absolute}, false, ""},
		{"model_config: own", []string{"@sets.json"}, false, outside},
		{"num_gpus: 1", nil, false, "unknown field"},
		{"latency: {from: ../coefficients.yaml}", nil, false, outside},
		{"latency: {from: ../coefficients.yaml}", nil, true, "has m on H100"},
		{"", []string{"latency.from=../coefficients.yaml"}, false, "has m on H100"},
		{"latency: {operators: /tmp}", nil, false, outside},
		{"", []string{"latency.operators=/tmp"}, false, "latency: /tmp: there are no tables"},
	} {
		write("sets.json", `{"deployments.main.model_config": "../mine"}`)
		write("stranger/c.yaml", "version: 1\ndeployments: [{id: main, model: meta-llama/Llama-3.1-8B, gpu: H100, "+
			c.fields+"}]\n")
		o := Options{AllowPaths: c.allow}
		for _, s := range c.sets {
			if s[0] != '@' {
				s = "deployments.main." + s
			}
			o.Overrides = append(o.Overrides, s)
		}
		_, err := Load(filepath.Join(dir, "c.yaml"), o)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, %q, allowed %v: error %v, want %q", c.fields, c.sets, c.allow, err, c.want)
		}
	}
}

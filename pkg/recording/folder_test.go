package recording

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
)

// openFolder reads the recording of a folder with engine timestamps and other files.
func openFolder(t *testing.T, files map[string]string) (*Recording, error) {
	t.Helper()
	all := maps.Clone(files)
	all["requests.jsonl"] = samples(t)["llmservingsim"]
	return Open(context.Background(), folder(t, all), "")
}

// TestFolderStatesTheServer: each kind of file states the settings that a hand-written cluster file would have.
func TestFolderStatesTheServer(t *testing.T) {
	for _, c := range []struct {
		name, text, model, engine, gpu string
		tp                             int
		settings, missing              string
	}{
		{name: "server.yaml", text: "model: m/n # served\ngpu: H100\nvllm_version: v0.19.1\n" +
			"engine: {tensor-parallel-size: 2}\nmax_num_seqs: 64\n",
			model: "m/n", engine: "vllm 0.19.1", gpu: "H100", tp: 2, settings: "max_num_seqs=64"},
		{name: "vllm.yaml", text: "model: m/n\nport: 80\nmax-model-len: 8k\nenable-prefix-caching: False\n" +
			"gpu-memory-utilization: 0.85\n", model: "m/n", engine: "vllm", missing: "gpu vllm_version",
			settings: "enable_prefix_caching=false gpu_memory_utilization=0.85 max_model_len=8000"},
		{name: "exp-config.yaml", text: "model: m/n\ntensor_parallelism: 4\nmax_num_batched_tokens: 4096\napp: train\n",
			model: "m/n", engine: "vllm", tp: 4, settings: "max_num_batched_tokens=4096", missing: "gpu vllm_version"},
		{name: "meta.json", text: `{"schema_version": 1, "model": "m/n", "vllm_version": "0.19.0", "seed": 3,
			"engine_kwargs": {"model": "m/n", "max_num_seqs": 128, "max_model_len": null, "kv_cache_dtype": "auto"},
			"kv_cache": {"num_gpu_blocks": 2588}}`, model: "m/n", engine: "vllm 0.19.0", missing: "gpu",
			settings: "max_num_seqs=128 num_gpu_blocks_override=2588"},
		{name: "config.json", text: `{"nodes": [{"instances": [{"hardware": "RTXPRO6000"}]}]}`, engine: "vllm",
			gpu: "RTXPRO6000", missing: "model vllm_version max_num_seqs max_num_batched_tokens"},
		{name: "version.json", text: `{"version": "0.15.1"}`, engine: "vllm 0.15.1",
			missing: "model gpu max_num_seqs max_num_batched_tokens"},
		{name: "metrics.txt", text: "# HELP x\nvllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"7462\"," +
			"num_gpu_blocks_override=\"None\"} 1.0\n", engine: "vllm", settings: "num_gpu_blocks_override=7462",
			missing: "model gpu vllm_version max_num_seqs max_num_batched_tokens"},
		{name: "nvidia-smi.txt", text: "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n" +
			"GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)\n",
			engine: "vllm", gpu: "H100 80GB HBM3", missing: "model vllm_version max_num_seqs max_num_batched_tokens"},
		{name: "launch.sh", text: "#!/bin/sh\n# vLLM\nexport X=1\nvllm serve 'm/n' --tensor-parallel-size 2 \\\n  " +
			"--max-num-seqs=64 --no-enable-prefix-caching --enforce-eager --port 8000 " +
			"--max-model-len 16K >log 2>&1 &\n" +
			"sleep 1 --max-num-seqs 1\n",
			model: "m/n", engine: "vllm", tp: 2, missing: "gpu vllm_version",
			settings: "enable_prefix_caching=false enforce_eager=true max_model_len=16384 max_num_seqs=64"},
		{name: "start.sh", text: "CUDA_VISIBLE_DEVICES=0 \\\n  nohup \\\n  vllm serve m/n --block-size 32\n",
			model: "m/n", engine: "vllm", missing: "gpu vllm_version", settings: "block_size=32"},
		{name: "experiments.csv", engine: "vllm",
			missing: "model gpu vllm_version max_num_seqs max_num_batched_tokens"},
		{name: "command.txt", text: "docker run --gpus all vllm/vllm-openai:v0.24.0 --model m/n -tp 8\n", model: "m/n",
			engine: "vllm 0.24.0", tp: 8, missing: "gpu"},
		{name: "server.log", text: "INFO vLLM API server version 0.11.0\nINFO non-default args: {'model': 'm/n', " +
			"'max_num_seqs': 32, 'enable_prefix_caching': True, 'limits': {'a': 1}, 'port': 80}\n" +
			"INFO # GPU blocks: 99, # CPU\n",
			model: "m/n", engine: "vllm 0.11.0", missing: "gpu",
			settings: "enable_prefix_caching=true max_num_seqs=32 num_gpu_blocks_override=99"},
	} {
		r, err := openFolder(t, map[string]string{c.name: c.text})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		run := r.Runs[0]
		if run.Model != c.model || run.Engine != c.engine || run.GPU != c.gpu || run.TensorParallel != c.tp ||
			strings.Join(run.Settings, " ") != c.settings {
			t.Errorf("%s: model %q, engine %q, GPU %q, TP %d, settings %q", c.name, run.Model, run.Engine, run.GPU,
				run.TensorParallel, run.Settings)
		}
		if got := strings.Join(r.Folder.Missing(), " "); got != c.missing {
			t.Errorf("%s: missing %q, want %q", c.name, got, c.missing)
		}
	}
}

// TestFolderErrors: contradictions, values that are none, and folders without one file of results are errors that name
// the place.
func TestFolderErrors(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"server.yaml": "max_num_seqs: 64", "launch.sh": "vllm serve m --max-num-seqs 128"},
			"max_num_seqs is 64 in server.yaml and 128 in launch.sh: correct one of them"},
		{map[string]string{"launch.sh": "vllm serve m --max-num-seqs $SEQS"},
			`launch.sh: max_num_seqs: "$SEQS" is no value`},
		{map[string]string{"launch.sh": "vllm serve 'm --max-num-seqs 1"}, "launch.sh: the launch command: a quote"},
		{map[string]string{"server.yaml": "enforce_eager: often"}, `server.yaml: enforce_eager: "often" is no value`},
		{map[string]string{"server.yaml": "a: [1"}, "server.yaml:1"},
		{map[string]string{"meta.json": `{"model": 1}`}, "meta.json: model cannot be a number"},
		{map[string]string{"more.jsonl": samples(t)["llmservingsim"]},
			"2 files have results: choose one with #NAME (have more.jsonl, requests.jsonl)"},
	} {
		if _, err := openFolder(t, c.files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.files, err)
		}
	}
	_, err := Open(context.Background(), t.TempDir(), "")
	if err == nil || !strings.Contains(err.Error(), "no file has results") {
		t.Errorf("an empty folder: %v", err)
	}
}

// TestFolderChoosesAFile: #NAME is a file, and its row of experiments.csv is used.
func TestFolderChoosesAFile(t *testing.T) {
	lines := samples(t)["llmservingsim"]
	dir := folder(t, map[string]string{"one.jsonl": lines, "two.jsonl": lines,
		"experiments.csv": "experiment,model,gpu,tp," +
			"engine,max_num_seqs,kv_blocks_gpu,rates\none,m,H100,1,vLLM 0.15.1 (a fork),128,7462,8|20\n" +
			"two,n,A100,2,vLLM 0.11.0,64,31356,8\n"})
	for name, want := range map[string]string{"one": "m H100 vllm 0.15.1 max_num_seqs=128 num_gpu_blocks_override=7462",
		"two.jsonl": "n A100 vllm 0.11.0 max_num_seqs=64 num_gpu_blocks_override=31356"} {
		r, err := Open(context.Background(), dir+"#"+name, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		run := r.Runs[0]
		if got := strings.Join(append([]string{run.Model, run.GPU, run.Engine}, run.Settings...), " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestFolderReportsUnusedSettings: what is not simulated is said.
func TestFolderReportsUnusedSettings(t *testing.T) {
	r, err := openFolder(t, map[string]string{"launch.sh": "vllm serve m --speculative-config '{\"k\": 3}' --port 1"})
	if err != nil || !slices.ContainsFunc(r.Runs[0].Warnings, func(w string) bool {
		return strings.Contains(w, `not simulated: speculative_config={"k": 3} in launch.sh`)
	}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestFolderSkipsStreams: a simulated run and a workload are not results of a real server.
func TestFolderSkipsStreams(t *testing.T) {
	r, err := openFolder(t, map[string]string{"run.jsonl": `{"kind":"header","stream":"run"}` + "\n",
		"workload.jsonl": `{"kind":"header","stream":"workload"}` + "\n"})
	if err != nil || len(r.Runs) != 1 {
		t.Errorf("%v", err)
	}
}

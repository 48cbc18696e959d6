"""Recorded servers, with the engine settings of their sources, and fits to their recordings."""

import json
import subprocess

# Engine settings are those of vllm/requests/experiments.csv, vllm/otel/*/exp-config.yaml, */meta.json, and LMBenchmark's
# scripts: model, GPU, and engine by server.
SERVERS = {
    "7b": ("meta-llama/Llama-2-7b-hf", "H100", "preset: vllm-0.15, max_num_seqs: 128, num_gpu_blocks_override: 7462"),
    "70b": ("meta-llama/Llama-2-70b-hf", "H100",
            "preset: vllm-0.15, tensor_parallel_size: 4, max_num_seqs: 128, num_gpu_blocks_override: 31356"),
    "34b": ("codellama/CodeLlama-34b-Instruct-hf", "H100",
            "preset: vllm-0.15, tensor_parallel_size: 2, max_num_seqs: 128, num_gpu_blocks_override: 26602"),
    "mixtral": ("mistralai/Mixtral-8x7B-v0.1", "H100",
                "preset: vllm-0.15, tensor_parallel_size: 2, max_num_seqs: 128, num_gpu_blocks_override: 27510"),
    "otel 7b": ("meta-llama/Llama-2-7b-hf", "H100", "preset: vllm-0.11, max_model_len: 4096, max_num_batched_tokens: 4096"),
    "otel 34b": ("codellama/CodeLlama-34b-Instruct-hf", "H100",
                 "preset: vllm-0.11, max_model_len: 8192, max_num_batched_tokens: 4096"),
    "phases 7b": ("Qwen/Qwen2.5-7B-Instruct", "H100", "preset: vllm-0.11"),
    "bench": ("meta-llama/Llama-3.1-8B", "RTX-PRO-6000", "preset: vllm-0.19, max_num_seqs: 128, max_num_batched_tokens: 2048"),
    "steps 70b": ("meta-llama/Llama-2-70b-hf", "H100", "tensor_parallel_size: 4"),
    "steps of kernels": ("meta-llama/Llama-3.1-8B", "RTX-PRO-6000", "preset: vllm-0.19"),
    "lmbench 70b": ("meta-llama/Llama-3.1-70B-Instruct", "A100", "preset: vllm-0.8, tensor_parallel_size: 2, max_model_len: 16384, num_gpu_blocks_override: 2850"),
    "lmbench scout": ("meta-llama/Llama-4-Scout-17B-16E", "H100",
                      "preset: vllm-0.8, tensor_parallel_size: 4, max_model_len: 16384, quantization: fp8"),
    # From bench/examples of github.com/casys-kaist/LLMServingSim.
    "4090": ("meta-llama/Llama-3.1-8B", "RTX-4090",
             "preset: vllm-0.19, max_num_seqs: 256, max_num_batched_tokens: 2048, max_model_len: 32768, num_gpu_blocks_override: 2588"),
    "qwen3 32b": ("Qwen/Qwen3-32B", "RTX-PRO-6000",
                  "preset: vllm-0.19, tensor_parallel_size: 2, max_num_seqs: 128, max_num_batched_tokens: 2048"),
    "qwen3 30b": ("Qwen/Qwen3-30B-A3B", "RTX-PRO-6000", "preset: vllm-0.19, data_parallel_size: 2, enable_expert_parallel: true, "
                  "max_num_seqs: 128, max_num_batched_tokens: 2048"),
}

# The clients of vllm/requests miscounted outputs of 248 tokens.
REQUESTS = {
    "7b": "vllm/requests/20260217-231439-llama-2-7b-tp1-general.csv.zst",
    "70b": "vllm/requests/20260217-202857-llama-2-70b-tp4-general.csv.zst",
    "34b": "vllm/requests/20260218-150304-codellama-34b-tp2-general.csv.zst",
    "mixtral": "vllm/requests/20260218-130541-mixtral-8x7b-v0-1-tp2-general.csv.zst",
}
RECORDINGS = REQUESTS | {
    "otel 7b": "vllm/otel/jan21-llama7b-train-1/traces.json.zst",
    "otel 34b": "vllm/otel/jan20-codellama-train-1/traces.json.zst",
    "phases 7b": "vllm/phases/dec11-train-qwen7b-1.vllm_phases.csv",
    "bench": "vllm/bench/RTXPRO6000_Llama-3.1-8B/requests.jsonl",
    "steps 70b": "steps/splitwise_steps.csv.zst",
    "steps of kernels": "steps/llmservingsim_composed_steps.csv.zst",
    "lmbench 70b": "vllm/lmbench/requests.csv",
    "lmbench scout": "vllm/lmbench/requests.csv",
    "4090": "RTX4090/Llama-3.1-8B/vllm/requests.jsonl",
    "qwen3 32b": "RTXPRO6000/Qwen3-32B/vllm/requests.jsonl",
    "qwen3 30b": "RTXPRO6000/Qwen3-30B-A3B-Instruct-2507/vllm/requests.jsonl",
}


def report(directory, work, server, file, *arguments):
    """The report of a fit of a server with the tools of a directory, or the error as a text."""
    model, gpu, engine = SERVERS[server]
    cluster = work / "server.yaml"
    cluster.write_text(f"version: 1\ndeployments:\n  - {{id: main, model: {model}, gpu: {gpu}, engine: {{{engine}}}}}\n")
    if server in REQUESTS:
        arguments = ("--output-tokens", "248", *arguments)
    done = subprocess.run([directory / "blis-calibrate", "-c", cluster, "--format", "json", *arguments, file], capture_output=True)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.decode()

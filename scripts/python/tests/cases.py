"""Workloads and a fitness for the tests."""

import pathlib
import subprocess

from blis_tools import evaluation

FITNESS = """version: 1
gates:
  - {name: served, expr: m.requests.completed >= m.requests.offered + m.requests.not_issued}
score: wmean(0.6, m.goodput.ratio, 0.4, soft(m.ttft.p99, 500, 3))
objectives: {latency: -m.e2e.mean}
features: {hits: m.kv.prefix_hit_ratio}
"""
START = {"routing": {"type": "least-loaded"}, "scheduler": {"type": "fcfs"}}


def gen(file, *args):
    """Makes a workload."""
    subprocess.run([evaluation._tool("blis-gen"), *args, "-o", file], check=True)
    return str(file)


def make(folder):
    """A workload of documents, its first requests, and a fitness file. Their paths."""
    folder = pathlib.Path(folder)
    fitness = folder / "fitness.yaml"
    fitness.write_text(FITNESS)
    whole = gen(folder / "docs.jsonl", "--scenario", "documents", "--requests", "300", "--seed", "1")
    first = gen(folder / "first.jsonl", "--import", f"blis:{whole}", "--limit", "60")
    return whole, first, str(fitness)

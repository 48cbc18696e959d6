"""Runs the shards of a sweep as tasks of a Ray cluster.

    from blis_tools.ray import sweep
    results = sweep(["--sweep", "grid.yaml", "--trace", "minimal", "docs.jsonl.zst"], shards=64)

The nodes need blis-sim and the same files at the same paths, such as a shared folder. A task whose node fails is
repeated on another node.
"""

import json
import os
import subprocess

import ray

from .evaluation import BlisError, _tool


def sweep(args, *, shards, cpus=1, folder=None):
    """The results of blis-sim with these arguments, in the order of the sweep, each as a dict.

    shards: the number of tasks. A failure of a node costs at most the tasks that run there, so have many.
    cpus:   the cores of a task.
    folder: the working directory on all nodes. Without it, that of the caller.
    """
    if not ray.is_initialized():
        ray.init()
    run = ray.remote(num_cpus=cpus, max_retries=-1)(_shard)
    folder = os.path.abspath(folder or os.getcwd())
    tasks = [run.remote(list(args), k, shards, cpus, folder) for k in range(1, shards + 1)]
    results = [json.loads(line) for lines in ray.get(tasks) for line in lines]
    return sorted(results, key=lambda r: r["index"])


def _shard(args, k, n, cpus, folder):
    """The lines of one shard."""
    environment = {**os.environ, "GOMAXPROCS": str(cpus)}
    done = subprocess.run([_tool("blis-sim"), *args, "--shard", f"{k}/{n}"], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True)
    # The exit code is 1 if no run of the shard has metrics; its results say why.
    if done.returncode and not done.stdout.startswith(b'{"kind":"result"'):
        raise BlisError(done.stderr.decode(errors="replace").strip())
    return done.stdout.decode().splitlines()

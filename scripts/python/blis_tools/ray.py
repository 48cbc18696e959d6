"""Runs the shards of a sweep as tasks of a Ray cluster.

    from blis_tools.ray import sweep
    results = sweep(["--sweep", "grid.yaml", "--trace", "minimal", "docs.jsonl.zst"], shards=64)
    files = parquet(["--sweep", "grid.yaml", "--trace", "minimal", "docs.jsonl.zst"], "parts", shards=64)

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
    results = [json.loads(line) for lines in _run(_lines, args, shards, cpus, folder) for line in lines]
    return sorted(results, key=lambda r: r["index"])


def parquet(args, to, *, shards, cpus=1, folder=None):
    """Writes the results of each shard to a table part-K.parquet in the folder to, which all nodes share. The paths.

    DuckDB merges them: SELECT * FROM read_parquet('parts/*.parquet', union_by_name = true) ORDER BY index
    """
    to = os.path.join(os.path.abspath(folder or os.getcwd()), to)
    os.makedirs(to, exist_ok=True)
    return _run(_table, args, shards, cpus, folder, to)


def _run(task, args, shards, cpus, folder, *more):
    """What task returns for each shard, in their order."""
    if not ray.is_initialized():
        ray.init()
    run = ray.remote(num_cpus=cpus, max_retries=-1)(task)
    folder = os.path.abspath(folder or os.getcwd())
    return ray.get([run.remote(list(args), k, shards, cpus, folder, *more) for k in range(1, shards + 1)])


def _lines(args, k, n, cpus, folder):
    """The lines of one shard."""
    done = _shard(args, k, n, cpus, folder)
    # The exit code is 1 if no run of the shard has metrics; its results say why.
    if done.returncode and not done.stdout.startswith(b'{"kind":"result"'):
        raise BlisError(done.stderr.decode(errors="replace").strip())
    return done.stdout.decode().splitlines()


def _table(args, k, n, cpus, folder, to):
    """The path of the table of one shard."""
    path = os.path.join(to, f"part-{k}.parquet")
    if os.path.exists(path):
        os.remove(path)
    done = _shard([*args, "-o", path], k, n, cpus, folder)
    if done.returncode and not os.path.exists(path):
        raise BlisError(done.stderr.decode(errors="replace").strip())
    return path


def _shard(args, k, n, cpus, folder):
    """The process of one shard, which has ended."""
    environment = {**os.environ, "GOMAXPROCS": str(cpus)}
    return subprocess.run([_tool("blis-sim"), *args, "--shard", f"{k}/{n}"], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True)

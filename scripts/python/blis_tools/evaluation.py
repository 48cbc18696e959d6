"""The evaluation of a policy bundle: one simulation for each workload, and the document of blis-summarize."""

import dataclasses
import functools
import json
import os
import pathlib
import subprocess
import tempfile
from typing import Any, Mapping, Union

Bundle = Union[str, bytes, Mapping[str, Any], pathlib.Path]


class BlisError(Exception):
    """The call is wrong, whatever the bundle: a tool is missing, or a file does not load."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What a bundle is worth. All numbers are finite, also if the bundle does not load."""

    score: float
    """The fitness in [0, 1); higher is better. 0 if there is no run."""
    error: str
    """Why there is no score, with the place in the bundle; "" if there is one."""
    feedback: str
    """The summary for a language model: the result, the causes of the losses and what to change. At most 1,950
    characters."""
    objectives: dict
    """The objectives of the fitness file by name; higher is better."""
    features: dict
    """The features of the fitness file by name."""
    scores: dict
    """All metrics by dotted name, such as ttft.p99. The same names for every bundle."""
    examples: list
    """What happened to classes, tenants and the worst requests."""
    document: dict
    """The whole document of blis-summarize --format json."""


class Evaluator:
    """Evaluates bundles on the same workloads and cluster.

    workloads: a file of blis-gen, or several: the score is then that of all, as the fitness aggregates them.
    cluster:   a cluster file (blis-sim -c). None is the built-in cluster.
    fitness:   a fitness file or an expression (blis-summarize --fitness). None is the share of met SLO targets.
    settings:  values by path (blis-sim --set). They override the bundle.
    seed:      blis-sim --seed.
    baseline:  runs of the reference, if the fitness has base.*.
    timeout:   seconds after which a simulation is ended. Its score is 0, and the error says so.

    A bundle is its text (YAML or JSON), a dict or a pathlib.Path. Whatever is wrong with a bundle, there is a result.
    An error in the other arguments raises BlisError when the evaluator is made.
    """

    def __init__(self, workloads, *, cluster=None, fitness=None, settings=None, seed=0, baseline=(), timeout=300.0):
        self.workloads = _paths(workloads)
        self.cluster, self.baseline = _paths(cluster), _paths(baseline)
        self.fitness, self.seed, self.timeout = fitness, seed, timeout
        if fitness is not None and _is_file(fitness):
            self.fitness = os.path.abspath(fitness)
        self.settings = dict(settings or {})
        if not self.workloads:
            raise BlisError("no workload")
        sets = tuple(f"{path}={json.dumps(value)}" for path, value in sorted(self.settings.items()))
        self._cluster = (*(a for c in self.cluster for a in ("-c", c)), *(a for s in sets for a in ("--set", s)))
        self._summarize = ("--format", "json", *(("--fitness", self.fitness) if self.fitness is not None else ()),
                           *(a for b in self.baseline for a in ("--baseline", b)))
        _check(tuple(self.workloads), self._cluster, self._summarize)

    def __call__(self, bundle: Bundle) -> Result:
        """The result of a bundle."""
        with tempfile.TemporaryDirectory(prefix="blis-") as folder:
            pathlib.Path(folder, "policies.yaml").write_bytes(_text(bundle))
            runs = _run_names(self.workloads)
            for workload, run in zip(self.workloads, runs):
                if not self._simulate(folder, workload, run):
                    runs = [run]  # Its error is that of the bundle: the others need not be known.
                    break
            return _result(_run("blis-summarize", *self._summarize, *runs, cwd=folder))

    def _simulate(self, folder, workload, run):
        """Writes the run of a workload, or a stream with the error. True if there is a run."""
        args = [_tool("blis-sim"), *self._cluster, "-p", "policies.yaml", "--seed", str(self.seed), "--plain", workload]
        with open(os.path.join(folder, run), "wb") as out:
            try:
                done = subprocess.run(args, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                                      timeout=self.timeout)
                if done.returncode == 0:
                    return True
                message = done.stderr.decode(errors="replace").strip()
            except subprocess.TimeoutExpired:
                message = f"the simulation was ended after {self.timeout:g} s"
        path = pathlib.Path(folder, run)
        if b'"kind":"error"' not in path.read_bytes():
            path.write_text(_error_stream(message))
        return False


def evaluate(bundle: Bundle, workloads, **options) -> Result:
    """The result of one bundle; see Evaluator for the options."""
    return Evaluator(workloads, **options)(bundle)


def vocabulary(*stages) -> str:
    """What bundles can contain at these stages (all without any), for prompts: policies with their parameters, and
    the signals of expressions."""
    policies, shown = [], False
    for line in _run("blis-sim", "--list", "policies", strict=True).decode().splitlines():
        if not line.startswith(" "):
            shown = not stages or line.split()[0] in stages
        if shown:
            policies.append(line)
    signals = [line for line in _run("blis-sim", "--list", "signals", strict=True).decode().splitlines()
               if not stages or set(line[line.rfind("[") + 1:-1].split()) & set(stages)]
    return "\n".join(["Policies by stage:", *policies, "Signals of expressions:", *signals]) + "\n"


def _tool(name):
    """The path of a tool."""
    folder = os.environ.get("BLIS_BIN")
    if folder:
        return os.path.join(os.path.abspath(folder), name)
    return name


def _run(name, *args, cwd=None, strict=False):
    """The output of a tool. With strict, an exit code other than 0 raises BlisError."""
    try:
        done = subprocess.run([_tool(name), *args], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True)
    except FileNotFoundError:
        raise BlisError(f"{name} is not in PATH, nor in the folder that BLIS_BIN names") from None
    if done.returncode and (strict or not done.stdout):
        raise BlisError(done.stderr.decode(errors="replace").strip())
    return done.stdout


@functools.lru_cache(maxsize=None)
def _check(workloads, cluster, summarize):
    """Raises BlisError if the arguments do not load. It simulates the first request of each workload without a
    bundle, or all of them where a baseline needs the same workload."""
    for w in workloads:
        if not os.path.isfile(w):
            raise BlisError(f"{w}: no such file")
    with tempfile.TemporaryDirectory(prefix="blis-") as folder:
        runs = _run_names(workloads)
        first = os.path.join(folder, "probe", "first.jsonl")
        os.mkdir(os.path.dirname(first))
        for w, run in zip(workloads, runs):
            if "--baseline" not in summarize:
                _run("blis-gen", "--import", f"blis:{w}", "--limit", "1", "-o", first, strict=True)
                w = first
            _run("blis-sim", *cluster, "--plain", w, "-o", run, cwd=folder, strict=True)
        _run("blis-summarize", *summarize, *runs, cwd=folder, strict=True)


def _result(output):
    d = json.loads(output)
    return Result(score=float(d["combined_score"] or 0.0), error=d["error"] or "", feedback=d["artifacts"]["feedback"],
                  objectives=d["objectives"], features=d["features"], scores=d["scores"], examples=d["examples"],
                  document=d)


def _error_stream(message):
    """A stream that ends with an error, as blis-sim writes it."""
    head = {"kind": "header", "stream": "run", "stream_version": 2, "tool": "blis-sim", "version": "0", "seed": 0}
    return "".join(json.dumps(r) + "\n" for r in (head, {"kind": "error", "tool": "blis-sim", "message": message}))


def _text(bundle):
    """The bytes of a bundle. What is no text is for blis-sim to reject."""
    if isinstance(bundle, pathlib.Path):
        return bundle.read_bytes()
    if isinstance(bundle, bytes):
        return bundle
    if isinstance(bundle, str):
        return bundle.encode(errors="surrogatepass")
    return json.dumps(bundle).encode()


def _paths(names):
    if names is None:
        return []
    if isinstance(names, (str, os.PathLike)):
        names = [names]
    return [os.path.abspath(n) for n in names]


def _is_file(fitness):
    return str(fitness).endswith((".yaml", ".yml", ".json"))


def _run_names(workloads):
    """The names of the runs. The fitness knows the scenarios by them: that of the workload's file without suffix."""
    stems = [os.path.basename(w).split(".")[0] for w in workloads]
    return [f"{stem}-{i}.jsonl" if stems.count(stem) > 1 else f"{stem}.jsonl" for i, stem in enumerate(stems, 1)]

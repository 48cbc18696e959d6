"""Shared parts of the experiments: runs of the tools, confidence intervals, tables.

Needs Python 3.9 or newer and nothing else. The tools are built from this repository,
or taken from the directory named by BLIS_BIN.
"""

import atexit
import concurrent.futures
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = pathlib.Path(tempfile.mkdtemp(prefix="blis-experiment-"))
atexit.register(shutil.rmtree, WORK, ignore_errors=True)


def tools():
    """The directory of the tools."""
    if "BLIS_BIN" in os.environ:
        return pathlib.Path(os.environ["BLIS_BIN"])
    subprocess.run(["go", "build", "-o", f"{WORK}/bin/", "./cmd/..."], cwd=ROOT, check=True)
    return WORK / "bin"


if {"-h", "--help"} & set(sys.argv[1:]):
    print(sys.modules["__main__"].__doc__.strip())
    sys.exit()

BIN = tools()


def run(*args, stdin=None):
    """Runs a tool. An error ends the experiment."""
    done = subprocess.run([str(BIN / args[0]), *map(str, args[1:])], stdin=stdin, capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, args))}\n{done.stderr.decode()}")
    return done.stdout


def attempt(*args, stdin=b""):
    """Runs a tool whose output counts even if it fails."""
    return subprocess.run([str(BIN / args[0]), *map(str, args[1:])], input=stdin, capture_output=True).stdout


def workload(spec, seed, requests, rate=None):
    """The file of a workload, from a scenario or from the text of a spec (YAML). With a
    rate, the spec must have an aggregate_rate, which the rate replaces."""
    if "\n" not in spec:
        spec = run("blis-gen", "--scenario", spec, "--print-spec").decode()
    if rate is not None:
        spec, replaced = re.subn(r"(?m)^aggregate_rate:.*$", f"aggregate_rate: {rate}", spec)
        if replaced != 1:
            sys.exit(f"cannot set the rate to {rate}: the spec has {replaced} top-level lines of aggregate_rate, want 1")
    name = hashlib.sha256(f"{spec} {seed} {requests}".encode()).hexdigest()[:16]
    file = WORK / f"{name}.jsonl.zst"
    if not file.exists():
        (WORK / f"{name}.yaml").write_text(spec)
        made = WORK / f"{name}.{os.urandom(4).hex()}.jsonl.zst"
        run("blis-gen", WORK / f"{name}.yaml", "--seed", seed, "--requests", requests, "-o", made)
        made.rename(file)
    return file


def simulate(file, cluster=None, policies=None, sets=(), seed=0):
    """The metrics of a run. cluster and policies are the contents of their files."""
    args = ["blis-sim", "--trace", "minimal", "--plain", "--seed", seed]
    for flag, value in (("-c", cluster), ("-p", policies)):
        if value is not None:
            text = json.dumps(value)
            at = WORK / (hashlib.sha256(text.encode()).hexdigest()[:16] + ".json")
            if not at.exists():
                fresh = at.with_suffix("." + os.urandom(4).hex())
                fresh.write_text(text)
                fresh.rename(at)
            args += [flag, at]
    for s in sets:
        args += ["--set", s]
    for line in run(*args, file).splitlines():
        record = json.loads(line)
        if record["kind"] == "metrics":
            return record
    sys.exit("a run without metrics")


def each(calls):
    """Calls functions without arguments on all cores and returns the results in order."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [f.result() for f in [pool.submit(c) for c in calls]]


# Quantiles of Student's t for 95 %, by degrees of freedom from 1.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
           2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086]


class Interval:
    """The mean of a few runs with its 95 % confidence interval (Student's t)."""

    def __init__(self, values):
        values = list(values)
        n = len(values)
        self.n, self.values = n, values
        self.mean = sum(values) / n
        spread = math.sqrt(sum((x - self.mean) ** 2 for x in values) / (n - 1))
        half = STUDENT[min(n - 1, len(STUDENT)) - 1] * spread / math.sqrt(n)
        self.lo, self.hi = self.mean - half, self.mean + half

    def __format__(self, spec):
        spec = spec or ".3g"
        return f"{self.mean:{spec}} [{self.lo:{spec}}, {self.hi:{spec}}]"


def ratios(a, b):
    """The confidence interval of the ratios a/b of paired runs."""
    return Interval(x / y for x, y in zip(a, b))


def table(head, rows):
    """Prints rows in Markdown."""
    rows = [[str(c) for c in r] for r in [head, *rows]]
    width = [max(len(r[i]) for r in rows) for i in range(len(head))]
    for k, r in enumerate(rows):
        print("| " + " | ".join(c.ljust(w) for c, w in zip(r, width)) + " |")
        if k == 0:
            print("|" + "|".join("-" * (w + 2) for w in width) + "|")
    print()


def capacity(spec, requests, cluster, policies):
    """The requests per second that a cluster completes, from first arrival to last
    completion, when the whole workload arrives at once."""
    m = simulate(workload(spec, 0, requests, rate=1e6), cluster, policies)
    return m["throughput"]["rps"]

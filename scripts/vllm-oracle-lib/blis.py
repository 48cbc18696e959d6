"""Runs a case with blis-sim and reads what it did."""

import json
import os
import pathlib
import subprocess
import tempfile


class BlisError(Exception):
    """A run of blis-sim that failed."""


def tools(root, directory):
    """The directory of the tools: BLIS_NEW, or built from the tree."""
    if given := os.environ.get("BLIS_NEW"):
        return pathlib.Path(given)
    try:
        subprocess.run(["go", "build", "-o", f"{directory}/", "./cmd/blis-sim"], cwd=root, check=True)
    except (OSError, subprocess.CalledProcessError) as err:
        raise BlisError(f"cannot build blis-sim: {err}") from err
    return pathlib.Path(directory)


def call(bin_, *arguments):
    try:
        done = subprocess.run([bin_ / "blis-sim", *arguments], capture_output=True)
    except OSError as err:
        raise BlisError(f"cannot run {bin_ / 'blis-sim'}: {err.strerror}") from err
    if done.returncode:
        raise BlisError(f"blis-sim ended with {done.returncode}: {done.stderr.decode().strip()}")
    return done.stdout


def run(bin_, case):
    """Returns what BLIS does with a case: steps, preemptions and requests."""
    with tempfile.TemporaryDirectory() as directory:
        cluster, workload = pathlib.Path(directory, "cluster.yaml"), pathlib.Path(directory, "workload.jsonl")
        cluster.write_text(json.dumps(case.cluster_with(directory)))
        end = {"kind": "end", "records": len(case.workload)}
        workload.write_text("".join(json.dumps(r) + "\n" for r in [*case.workload, end]))
        out = call(bin_, str(workload), "-c", str(cluster), "--trace", "full", "--itl", "--plain")
    steps, preemptions, requests, transfers = [], [], {}, []
    for line in out.splitlines():
        record = json.loads(line)
        if record["kind"] == "step":
            record["batch"] = [[x["request"], x["tokens"]] for x in record["batch"]]
            steps.append(record)
        elif record["kind"] == "preemption":
            preemptions.append([record["at_us"], record["request"], record["deployment"]])
        elif record["kind"] == "transfer":
            transfers.append([record["type"], record["request"], record["blocks"], record["asked_us"], record["started_us"],
                              record["ended_us"], record["deployment"]])
        elif record["kind"] == "outcome":
            if "loaded_tokens" in record:  # vLLM computes the last token again
                record["cached_tokens"] = min(record["cached_tokens"] + record["loaded_tokens"]["cpu"], record["input_tokens"] - 1)
            if record["state"] == "rejected":
                record["state"] += f" {record['reason']}"
            requests[record["id"]] = record
    return {"steps": steps, "preemptions": preemptions, "requests": requests, "transfers": transfers}


def part(run, side):
    """What a pool did in a run, all of it without pools; as if the requests of a prefill pool had ended there."""
    if side is None:
        return {**run, "preemptions": [p[:2] for p in run["preemptions"]], "transfers": [t[:-1] for t in run["transfers"]]}
    name = "main.prefill" if side.pool == "prefill" else "main"
    requests = {r.id: handoff(run["requests"][r.id], side.pool) for r in side.requests}
    return {"steps": [s for s in run["steps"] if s["deployment"] == name],
            "preemptions": [p[:2] for p in run["preemptions"] if p[2] == name], "requests": requests,
            "transfers": [t[:-1] for t in run["transfers"] if t[-1] == name]}


def handoff(outcome, pool):
    """The outcome of a request in one of the pools."""
    o = dict(outcome)
    if pool == "decode":
        if "prefilled_us" in o:  # vLLM counts what it has pulled as cached
            o["cached_tokens"] = o["input_tokens"] - 1 if "scheduled_us" in o else 0
        return o
    o["enqueued_us"] = o["prefill_enqueued_us"]
    for to, source in ("scheduled_us", "prefill_scheduled_us"), ("first_token_us", "prefilled_us"), ("completed_us", "prefilled_us"):
        o.pop(to, None)
        if source in o:
            o[to] = o[source]
    if "prefilled_us" in o:
        o["state"], o["generated_tokens"] = "completed", 1
        o.pop("ended_us", None)
    o.pop("itl_us", None)
    return o

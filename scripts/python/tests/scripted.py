"""A scripted model instead of a language model: it edits policy bundles at random, follows what the summary
says to change, and writes what does not load."""

import json
import random
import re
import subprocess

from blis_tools import evaluation

STAGES = ["admission", "priority", "routing", "scheduler", "preemption"]
INVALID = 0.25  # the share of its texts that do not load
FOLLOWS = 0.5   # how often it does what the summary says


def policies():
    """The policies of each stage that need no expression."""
    command = [evaluation._tool("blis-sim"), "--list", "policies", "--format", "json"]
    listed = json.loads(subprocess.check_output(command))
    return {stage: [p for p in listed if p["stage"] == stage and not p.get("composed") and not p.get("pathological")]
            for stage in STAGES}


def policy(rng, space, stage):
    """A policy of a stage with some parameters."""
    p = rng.choice(space[stage])
    chosen = {q["name"]: value(rng, q) for q in p.get("params", []) if q["kind"] != "table" and rng.random() < 0.4}
    return {"type": p["name"], **({"params": chosen} if chosen else {})}


def value(rng, q):
    if q["kind"] == "flag":
        return rng.random() < 0.5
    if q["kind"] == "choice":
        return rng.choice(q["choices"])
    x = rng.uniform(*q["search"])
    return round(x) if q.get("whole") else round(x, 3)


def edited(rng, space, bundle, prompt):
    """A bundle with another policy at one of its stages: that of the summary in the prompt, or any. A prompt of ""
    has no summary."""
    advice = re.search(r"change: policies\.(\w+): \S.* -> ([\w-]+)", prompt)
    if advice and advice[1] in bundle and advice[2] in {p["name"] for p in space[advice[1]]} and rng.random() < FOLLOWS:
        return {**bundle, advice[1]: {"type": advice[2]}}
    stage = rng.choice(sorted(bundle))
    return {**bundle, stage: policy(rng, space, stage)}


def broken(rng, text):
    """A text that does not load."""
    return rng.choice([text + "\n}", text.replace('"type"', '"kind"'), "I cannot do that.", "[", "\ttype: fcfs",
                       re.sub(r'"type": "[\w-]+"', '"type": "no-such-policy"', text),
                       re.sub(r'"type": "[\w-]+"', '"type": "expression", "score": "replica.nothing +"', text)])


def text(bundle):
    """A bundle in YAML, a line for each stage."""
    return "".join(f"{stage}: {json.dumps(p)}\n" for stage, p in sorted(bundle.items()))


def parsed(written):
    """The bundle of a text of this module, and {} of another."""
    bundle = {}
    for line in written.splitlines():
        stage, colon, rest = line.partition(": ")
        if colon and stage in STAGES:
            try:
                bundle[stage] = json.loads(rest)
            except ValueError:
                return {}
    return bundle


class OpenEvolveModel:
    """A client for OpenEvolve: it answers with a whole program."""

    def __init__(self, config):
        self.space, self.reads = policies(), config.name != "blind"

    async def generate(self, prompt, **options):
        return await self.generate_with_context("", [{"role": "user", "content": prompt}], **options)

    async def generate_with_context(self, system_message, messages, **options):
        prompt = messages[-1]["content"]
        rng = random.Random(f"{options['seed']}")
        current = prompt[prompt.index("# Current Program\n"):].split("```")[1].removeprefix("yaml")
        bundle = parsed(current) or {stage: policy(rng, self.space, stage) for stage in ("routing", "scheduler")}
        written = current
        while written.strip() == current.strip():  # OpenEvolve rejects a program that is its parent.
            written = text(edited(rng, self.space, bundle, prompt if self.reads else ""))
            if rng.random() < INVALID:
                written = broken(rng, written)
        return f"I change a policy.\n```yaml\n{written}```\n"


def openevolve_model(config):
    """For init_client of OpenEvolve's model configuration. One whose name is blind ignores the summaries."""
    return OpenEvolveModel(config)


class GEPAModel:
    """A reflection model for GEPA: it writes the text of one component, or of a bundle. A blind one ignores the
    summaries."""

    def __init__(self, seed, blind=False):
        self.rng, self.space, self.prompts, self.reads = random.Random(f"{seed}"), policies(), [], not blind

    def __call__(self, prompt):
        self.prompts.append(prompt)
        advice = prompt if self.reads else ""
        # A component is in the prompt of blis_tools.gepa, the whole bundle in that of optimize_anything.
        stage = re.search(r"at the stage (\w+) ", prompt)
        if stage:
            written = json.dumps(edited(self.rng, self.space, {stage[1]: {}}, advice)[stage[1]])
        else:
            bundle = next((b for part in prompt.split("```") if (b := parsed(part))), {"routing": {}})
            written = text(edited(self.rng, self.space, bundle, advice))
        if self.rng.random() < INVALID:
            written = broken(self.rng, written)
        return f"```\n{written}\n```"

"""GEPA: an adapter whose components are the stages of a policy bundle, and an evaluator for optimize_anything.

    import gepa
    from blis_tools.gepa import BlisAdapter, templates

    gepa.optimize(seed_candidate={"routing": "type: least-loaded", "scheduler": "type: fcfs"},
                  trainset=["monday.jsonl.zst", "tuesday.jsonl.zst"], valset=["friday.jsonl.zst"],
                  adapter=BlisAdapter(cluster="cluster.yaml", fitness="fitness.yaml"),
                  reflection_prompt_template=templates(["routing", "scheduler"]), reflection_lm=...)

An example is a workload. The text of a component is what the bundle has below the name of the stage.
"""

import concurrent.futures
import os

from gepa.core.adapter import EvaluationBatch, GEPAAdapter

from .evaluation import Evaluator, Result, vocabulary


class BlisAdapter(GEPAAdapter):
    """Evaluates the stages of a policy bundle on workloads.

    examples: the number of examples of a run, besides that of the whole run, that a reflection sees.
    options:  those of Evaluator.
    """

    def __init__(self, *, examples=4, **options):
        self._examples, self._options = examples, options

    def evaluate(self, batch, candidate, capture_traces=False):
        """The scores of a candidate, one for each workload."""
        text = bundle(candidate)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda workload: Evaluator(workload, **self._options)(text), batch))
        return EvaluationBatch(outputs=results, scores=[r.score for r in results],
                               trajectories=list(zip(batch, results)) if capture_traces else None,
                               objective_scores=[{"score": r.score, **r.objectives} for r in results])

    def make_reflective_dataset(self, candidate, eval_batch, components_to_update):
        """What happened in each run, and to its classes, tenants and worst requests."""
        records = []
        for workload, r in eval_batch.trajectories:
            records += self._records(candidate, workload, r)
        return {name: records for name in components_to_update}

    def _records(self, candidate, workload, r: Result):
        yield {"Inputs": {"workload": os.path.basename(workload), "policies": bundle(candidate)},
               "Generated Outputs": r.error or f"score {r.score:.4f}", "Feedback": r.feedback}
        for e in r.examples[:self._examples]:
            yield {"Inputs": {e["kind"]: e["name"], **e["inputs"]}, "Generated Outputs": e["outcome"],
                   "Feedback": e["feedback"]}


def evaluator(workloads=None, **options):
    """The evaluator for optimize_anything. A candidate is the text of a bundle, or the texts of its stages. With
    workloads None, the examples of the dataset are workloads."""

    def evaluate(candidate, example=None):
        text = candidate if isinstance(candidate, str) else bundle(candidate)
        r = Evaluator(workloads if example is None else example, **options)(text)
        return r.score, {"error": r.error, "summary": r.feedback, "scores": {"score": r.score, **r.objectives}}

    return evaluate


def bundle(candidate):
    """The policy bundle with these texts of its stages."""
    lines = []
    for stage, text in sorted(candidate.items()):
        lines += [f"{stage}:", *("  " + line for line in text.splitlines())]
    return "\n".join(lines) + "\n"


def templates(candidate):
    """Prompts for the components (reflection_prompt_template), with the policies and signals of each stage. Those of
    GEPA itself ask for instructions of an assistant."""
    return {s: _TEMPLATE.replace("<stage>", s).replace("<vocabulary>", vocabulary(s)) for s in candidate}


_TEMPLATE = """A cluster of LLM inference servers uses this policy at the stage <stage> (YAML):
```
<curr_param>
```

<vocabulary>
This happened in simulations with it:

<side_info>

Write a better policy of this stage: what the bundle has below "<stage>:", in YAML, within ``` blocks."""

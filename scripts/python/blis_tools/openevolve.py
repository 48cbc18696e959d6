"""An evaluator for OpenEvolve. Its evaluator file has three lines:

    from blis_tools.openevolve import stages
    evaluate, evaluate_stage1, evaluate_stage2 = stages(
        "workload.jsonl.zst", first="first.jsonl.zst", cluster="cluster.yaml", fitness="fitness.yaml")

A program is a policy bundle in YAML: language: yaml and file_suffix: .yaml. With cascade_evaluation, the first stage
simulates the short workload first. Candidates with a score of cascade_thresholds[0] go on to the whole workload.
0.1 is a good threshold: a candidate reaches it if its gates hold, and the score of one that ends there is below
those of all others, although it is that of another workload.
"""

from openevolve.evaluation_result import EvaluationResult

from .evaluation import Evaluator, Result


def stages(workloads, *, first=None, metrics=(), **options):
    """The functions evaluate, evaluate_stage1 and evaluate_stage2 of an evaluator file.

    first:   the workloads of the first stage. Without it, both stages have the same ones.
    metrics: names of metrics that the prompt shows besides the score, objectives and features, such as ttft.p99.
    options: those of Evaluator.
    """
    whole = _stage(Evaluator(workloads, **options), metrics)
    return whole, _stage(Evaluator(first, **options), metrics) if first is not None else whole, whole


def _stage(evaluator, metrics):
    def evaluate(program_path):
        with open(program_path, "rb") as f:
            return result(evaluator(f.read()), metrics)

    return evaluate


def result(r: Result, metrics=()) -> EvaluationResult:
    """The result for OpenEvolve. Each candidate has the same metrics, also if it does not load."""
    shown = {"combined_score": r.score, **r.objectives, **r.features}
    # Without a run there are no metrics of single classes, tenants and replicas.
    shown.update({name: r.scores.get(name, 0.0) if r.error else r.scores[name] for name in metrics})
    return EvaluationResult(metrics=shown, artifacts=dict(r.document["artifacts"]))

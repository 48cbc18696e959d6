"""Scores policies of LLM inference clusters by simulation with blis-sim and blis-summarize.

    from blis_tools import evaluate
    result = evaluate("routing: {type: weighted}", "workload.jsonl.zst")
    print(result.score, result.feedback)

blis_tools.openevolve and blis_tools.gepa connect the same evaluation with these frameworks, and blis_tools.ray runs
sweeps on a Ray cluster. The tools are found in
PATH, or in the folder that the environment variable BLIS_BIN names.
"""

from .evaluation import BlisError, Evaluator, Result, evaluate, vocabulary

__all__ = ["BlisError", "Evaluator", "Result", "evaluate", "vocabulary"]

"""OpenEvolve runs to its end with a scripted model, and no evaluation is lost."""

import json
import math
import pathlib
import tempfile
import unittest

import cases
import scripted
from blis_tools.openevolve import stages
from openevolve import run_evolution
from openevolve.config import Config

ITERATIONS = 60
EVALUATOR = """from blis_tools.openevolve import stages
evaluate, evaluate_stage1, evaluate_stage2 = stages({!r}, first={!r}, fitness={!r}, metrics=["ttft.p99"])
"""


def evolve(folder, evaluator, iterations, seed=1, start=cases.START, model="scripted"):
    """Runs OpenEvolve in a folder, and returns its result and the records of its trace, one for each iteration."""
    folder = pathlib.Path(folder)
    (folder / "start.yaml").write_text(scripted.text(start))
    (folder / "evaluator.py").write_text(evaluator)
    config = Config.from_dict({
        "max_iterations": iterations, "language": "yaml", "file_suffix": ".yaml", "diff_based_evolution": False,
        "random_seed": seed, "log_level": "ERROR", "checkpoint_interval": iterations,
        "llm": {"models": [{"name": model, "init_client": scripted.openevolve_model}]},
        "database": {"num_islands": 2},
        "evaluator": {"cascade_evaluation": True, "cascade_thresholds": [0.1], "parallel_evaluations": 1},
        "evolution_trace": {"enabled": True, "include_code": True, "output_path": str(folder / "trace.jsonl")},
    })
    result = run_evolution(str(folder / "start.yaml"), str(folder / "evaluator.py"), config, iterations,
                           output_dir=str(folder / "out"), cleanup=False)
    return result, [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()]


class OpenEvolve(unittest.TestCase):
    def test_end_to_end(self):
        with tempfile.TemporaryDirectory() as folder:
            whole, first, fitness = cases.make(folder)
            result, trace = evolve(folder, EVALUATOR.format(whole, first, fitness), ITERATIONS)
            score = stages(whole, fitness=fitness)[0]
            start = score(f"{folder}/start.yaml").metrics
            best = pathlib.Path(folder, "best.yaml")
            best.write_text(result.best_code)
            again = score(best).metrics
        self.assertEqual([t["iteration"] for t in trace], list(range(1, ITERATIONS + 1)))
        for t in trace:
            metrics = t["child_metrics"]
            self.assertEqual(set(metrics), {"combined_score", "latency", "hits", "ttft.p99"}, t["child_code"])
            self.assertTrue(all(math.isfinite(x) for x in metrics.values()), metrics)
            self.assertIn("[blis-summary/1]", t["artifacts"]["feedback"])
        failed = [t for t in trace if t["child_metrics"]["combined_score"] == 0]
        self.assertGreaterEqual(len(failed), 5)
        self.assertTrue(all("[ERROR]" in t["artifacts"]["feedback"] for t in failed))
        self.assertGreater(result.best_score, start["combined_score"])
        self.assertEqual(again["combined_score"], result.best_score)

    def test_stages(self):
        with tempfile.TemporaryDirectory() as folder:
            whole, first, fitness = cases.make(folder)
            evaluate, stage1, stage2 = stages(whole, first=first, fitness=fitness, metrics=["requests.offered"])
            file = pathlib.Path(folder, "p.yaml")
            file.write_text("routing: {type: weighted}")
            self.assertEqual(stage1(file).metrics["requests.offered"], 60)
            self.assertEqual(stage2(file).metrics["requests.offered"], 300)
            self.assertEqual(stage2(file), evaluate(file))
            file.write_text("routing: {type: nope}")
            failed = stage1(file)
            self.assertEqual(set(failed.metrics), set(evaluate(file).metrics))
            self.assertIn("unknown routing policy", failed.artifacts["feedback"])


if __name__ == "__main__":
    unittest.main()

"""GEPA runs to its end with a scripted model, and no evaluation is lost."""

import math
import tempfile
import unittest

import cases
import gepa
import scripted
from blis_tools.gepa import BlisAdapter, bundle, evaluator, templates
from gepa.optimize_anything import EngineConfig, GEPAConfig, ReflectionConfig, optimize_anything

BUDGET = 60
START = {stage: f"type: {p['type']}" for stage, p in cases.START.items()}


class Counted(BlisAdapter):
    """Keeps what was evaluated."""

    def __init__(self, **options):
        super().__init__(**options)
        self.results = []

    def evaluate(self, batch, candidate, capture_traces=False):
        done = super().evaluate(batch, candidate, capture_traces)
        self.results += done.outputs
        return done


class GEPA(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.whole, self.first, self.fitness = cases.make(self.folder)

    def test_adapter_end_to_end(self):
        other = cases.gen(f"{self.folder}/other.jsonl", "--scenario", "documents", "--requests", "200", "--seed", "2")
        adapter, model = Counted(fitness=self.fitness), scripted.GEPAModel(1)
        result = gepa.optimize(START, trainset=[self.first, other], valset=[self.whole], adapter=adapter,
                               reflection_lm=model, reflection_prompt_template=templates(START),
                               reflection_minibatch_size=1, max_metric_calls=BUDGET, seed=1)
        failed = [r for r in adapter.results if r.error]
        self.assertGreaterEqual(len(adapter.results), BUDGET)
        self.assertGreaterEqual(len(failed), 5)
        self.assertTrue(all(r.score == 0 and math.isfinite(r.objectives["latency"]) for r in failed))
        self.assertGreater(max(result.val_aggregate_scores), result.val_aggregate_scores[0])
        best = adapter.evaluate([self.whole], result.best_candidate)
        self.assertEqual(best.scores[0], max(result.val_aggregate_scores))
        self.assertTrue(any("[HEADLINE]" in p for p in model.prompts))
        self.assertTrue(any("least-loaded" in p for p in model.prompts))

    def test_optimize_anything(self):
        model, results = scripted.GEPAModel(2), []
        evaluate = evaluator(self.whole, fitness=self.fitness)

        def counted(candidate):
            results.append(evaluate(candidate))
            return results[-1]

        config = GEPAConfig(engine=EngineConfig(max_metric_calls=BUDGET, parallel=False, seed=1),
                            reflection=ReflectionConfig(reflection_lm=model))
        result = optimize_anything(scripted.text(cases.START), evaluator=counted, objective="a better score",
                                   config=config)
        self.assertGreaterEqual(len(results), BUDGET)
        self.assertGreaterEqual(sum(bool(info["error"]) for _, info in results), 5)
        self.assertGreater(max(result.val_aggregate_scores), result.val_aggregate_scores[0])
        self.assertEqual(evaluate(result.best_candidate)[0], max(result.val_aggregate_scores))

    def test_reflective_dataset(self):
        adapter = BlisAdapter(fitness=self.fitness, examples=2)
        done = adapter.evaluate([self.whole], START, capture_traces=True)
        records = adapter.make_reflective_dataset(START, done, ["routing"])["routing"]
        self.assertEqual(len(records), 3)
        for r in records:
            self.assertTrue(r["Inputs"] and r["Generated Outputs"] and r["Feedback"], r)
        broken = {**START, "routing": "type: nope"}
        done = adapter.evaluate([self.whole], broken, capture_traces=True)
        records = adapter.make_reflective_dataset(broken, done, ["routing"])["routing"]
        self.assertEqual(len(records), 1)
        self.assertIn("policies.yaml:2:9: routing.type: unknown routing policy", records[0]["Generated Outputs"])

    def test_bundle(self):
        self.assertEqual(bundle({"b": "x: 1\ny: 2", "a": "{z: 3}"}), "a:\n  {z: 3}\nb:\n  x: 1\n  y: 2\n")


if __name__ == "__main__":
    unittest.main()

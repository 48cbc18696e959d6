"""Every bundle has a finite result, and a wrong call is an error."""

import math
import pathlib
import subprocess
import tempfile
import unittest

import cases
from blis_tools import BlisError, Evaluator, evaluate, evaluation, vocabulary

INVALID = {
    "routing: {type: nope}": 'policies.yaml:1:17: routing.type: unknown routing policy "nope"',
    "routing: {type: expression, score: replica.nothing}": "replica.nothing",
    "routing:\n  type: weighted\n  params: {queue-depth: -1}": "policies.yaml:3",
    "routing: [": "policies.yaml:1",
    "I cannot do that.": "mapping is expected",
    "": "is empty",
    "\x00": "policies.yaml",
    "\ud800": "policies.yaml",
    b"\xff\xfe": "policies.yaml",
    "- a": "mapping is expected",
}


class Evaluation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.whole, cls.first, cls.fitness = cases.make(cls.folder.name)
        cls.evaluator = Evaluator(cls.whole, fitness=cls.fitness, settings={"deployments.main.replicas": 3})

    def assertFinite(self, r):
        for name, x in {"score": r.score, **r.objectives, **r.features, **r.scores}.items():
            self.assertTrue(math.isfinite(x), f"{name} is {x}")
        self.assertTrue(0 <= r.score < 1, r.score)

    def test_score_is_that_of_the_tools(self):
        r = self.evaluator("routing: {type: random}")
        self.assertFinite(r)
        self.assertEqual(r.error, "")
        sim = [evaluation._tool("blis-sim"), "--set", "deployments.main.replicas=3", "--set", "routing.type=random",
               "--plain", self.whole]
        text = subprocess.run([evaluation._tool("blis-summarize"), "--fitness", self.fitness, "--format", "json"],
                              input=subprocess.check_output(sim), capture_output=True, check=True).stdout
        self.assertIn(f'"combined_score":{r.score!r},', text.decode().replace(" ", ""))
        self.assertEqual(r.objectives["latency"], -r.scores["e2e.mean"])
        self.assertIn("[HEADLINE]", r.feedback)

    def test_forms_of_a_bundle(self):
        file = pathlib.Path(self.folder.name, "bundle.yaml")
        file.write_text("routing: {type: weighted}")
        forms = [file, file.read_text(), file.read_bytes(), {"routing": {"type": "weighted"}}]
        self.assertEqual(len({self.evaluator(form).score for form in forms}), 1)
        self.assertGreater(self.evaluator(file).score, self.evaluator({"routing": {"type": "random"}}).score)

    def test_invalid_bundles(self):
        good = self.evaluator(cases.START)
        for bundle, error in INVALID.items():
            with self.subTest(bundle=bundle):
                r = self.evaluator(bundle)
                self.assertFinite(r)
                self.assertEqual(r.score, 0)
                self.assertIn(error, r.error)
                self.assertIn("does not load", r.feedback)
                self.assertEqual((set(r.objectives), set(r.features)), (set(good.objectives), set(good.features)))
                self.assertEqual(set(r.document), set(good.document))

    def test_timeout(self):
        r = evaluate(cases.START, self.whole, fitness=self.fitness, timeout=1e-3)
        self.assertFinite(r)
        self.assertEqual(r.score, 0)
        self.assertIn("was ended after 0.001 s", r.error)

    def test_several_workloads(self):
        both = Evaluator([self.whole, self.first], fitness=self.fitness)
        one, two = (Evaluator(w, fitness=self.fitness)(cases.START).score for w in (self.whole, self.first))
        self.assertNotEqual(one, two)
        self.assertAlmostEqual(both(cases.START).score, (one + two) / 2)
        self.assertEqual(both("routing: {type: nope}").score, 0)
        same = Evaluator([self.whole, self.whole], fitness=self.fitness)(cases.START)
        self.assertAlmostEqual(same.score, one)

    def test_baseline(self):
        run = f"{self.folder.name}/base.jsonl"
        subprocess.run([evaluation._tool("blis-sim"), self.whole, "-o", run], check=True)
        relative = Evaluator(self.whole, fitness="ratio(base.ttft.p99, m.ttft.p99)", baseline=run)
        self.assertAlmostEqual(relative({"routing": {"type": "weighted"}}).score, 0.1 + 0.9 * 0.5)

    def test_wrong_calls(self):
        for error, options in {"missing.yaml": {"cluster": "missing.yaml"}, "m.nothing": {"fitness": "m.nothing"},
                               'unknown field "replica"': {"settings": {"replica": 3}}}.items():
            with self.subTest(options=options), self.assertRaisesRegex(BlisError, error):
                Evaluator(self.whole, **options)
        with self.assertRaisesRegex(BlisError, "no such file"):
            Evaluator("missing.jsonl")

    def test_vocabulary(self):
        routing, everything = vocabulary("routing"), vocabulary()
        self.assertIn("least-loaded", routing)
        self.assertIn("replica.inflight", routing)
        self.assertNotIn("token-bucket", routing)
        self.assertIn("token-bucket", everything)


if __name__ == "__main__":
    unittest.main()

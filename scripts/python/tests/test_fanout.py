"""The files of scripts/fanout: valid, and their parts make the sweep."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import cases
import kubernetes_validate
from blis_tools import evaluation

FANOUT = pathlib.Path(__file__).resolve().parents[2] / "fanout"
GRID = "version: 1\nset: {deployments.main.replicas: [2, 3, 4], routing.type: [weighted, random]}\nseeds: [1, 2]\n"


def fanout(*args):
    return subprocess.run([sys.executable, FANOUT, *args], capture_output=True, text=True)


class Fanout(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        cases.make(self.folder)
        (self.folder / "grid.yaml").write_text(GRID)
        self.sweep = ["blis-sim", "--sweep", "grid.yaml", "--trace", "minimal", "--results", "results", "docs.jsonl"]
        self.tool = shutil.which(evaluation._tool("blis-sim"))
        self.path = {"PATH": os.path.dirname(self.tool) + os.pathsep + os.environ["PATH"]}

    def run_parts(self, shell, variable, indexes):
        """Runs a script with each index in a variable, and compares the folder of results with a sweep in one part."""
        for i in indexes:
            subprocess.run(shell, cwd=self.folder, env={**self.path, variable: str(i)}, check=True)
        self.assertEqual(len(list((self.folder / "results").glob("*.json"))), 12)
        merge = subprocess.check_output([self.tool, *self.sweep[1:]], cwd=self.folder)
        alone = [a for a in self.sweep[1:] if a not in ("--results", "results")]
        self.assertEqual(merge, subprocess.check_output([self.tool, *alone], cwd=self.folder))

    def test_slurm(self):
        made = fanout("slurm", "3", "--", *self.sweep)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("#SBATCH --array=1-3\n", made.stdout)
        (self.folder / "job.sh").write_text(made.stdout)
        self.run_parts(["bash", "job.sh"], "SLURM_ARRAY_TASK_ID", [1, 2, 3])

    def test_kubernetes(self):
        made = fanout("kubernetes", "5", "--image", "blis:1", "--claim", "data", "--", *self.sweep)
        self.assertEqual(made.returncode, 0, made.stderr)
        job = json.loads(made.stdout)
        kubernetes_validate.validate(job, "1.33", strict=True)
        container = job["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual(container["volumeMounts"][0]["mountPath"], container["workingDir"])
        self.run_parts(container["command"], "JOB_COMPLETION_INDEX", range(job["spec"]["completions"]))

    def test_wrong_calls(self):
        for args, error in {("slurm", "0", "--", *self.sweep): "at least 1",
                            ("slurm", "2", "--", "blis-sim", "--sweep", "g"): "must have --sweep and --results",
                            ("slurm", "2", "--", *self.sweep, "-o", "x"): "must not have -o",
                            ("kubernetes", "2", "--", *self.sweep): "needs --image"}.items():
            made = fanout(*args)
            self.assertNotEqual(made.returncode, 0)
            self.assertIn(error, made.stderr)


if __name__ == "__main__":
    unittest.main()

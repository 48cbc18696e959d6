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
import duckdb
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

    def check_tables(self):
        """Compares the tables of the parts, merged, with the table of a sweep in one part."""
        subprocess.run([self.tool, *self.sweep[1:], "-o", "all.parquet"], cwd=self.folder, check=True)
        merged = duckdb.sql(f"SELECT * FROM read_parquet('{self.folder}/tables/*.parquet', union_by_name = true) "
                            "ORDER BY index")
        whole = duckdb.sql(f"SELECT * FROM '{self.folder}/all.parquet'")
        columns = ", ".join('"' + c.replace('"', '""') + '"' for c in whole.columns)
        self.assertEqual(merged.project(columns).fetchall(), whole.fetchall())
        self.assertEqual(len(merged), 12)

    def test_slurm(self):
        made = fanout("slurm", "3", "--", *self.sweep)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("#SBATCH --array=1-3\n", made.stdout)
        (self.folder / "job.sh").write_text(made.stdout)
        self.run_parts(["bash", "job.sh"], "SLURM_ARRAY_TASK_ID", [1, 2, 3])

    def kubernetes(self, *args):
        """The job that fanout writes, and its container."""
        made = fanout("kubernetes", "5", "--image", "blis:1", *args, "--", *self.sweep)
        self.assertEqual(made.returncode, 0, made.stderr)
        job = json.loads(made.stdout)
        kubernetes_validate.validate(job, "1.33", strict=True)
        container = job["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual(container["volumeMounts"][0]["mountPath"], container["workingDir"])
        return job, container

    def test_kubernetes(self):
        job, container = self.kubernetes("--claim", "data", "--tables", "tables")
        self.run_parts(container["command"], "JOB_COMPLETION_INDEX", range(job["spec"]["completions"]))
        self.check_tables()

    @unittest.skipUnless(shutil.which("rclone"), "needs rclone")
    def test_store(self):
        """Nothing is shared but a store, which is the folder: parts run elsewhere, and one runs again."""
        made = fanout("slurm", "3", "--store", str(self.folder), "--tables", "tables", "--", *self.sweep)
        (self.folder / "job.sh").write_text(made.stdout)
        with tempfile.TemporaryDirectory() as elsewhere:
            self.path["TMPDIR"] = elsewhere
            for i in (1, 2, 3, 2):
                subprocess.run(["bash", self.folder / "job.sh"], cwd=elsewhere, check=True,
                               env={**self.path, "SLURM_ARRAY_TASK_ID": str(i)})
            self.assertEqual(os.listdir(elsewhere), [])
        self.run_parts(["true"], "NONE", [])
        self.check_tables()
        job, container = self.kubernetes("--store", "s3:bucket/sweep")
        self.assertIn("emptyDir", job["spec"]["template"]["spec"]["volumes"][0])
        self.assertIn("rclone copy s3:bucket/sweep .", container["command"][2])

    def test_wrong_calls(self):
        for args, error in {("slurm", "0", "--", *self.sweep): "at least 1",
                            ("slurm", "2", "--", "blis-sim", "--sweep", "g"): "must have --sweep and --results",
                            ("slurm", "2", "--", *self.sweep, "-o", "x"): "must not have -o",
                            ("slurm", "2", "--", *self.sweep, "--shard=1/2"): "must not have --shard",
                            ("slurm", "2", "--", "blis-sim", "--sweep", "-", "--results", "r"): "no stdin",
                            ("slurm", "2", "--store", "s3:b", "--tables", "/t", "--", *self.sweep): "must be below",
                            ("kubernetes", "2", "--claim", "c", "--store", "s3:b", "--image", "i", "--",
                             *self.sweep): "either --claim",
                            ("kubernetes", "2", "--", *self.sweep): "needs --image"}.items():
            made = fanout(*args)
            self.assertNotEqual(made.returncode, 0)
            self.assertIn(error, made.stderr)


if __name__ == "__main__":
    unittest.main()

"""A sweep on two Ray nodes has the results of one process, although one node is removed midway."""

import faulthandler
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import cases
import duckdb
import ray
from blis_tools import evaluation
from blis_tools.ray import parquet, sweep
from ray.cluster_utils import Cluster

GRID = """version: 1
set:
  deployments.main.replicas: [2, 3, 4, 5, 6]
  routing.type: [least-loaded, weighted, round-robin, random, power-of-two]
  deployments.main.engine.max_num_seqs: [4, 16]
seeds: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
"""


LIMIT = 900  # seconds, after which the test ends and prints what all threads wait for


class Ray(unittest.TestCase):
    def setUp(self):
        faulthandler.dump_traceback_later(LIMIT, exit=True, file=sys.__stderr__)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    def test_a_node_is_removed(self):
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        self.addCleanup(cluster.shutdown)
        second = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False)
        self.addCleanup(ray.shutdown)
        with tempfile.TemporaryDirectory() as folder:
            whole, _, _ = cases.make(folder)
            pathlib.Path(folder, "grid.yaml").write_text(GRID)
            args = ["--sweep", "grid.yaml", "--trace", "minimal", whole]
            one = subprocess.check_output([evaluation._tool("blis-sim"), *args], cwd=folder).splitlines()
            kept = pathlib.Path(folder, "results")
            kept.mkdir()
            found = []

            def remove():
                while len(list(kept.iterdir())) < 150:
                    time.sleep(0.01)
                cluster.remove_node(second, allow_graceful=False)
                found.append(len(list(kept.iterdir())))

            thread = threading.Thread(target=remove, daemon=True)
            thread.start()
            got = sweep([*args, "--results", str(kept)], shards=100, folder=folder)
            thread.join(60)
            self.assertTrue(found and found[0] < 500, f"the node was removed after {found} results")
            self.assertEqual(got, [json.loads(line) for line in one])
            self.assertEqual(len(got), 500)
            # All results are in the folder, so the tables need no simulation.
            files = parquet([*args, "--results", str(kept)], "parts", shards=7, folder=folder)
            self.assertEqual(len(files), 7)
            table = duckdb.sql(f"SELECT index, id, \"ttft.p99\" FROM read_parquet('{folder}/parts/*.parquet', "
                               "union_by_name = true) ORDER BY index").fetchall()
            self.assertEqual(table, [(r["index"], r["id"], r["metrics"]["ttft"]["p99"]) for r in got])
            with self.assertRaises(Exception) as error:
                sweep(["--sweep", "missing.yaml", whole], shards=1, folder=folder)
            self.assertIn("missing.yaml", str(error.exception))


if __name__ == "__main__":
    unittest.main()

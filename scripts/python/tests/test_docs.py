"""The examples of docs/search.md run."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import cases
import scripted
from blis_tools import evaluation

CLUSTER = "version: 1\ndeployments: [{id: main, model: Qwen/Qwen3-8B, gpu: H100, replicas: 3}]\n"
DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs/search.md"


@contextlib.contextmanager
def changed_to(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


class Docs(unittest.TestCase):
    def test_examples(self):
        blocks = re.findall(r"```(sh|python)\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
        self.assertEqual([language for language, _ in blocks], ["sh", "sh", "python", "python", "python", "python"])
        with tempfile.TemporaryDirectory() as folder, changed_to(folder):
            for line in blocks[1][1].splitlines():
                tool, *args = line.removeprefix("$ ").split()
                subprocess.run([evaluation._tool(tool), *args], check=True)
            pathlib.Path("fitness.yaml").write_text(cases.FITNESS)
            pathlib.Path("cluster.yaml").write_text(CLUSTER)
            for day in ("monday", "tuesday", "friday"):
                shutil.copy("first.jsonl.zst", f"{day}.jsonl.zst")
            names = {"model": scripted.GEPAModel(1)}
            for _, code in blocks[2:]:
                short = code.replace("reflection_lm=...", "reflection_lm=model").replace("=100)", "=12)")
                exec(compile(short, os.fspath(DOCUMENT), "exec"), names)
        self.assertEqual(names["result"].error, "")
        self.assertEqual(len(names["found"].best_candidate), 2)


if __name__ == "__main__":
    unittest.main()

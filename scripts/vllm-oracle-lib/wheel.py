"""Installs the Python files of a vLLM wheel in a cache, without its dependencies."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

# The tags of the wheels for Linux. No compiled file is used, so they serve every platform.
PLATFORMS = ["manylinux1_x86_64", "manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64",
             "manylinux_2_31_x86_64", "manylinux_2_34_x86_64", "manylinux_2_35_x86_64", "linux_x86_64"]


class WheelError(Exception):
    """A wheel that cannot be installed."""


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "blis" / "vllm"


def install(version):
    """Returns the directory with the package vllm of a version; downloads its wheel if it is not there."""
    if not re.fullmatch(r"\d+\.\d+\.\d+((rc|\.post)\d+)?", version):
        raise WheelError(f"{version} is not a version of vLLM such as 0.19.1")
    target = cache() / version
    if (target / "vllm" / "v1" / "core" / "sched" / "scheduler.py").exists():
        return target
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache(), prefix="download-") as directory:
        directory = pathlib.Path(directory)
        print(f"downloading vLLM {version} (several hundred MB, once)", file=sys.stderr)
        wheel = download(version, directory)
        unpacked = directory / "unpacked"
        with zipfile.ZipFile(wheel) as z:
            names = [n for n in z.namelist() if n.startswith("vllm/") and n.endswith(".py")]
            z.extractall(unpacked, names)
        if not (unpacked / "vllm" / "v1" / "core" / "sched" / "scheduler.py").exists():
            raise WheelError(f"vLLM {version} has no vllm/v1/core/sched/scheduler.py; the oldest usable one is 0.10.0")
        shutil.rmtree(target, ignore_errors=True)
        unpacked.rename(target)
    return target


def download(version, directory):
    command = [sys.executable, "-m", "pip", "download", f"vllm=={version}", "--no-deps", "--only-binary", ":all:",
               "--python-version", "3.11", "--disable-pip-version-check", "--quiet", "--retries", "1", "--timeout", "20",
               "--dest", str(directory)]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    done = subprocess.run(command, capture_output=True, text=True)
    wheels = list(directory.glob("vllm-*.whl"))
    if done.returncode == 0 and wheels:
        return wheels[0]
    versions = re.search(r"\(from versions: (?!none)(.*)\)", done.stderr)
    if versions:
        newest = ", ".join(versions[1].split(", ")[-8:])
        raise WheelError(f"the package index has no wheel of vLLM {version}; the newest are {newest}")
    reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1].removeprefix("ERROR: ")
    raise WheelError(f"cannot download vLLM {version}: the package index cannot be reached ({reason}); "
                     f"with the files in {cache() / version} no connection is needed")

"""A build of another revision, for the scripts that compare the two."""

import contextlib
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


@contextlib.contextmanager
def checkout(revision, work):
    """The tree of a revision in the directory work, while the context lasts."""
    tree = work / "tree"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, revision], cwd=ROOT, check=True)
    try:
        yield tree
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


def tools(revision, work, packages):
    """The directories of the tools of a revision and of the working tree: BLIS_OLD and BLIS_NEW, or built in work.

    Without a revision, only that of the working tree."""
    old, new = (pathlib.Path(os.environ.get(name, work / name)) for name in ("BLIS_OLD", "BLIS_NEW"))
    if revision and "BLIS_OLD" not in os.environ:
        with checkout(revision, work) as tree:
            subprocess.run(["go", "build", "-o", f"{old}/", packages], cwd=tree, check=True)
    if "BLIS_NEW" not in os.environ:
        subprocess.run(["go", "build", "-o", f"{new}/", packages], cwd=ROOT, check=True)
    return old, new

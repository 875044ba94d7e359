"""A benchmark is one place: without its folder and its entry points everything else works."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

import omnidata
from tests import plugs
from tests.export.small import tree
from tests.full import FULL

CODE = """
import json, pkgutil, sys
from importlib import import_module

import datasets

import omnidata
from omnidata import errors
from omnidata.cli import main
from omnidata.registry import names
from omnidata.tasks import get_task

data, out, gone, room = sys.argv[1:]
modules = [m.name for m in pkgutil.walk_packages(omnidata.__path__, "omnidata.")]
for name in modules:
    if name.startswith(room) and not name.endswith(("__main__", ".verl_prompts")):  # it needs verl
        import_module(name)
tasks = [get_task(name).name for name in names()]
codes = []
for command in (["--help"], ["info"], ["info", data], ["evaluate", "omnigui", data, "--model",
                "baseline:oracle", "--out", out]):
    try:
        main(command)
    except SystemExit as ended:
        codes.append(ended.code)
try:
    refused = get_task(gone)
except errors.UsageError as error:
    refused = error.what
omnidata.register()
built = datasets.load_dataset("omnigui", data_dir=data, split="test", cache_dir=out + "-cache")
print()
print(json.dumps({"file": omnidata.__file__, "modules": modules, "tasks": tasks, "codes": codes,
                  "built": len(built), "refused": refused}))
"""

ROOM = "omnidata." if FULL else "omnidata.tasks."
"""Whose modules are all imported; the import rules say that no other room imports a benchmark, and
torch takes long."""


@pytest.mark.parametrize(
    "folder",
    [
        "screenspot",
        pytest.param("agentnet", marks=pytest.mark.full("the package without another folder")),
    ],
)
def test_all_others_work_without_one(folder: str, tmp_path: Path) -> None:
    site, home = tmp_path / "site", f"omnidata.tasks.{folder}."
    gone = shutil.ignore_patterns(folder)  # but not what is compiled: that takes seconds
    shutil.copytree(Path(omnidata.__file__).parent, site / "omnidata", ignore=gone)
    ours = distribution("omnidata").entry_points.select(group="omnidata.tasks")
    kept = {point.name: point.value for point in ours if not point.value.startswith(home)}
    left = sorted(point.name for point in ours if point.name not in kept)
    lines = "\n".join(f"{name} = {value}" for name, value in kept.items())
    plugs.install(site, "omnidata", "omnidata.tasks", lines)
    data, out = tree(tmp_path / "data", episodes=1), tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-c", CODE, data, out, left[0], ROOM],
        env={**os.environ, "PYTHONPATH": str(site)},
        cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["file"] == str(site / "omnidata" / "__init__.py")
    assert found["tasks"] == sorted(kept) != sorted(point.name for point in ours)
    assert not [name for name in found["modules"] if name.startswith(home)]
    assert found["codes"] == [0, 0, 0, 0], done.stdout + done.stderr
    assert found["built"] > 0
    assert f'unknown task "{left[0]}"' in found["refused"]
    assert json.loads((out / "results.json").read_text())["overall"]["EM"] == 1.0

"""Equal inputs give equal bytes, in whatever order a process keeps its sets."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def digests(few: Path, out: Path, seed: str) -> dict[str, str]:
    """What was written with a seed: a hash by the name of each file."""
    out.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.hash_seed", str(few), str(out)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    paths = [path for path in sorted(out.rglob("*")) if path.is_file()]
    found = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    shutil.rmtree(out)
    return found


def test_what_is_written_does_not_depend_on_the_order_of_sets(few: Path, tmp_path: Path) -> None:
    first, second = (digests(few, tmp_path / "out", seed) for seed in ("1", "4"))
    assert len(first) > 20
    assert {name: first.get(name) for name in first | second} == second

"""A model of the true architecture learns to listen and to look, and is caught where it cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import OMNIDATA

pytest.importorskip("trl", reason="needs the extra `train`")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "finetune.py"
pytestmark = pytest.mark.skipif(
    not EXAMPLE.is_file(), reason="needs a checkout: the sdist has no examples"
)
FULL = os.environ.get("OMNIDATA_TEST_FULL") == "1"
CHANCE = 0.25
HEARD, SEEN = "cross_modal_discrimination", "temporal_reasoning"


def finetune(out: Path, *arguments: str, limit_s: int) -> Any:
    """The table that the example prints."""
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--out", out, "--json", *arguments],
        capture_output=True,
        text=True,
        timeout=limit_s,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)

"""A model that hears a little learns by reinforcement to hear well, and is caught without sound."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "reinforce.py"
pytestmark = [
    pytest.mark.skipif(not EXAMPLE.is_file(), reason="needs a checkout: the sdist has no examples"),
    pytest.mark.skipif(find_spec("trl") is None, reason="needs the extra `train`"),
]
CHANCE = 0.25
HEARD = "cross_modal_discrimination"


@pytest.mark.full("minutes of training")
def test_a_tiny_model_learns_to_listen_by_reward(tmp_path: Path) -> None:
    """On held-out episodes whose answer is only heard; twins are alike in all else."""
    data = ("--only", "audio", "--episodes", "400", "--seed", "50", "--steps", "40")
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--out", tmp_path / "out", "--json", *data],
        capture_output=True,
        text=True,
        timeout=3600,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    table = {row: values[HEARD] for row, values in json.loads(done.stdout).items()}
    assert table["after"] > table["before"]
    assert table["after, sampled"] >= table["before, sampled"] + 0.15
    assert table["other-sound"] <= CHANCE
    assert table["silence"] <= CHANCE

"""A model that hears a little learns by reinforcement to hear well, and is caught without sound."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.training.test_finetune import CHANCE, HEARD, pytestmark, run_example

__all__ = ["pytestmark"]  # an example, and the extra that it needs

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "reinforce.py"


@pytest.mark.full("minutes of training")
def test_a_tiny_model_learns_to_listen_by_reward(tmp_path: Path) -> None:
    """On held-out episodes whose answer is only heard; twins are alike in all else."""
    data = ("--only", "audio", "--episodes", "400", "--seed", "50", "--steps", "40")
    done = run_example(EXAMPLE, tmp_path / "out", "--json", *data, limit_s=3600)
    table = {row: values[HEARD] for row, values in json.loads(done.stdout).items()}
    assert table["after"] > table["before"]
    assert table["after, sampled"] >= table["before, sampled"] + 0.15
    assert table["other-sound"] <= CHANCE
    assert table["silence"] <= CHANCE

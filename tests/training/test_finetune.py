"""A model of the true architecture learns to listen and to look, and is caught where it cannot."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.local_models import checkpoint, torch
from tests.cli.running import omnidata
from tests.conftest import Once

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "finetune.py"
pytestmark = [
    pytest.mark.skipif(not EXAMPLE.is_file(), reason="needs a checkout: the sdist has no examples"),
    pytest.mark.skipif(find_spec("trl") is None, reason="needs the extra `train`"),
]
CHANCE = 0.25
HEARD, SEEN = "cross_modal_discrimination", "temporal_reasoning"


def run_example(
    example: Path, out: Path, *arguments: str, limit_s: int = 300, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run an example to an end with this exit code."""
    done = subprocess.run(
        [sys.executable, example, "--out", out, *arguments],
        capture_output=True,
        text=True,
        timeout=limit_s,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == code, done.stderr
    return done


def finetune(out: Path, *arguments: str, limit_s: int) -> Any:
    """The table that the example prints."""
    return json.loads(run_example(EXAMPLE, out, "--json", *arguments, limit_s=limit_s).stdout)


Refuse = Callable[..., str]


@pytest.fixture
def refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Refuse:
    """Runs the example here, whose imports take seconds of a process, and returns its error."""

    def run(*arguments: str) -> str:
        monkeypatch.syspath_prepend(EXAMPLE.parent)
        monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "--out", str(tmp_path / "out"), *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(EXAMPLE), run_name="__main__")
        out, err = capsys.readouterr()
        assert out == ""
        assert ended.value.code
        return err if ended.value.code == 2 else str(ended.value.code)

    return run


@pytest.mark.slow
def test_too_few_episodes_are_an_error_before_anything_is_trained(
    tmp_path: Path, refuse: Refuse
) -> None:
    error = refuse("--episodes", "40")
    assert "8 of the steps from --episodes 40 are held out" in error
    assert "Fix: use another --out, and --episodes 800" in error
    assert not (tmp_path / "out" / "tuned").exists()


@pytest.mark.parametrize("option", ["--episodes", "--steps", "--batch"])
def test_a_number_below_one_is_a_usage_error(tmp_path: Path, refuse: Refuse, option: str) -> None:
    assert f"{option}: 0 is not a whole number of 1 or more" in refuse(option, "0")
    assert not (tmp_path / "out").exists()


@pytest.mark.full("a model is trained for two steps")
def test_a_model_that_has_not_learned_is_an_error_and_no_table_of_zeros(tmp_path: Path) -> None:
    few = ("--only", "audio", "--episodes", "320", "--steps", "2", "--workers", "0")
    done = run_example(EXAMPLE, tmp_path / "out", *few, limit_s=900, code=1)
    assert "the model has not learned, so the controls are skipped" in done.stderr
    assert done.stdout == ""


def test_the_readmes_table_has_the_rows_of_the_example() -> None:
    readme = (EXAMPLE.parents[1] / "README.md").read_text("utf-8")
    table = readme.partition("## Training")[2].partition("## ")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    assert rows[2:] == ["before", "after", *CONTROLS[HEARD], *CONTROLS[SEEN]]


@pytest.mark.full("a minute of training")
def test_a_tiny_model_learns_to_listen(tmp_path: Path) -> None:
    """On held-out episodes whose answer is only heard; twins are alike in all else."""
    data = ("--only", "audio", "--episodes", "320", "--format", "llamafactory")
    recipe = ("--steps", "120", "--batch", "8", "--lr", "3e-3")
    table = finetune(tmp_path / "out", *data, *recipe, limit_s=600)
    assert table["before"][HEARD] <= CHANCE
    assert table["after"][HEARD] >= CHANCE + 0.35
    assert table["silence"][HEARD] <= CHANCE + 0.1
    assert table["other-sound"][HEARD] <= CHANCE + 0.1


CONTROLS = {HEARD: ("other-sound", "silence"), SEEN: ("other-clip", "frozen-clip")}
"""What takes away that which decides."""


@pytest.mark.full("minutes of training")
@pytest.mark.parametrize(
    ("form", "held"),
    [
        ("parquet", (HEARD, SEEN)),
        ("llamafactory", (HEARD, SEEN)),
        ("swift", (HEARD, SEEN)),
        ("qwen-vl", (SEEN,)),
    ],
)
def test_a_tiny_model_learns_from_each_form_of_data_what_the_form_holds(
    form: str, held: Sequence[str], tmp_path: Path
) -> None:
    """Until it generalises: a wrong or silent medium spoils the steps that it decides.

    A silent one spoils these alone. A wrong one may speak of an answer where the other decides.
    """
    table = finetune(tmp_path / "out", "--format", form, limit_s=3600)
    assert table["before"]["all"] <= CHANCE
    for medium in held:
        assert table["after"][medium] >= 0.8
        for decisive in held:
            for control in CONTROLS[decisive]:
                if decisive == medium:
                    assert table[control][medium] <= CHANCE + 0.1, control
                elif control in ("silence", "frozen-clip"):
                    assert table[control][medium] >= 0.8, control


@pytest.mark.full("half a minute of training")
def test_the_same_command_trains_lora_weights_on_data_of_ones_own(
    tmp_path: Path, once: Once
) -> None:
    """A real checkpoint's way: what is added is merged, and the result is evaluated like any."""
    small = ("--size", "112x196", "--fps", "4", "--seconds", "1", "--max-steps", "1")
    some = ("--episodes", "40", "--seed", "4", "--only", "screen")  # one group of twins is held out
    omnidata("synth", "episodes", tmp_path / "data", *some, *small)
    model = checkpoint(once, "qwen3-omni")
    table = finetune(
        tmp_path / "out",
        *("--data", str(tmp_path / "data"), "--model", str(model), "--method", "lora"),
        *("--steps", "2", "--batch", "2", "--workers", "0", "-M", "max_new_tokens=2"),
        *("-M", "batch_size=8", "-M", "max_video_pixels=50176"),
        limit_s=600,
    )
    assert list(table) == ["before", "after"]
    base, tuned = (weights(folder) for folder in (model, tmp_path / "out" / "tuned"))
    assert base.keys() == tuned.keys()
    changed = {name for name in base if not torch.equal(base[name], tuned[name])}
    assert changed and all(name.startswith("model.layers.") for name in changed)


def weights(folder: Path) -> dict[str, Any]:
    """All of a checkpoint."""
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")

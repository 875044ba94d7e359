"""Parts of a run, joined, are the run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import OmnidataError, PredictionError, RunError, UsageError
from omnidata.run.evaluate import evaluate
from omnidata.run.parts import merge
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset
from tests.trees import read_lines, write_lines

TASK = get_task("omnigui")
MODEL = "baseline:random"


@pytest.fixture(scope="module")
def made(source: LoadedDataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three parts; nobody writes into them."""
    folder = tmp_path_factory.mktemp("parts")
    for number in (1, 2, 3):
        evaluate(TASK, source, MODEL, folder / str(number), shard=(number, 3), limit=20)
    return folder


@pytest.fixture
def parts(made: Path, tmp_path: Path) -> list[Path]:
    """The same, to be changed."""
    shutil.copytree(made, tmp_path / "parts")
    return [tmp_path / "parts" / str(number) for number in (2, 3, 1)]


def edit(*runs: Path, **changes: Any) -> None:
    for run in runs:
        path = run / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_parts_joined_are_what_one_run_would_have_left(
    source: LoadedDataset, parts: list[Path], tmp_path: Path
) -> None:
    whole = evaluate(TASK, source, MODEL, tmp_path / "whole", limit=20)
    joined = tmp_path / "new" / "joined"
    assert merge(parts, joined) == whole
    ours, theirs = (
        [(line["sample_id"], line["delivery"], line["output"]) for line in read_lines(path)]
        for path in (joined / "predictions.jsonl", tmp_path / "whole" / "predictions.jsonl")
    )
    assert ours == theirs
    for name in ("scores.jsonl", "results.json"):
        assert (joined / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not list(joined.parent.glob(".*"))
    before = (joined / "predictions.jsonl").read_bytes()
    assert evaluate(TASK, source, MODEL, joined, limit=20) == whole  # the whole run's command
    assert (joined / "predictions.jsonl").read_bytes() == before


def test_attempts_without_an_end_of_the_line_are_refused(parts: list[Path], tmp_path: Path) -> None:
    with (parts[1] / "attempts.jsonl").open("wb") as file:
        file.truncate(100 * 1024**2)
    with pytest.raises(RunError, match="67,108,864 bytes or more"):
        merge(parts, tmp_path / "joined")


def test_attempts_timings_and_usage_are_joined(parts: list[Path], tmp_path: Path) -> None:
    attempt = {"sample_id": "a", "output": "", "delivery": "api_error"}
    for number, part in enumerate(parts[:2], 1):
        write_lines(part / "attempts.jsonl", [attempt] * number)
        edit(part, timings={"model_s": 1.5}, usage={"requests": 2, "cost": 0.1, "currency": "EUR"})
    with (parts[0] / "attempts.jsonl").open("a") as file:
        file.write('{"sample_id": "torn')
    paid = {"requests": 5, "cost": 0.2, "currency": "EUR"}
    edit(parts[2], timings={"model_s": 2, "score_s": 0.25}, usage=paid)
    merge(parts, tmp_path / "joined")
    info = json.loads((tmp_path / "joined" / "run.json").read_text())
    assert info["timings"] == {"model_s": 5.0, "score_s": 0.25}
    assert info["usage"] == {"requests": 9, "cost": 0.4, "currency": "EUR"}
    assert info["shard"] is None
    assert read_lines(tmp_path / "joined" / "attempts.jsonl") == [attempt] * 3


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda parts: parts.pop(0), UsageError, "of 3 parts 1 are missing: 2/3"),
        (lambda parts: parts.append(parts[0]), UsageError, "part 2/3 is given twice"),
        (lambda parts: edit(parts[1], seed=7), RunError, "different settings: seed"),
        (
            lambda parts: edit(parts[1], model_settings={"sizes": {"image": 448}}),
            RunError,
            "different settings: model_settings.sizes.image: null and 448",
        ),
        (lambda parts: edit(parts[1], shard=[3, 4]), RunError, "number of parts: 3 and 4"),
        (lambda parts: edit(parts[1], shard=None), UsageError, "not a part of a run"),
        (lambda parts: (parts[1] / "run.json").unlink(), RunError, "run.json is missing"),
        (
            lambda parts: shutil.copy(parts[0] / "predictions.jsonl", parts[1]),
            PredictionError,
            "does not belong to this part",
        ),
        (
            lambda parts: write_lines(
                parts[1] / "predictions.jsonl", read_lines(parts[1] / "predictions.jsonl")[:-1]
            ),
            RunError,
            r"1 of \d+ steps have no line",
        ),
        (
            lambda parts: write_lines(
                parts[1] / "predictions.jsonl", read_lines(parts[1] / "predictions.jsonl")[:1] * 2
            ),
            PredictionError,
            "has two lines",
        ),
        (
            lambda parts: edit(*parts, dataset_fingerprint="other"),
            RunError,
            "other annotations",
        ),
        (lambda parts: edit(*parts, data=None), UsageError, "--data"),
    ],
)
def test_what_are_not_all_parts_of_one_run_is_refused(
    parts: list[Path], tmp_path: Path, spoil: Any, error: type[OmnidataError], message: str
) -> None:
    spoil(parts)
    with pytest.raises(error, match=message):
        merge(parts, tmp_path / "joined")
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


@pytest.mark.parametrize("paid", [{}, {"cost": 0.1, "currency": "USD"}])
def test_a_cost_of_some_parts_or_of_two_currencies_is_none(
    parts: list[Path], tmp_path: Path, paid: dict[str, Any]
) -> None:
    for part in parts[:2]:
        edit(part, usage={"requests": 2, "cost": 0.1, "currency": "EUR"})
    edit(parts[2], usage={"requests": 2, **paid})
    merge(parts, tmp_path / "joined")
    info = json.loads((tmp_path / "joined" / "run.json").read_text())
    assert info["usage"] == {"requests": 6}


def test_the_data_may_have_moved(parts: list[Path], tmp_path: Path, source: LoadedDataset) -> None:
    edit(*parts, data="/nowhere")
    with pytest.raises(OmnidataError, match="nowhere"):
        merge(parts, tmp_path / "joined")
    results = merge(parts, tmp_path / "joined", data=source.root, profile="omnigui-release")
    assert results["profile"] == "omnigui-release"


def test_a_folder_that_holds_something_is_left_alone(parts: list[Path], tmp_path: Path) -> None:
    (tmp_path / "joined").mkdir()
    (tmp_path / "joined" / "thesis.tex").write_text("text")
    with pytest.raises(RunError, match="is not empty"):
        merge(parts, tmp_path / "joined")
    (tmp_path / "joined" / "thesis.tex").unlink()
    merge(parts, tmp_path / "joined")

"""Steps reach the collator from lists and from Parquet, in this process and in workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from omnidata.data.convert import convert
from omnidata.errors import DataError, UsageError
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset, Step
from tests.adapters.local_models import checkpoint, torch
from tests.conftest import Once
from tests.training.test_collator import SMALL, SMALL_CLIPS

TASK = get_task("omnigui")


def part(source: LoadedDataset, steps: Sequence[Step]) -> LoadedDataset:
    """A source of these steps alone."""
    return replace(source, steps=steps, row_ids=[step.sample_id for step in steps])


@pytest.fixture(scope="module")
def source(data: Path) -> LoadedDataset:
    """Eight steps of two episodes."""
    return TASK.load(data)


@pytest.fixture(scope="module")
def repository(source: LoadedDataset, once: Once) -> Path:
    """The same with media in Parquet cells."""
    return once("training-parquet", lambda folder: convert(source, folder, embed=True))


@pytest.fixture(scope="module")
def collate(once: Once) -> Any:
    from omnidata.torch import OmniCollator

    options = {**SMALL, **SMALL_CLIPS}
    return OmniCollator(checkpoint(once, "qwen2.5-omni"), TASK, options=options)


def training_stream(*given: Any, **options: Any) -> Any:
    from omnidata.torch import training_stream

    return training_stream(*given, **options)


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(torch.as_tensor(one[name]), torch.as_tensor(other[name])) for name in one
    )


def loader(data: Any, collate: Any, workers: int, method: str | None = None) -> Any:
    return torch.utils.data.DataLoader(
        data,
        batch_size=3,
        num_workers=workers,
        collate_fn=collate,
        multiprocessing_context=method,
    )


@pytest.mark.parametrize(
    "method",
    ["fork", pytest.param("spawn", marks=pytest.mark.full("new processes import torch"))],
)
def test_workers_make_the_batches_of_none(source: LoadedDataset, collate: Any, method: str) -> None:
    from omnidata.torch import training_table

    table = training_table(TASK, source.steps[:6])
    alone = list(loader(table, collate, 0))
    shared = list(loader(table, collate, 2, method))
    assert len(alone) == len(shared) == 2
    assert all(same(one, other) for one, other in zip(alone, shared, strict=True))


def test_a_table_gives_the_steps_whole(source: LoadedDataset) -> None:
    from omnidata.torch import training_table

    table = training_table(TASK, source)
    assert [row["step"] for row in table] == list(source.steps)
    assert [row["step"].source for row in table] == [step.source for step in source.steps]
    assert [row["step"] for row in table.shuffle(seed=1)] != list(source.steps)


@pytest.mark.parametrize("workers", [0, 1])
def test_streamed_rows_become_the_batches_of_their_steps(
    source: LoadedDataset, repository: Path, collate: Any, workers: int
) -> None:
    by_id = {step.sample_id: step for step in source.steps}
    names = [row["step"].sample_id for row in training_stream(TASK, repository)]
    assert sorted(names) == sorted(by_id)
    streamed = list(loader(training_stream(TASK, repository), collate, workers))
    for number, batch in enumerate(islice(streamed, 2)):
        chosen = [by_id[name] for name in names[3 * number : 3 * number + 3]]
        assert same(batch, collate(chosen))


def test_a_seed_shuffles_a_stream_anew_in_every_epoch(repository: Path) -> None:
    def names(stream: Any) -> list[str]:
        return [row["step"].sample_id for row in stream]

    stream = training_stream(TASK, repository, seed=3)
    first = names(stream)
    assert first == names(training_stream(TASK, repository, seed=3))
    stream.set_epoch(1)
    assert first != names(stream) and sorted(first) == sorted(names(stream))


def test_a_stream_of_a_subset_has_its_steps_alone(source: LoadedDataset, repository: Path) -> None:
    app = source.steps[0].tags["app"]
    found = [row["step"].sample_id for row in training_stream(TASK, repository, app)]
    assert sorted(found) == sorted(s.sample_id for s in source.steps if s.tags["app"] == app)
    with pytest.raises(DataError, match='no subset "nonsense"'):
        training_stream(TASK, repository, "nonsense")


def test_streams_that_no_model_can_be_trained_on_are_refused(
    source: LoadedDataset, tmp_path: Path, repository: Path
) -> None:
    convert(source, tmp_path / "linked", embed=False)
    with pytest.raises(DataError, match="links"):
        training_stream(TASK, tmp_path / "linked")
    with pytest.raises(DataError, match="holds omnigui"):
        training_stream(get_task("groundui"), repository)
    for option in ({"language": "zh"}, {"history_screenshots": "2"}):
        with pytest.raises(UsageError, match="needs all steps"):
            training_stream(get_task("omnigui", option), repository)
    lacking = replace(source.steps[0], action=None)
    convert(part(source, [lacking]), tmp_path / "lacking", embed=True)
    with pytest.raises(DataError, match=f"no target: {lacking.sample_id}"):
        training_stream(TASK, tmp_path / "lacking")


def test_a_stream_with_a_broken_medium_is_refused(source: LoadedDataset, tmp_path: Path) -> None:
    from omnidata.types import MediaRef

    (tmp_path / "bad.png").write_bytes(b"garbage")
    step: Step = source.steps[0]
    media = {**step.media, "screenshot": MediaRef("image", tmp_path, "bad.png")}
    convert(part(source, [replace(step, media=media)]), tmp_path / "broken", embed=True)
    with pytest.raises(DataError, match=step.sample_id):
        training_stream(TASK, tmp_path / "broken")

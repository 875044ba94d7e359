"""Hostile media through every way that decodes them: each costs its own step and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from omnidata import viewer
from omnidata.data.validate import validate
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import read_run
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset
from tests.export.small import TAP, codes, folder, load, tree, written
from tests.media.bombs import growing, progressive, write_png, write_wav

BROKEN: list[tuple[str, str, Callable[[Path], object]]] = [
    ("png", "media-refused", lambda path: write_png(path, 1, 50_000_000, rows=0)),
    ("png", "media-refused", lambda path: progressive(path, 3000, 3000, 300)),
    ("png", "media-empty", lambda path: path.write_bytes(b"")),
    ("mp4", "media-unreadable", lambda path: grown(path)),
    ("mp4", "media-unreadable", lambda path: path.write_bytes(b"no clip" * 99)),
    ("wav", "media-refused", lambda path: write_wav(path, 65, 16_000, 1600)),
    ("wav", "media-refused", lambda path: write_wav(path, 1, 1, 2048)),
    ("wav", "media-refused", lambda path: write_wav(path, 1, 2**31 - 1, 1600)),
]
"""By step: the suffix of what is broken, what `validate` calls it, and what makes it."""
COUNT = len(BROKEN) + 1


def grown(path: Path) -> None:
    (path.parent / growing(path.parent, "mjpeg", (5120, 4096)).path).rename(path)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An episode of steps with a broken medium each, and one whose sound has eight channels."""
    root = tree(tmp_path_factory.mktemp("hostile") / "data", actions=[TAP] * COUNT)
    for number, (suffix, _, make) in enumerate(BROKEN, 1):
        make(folder(root) / f"{number}.{suffix}")
    write_wav(folder(root) / f"{COUNT}.wav", 8, 16_000, 9600)
    return root


@pytest.fixture(scope="module")
def source(data: Path) -> LoadedDataset:
    return load(data)


def test_validate_names_each(source: LoadedDataset) -> None:
    found = {
        (finding.where.split()[0].rpartition("/")[2], finding.code)
        for finding in validate(source, workers=0).findings
        if finding.code.startswith("media-")
    }
    assert found == {(str(number), code) for number, (_, code, _) in enumerate(BROKEN)}


def test_an_export_leaves_those_steps_out(data: Path, tmp_path: Path) -> None:
    done = written(data, tmp_path / "out")
    assert "media-broken" in codes(done)
    assert (tmp_path / "out" / "train.jsonl").read_text().count("\n") == 1


def test_pages_show_the_rest(source: LoadedDataset, tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    lines = [json.dumps({"sample_id": step.sample_id, "output": "x"}) for step in source.steps]
    answers.write_text("\n".join(lines))
    evaluate(get_task("omnigui"), source, f"replay:{answers}", tmp_path / "run")
    viewer.write(read_run(tmp_path / "run"), tmp_path / "pages.html")
    assert (tmp_path / "pages.html").stat().st_size > 10_000


def test_a_loader_gives_what_is_whole(source: LoadedDataset) -> None:
    from torch.utils.data import DataLoader

    from omnidata.torch import Decoding, StepDataset

    dataset = StepDataset(source, Decoding(on_error="none"))
    items = list(DataLoader(dataset, batch_size=None))
    broken = [item.errors.keys() - {"history_screenshot"} for item in items]
    roles = {"png": "screenshot", "mp4": "video", "wav": "audio"}
    assert broken == [*({roles[suffix]} for suffix, _, _ in BROKEN), set()]

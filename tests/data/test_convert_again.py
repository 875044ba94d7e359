"""Repositories are made anew, gone on with, and never put in the place of something else."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from omnidata.data.convert import convert
from omnidata.errors import DataError, UsageError
from omnidata.media import read_bytes
from omnidata.tasks.omnigui.load import load
from omnidata.types import LoadedDataset
from tests.cli.running import Started, here
from tests.data.converting import LINK_AND_EMBED, StoppedError, said, small, stop
from tests.trees import same_files


@pytest.fixture
def source(sample: Path, tmp_path: Path) -> LoadedDataset:
    """An episode in the folder `data`."""
    return load(small(tmp_path / "data", sample, "C001"))


@LINK_AND_EMBED
def test_the_same_source_gives_the_same_files(
    source: LoadedDataset, tmp_path: Path, embed: bool
) -> None:
    for name in ("one", "two"):
        convert(source, tmp_path / name / "out", embed=embed)
    assert same_files(tmp_path / "one" / "out", tmp_path / "two" / "out")


def test_a_killed_conversion_goes_on(few: Path, tmp_path: Path) -> None:
    out, unfinished = tmp_path / "out", tmp_path / ".out.unfinished"
    with Started("convert", "omnigui", few, out) as process:
        done = unfinished / ".done.jsonl"
        while not done.is_file() or done.read_bytes().count(b"\n") < 2:
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
        process.wait()
    assert not out.exists()
    (unfinished / "data" / "left.partial").write_bytes(b"half a shard")
    with done.open("ab") as file:
        file.write(b'{"file": "data/cut sho')
    lines = done.read_bytes().split(b"\n")[:-1]
    before = {
        file: (unfinished / file).stat().st_ino
        for file in (json.loads(line)["file"] for line in lines)
    }
    here("convert", "omnigui", few, out)
    assert {file: (out / file).stat().st_ino for file in before} == before, "not written again"
    assert [said(s) for s in load(out).steps] == [said(s) for s in load(few).steps]
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock") == ["out"]
    assert not list(out.rglob("*.partial"))
    assert {path.name for path in out.iterdir()} == {"README.md", "data", "omnidata.json"}


@pytest.mark.parametrize("form", ["tree", "repository"])
def test_what_changed_since_the_interruption_is_made_again(
    sample: Path, tmp_path: Path, form: str
) -> None:
    """The data at a place are others when the conversion goes on: one picture differs."""
    data, out = tmp_path / "data", tmp_path / "out"
    trees = [small(tmp_path / name, sample, "C001", "S008") for name in ("before", "after")]
    media = trees[1] / "Chirp" / "media" / "C001"
    shutil.copy(media / "2.png", media / "1.png")
    picture = (media / "1.png").read_bytes()
    for tree in trees:
        if form == "repository":
            convert(load(tree), tmp_path / "made", embed=True)
            shutil.rmtree(tree)
            (tmp_path / "made").rename(tree)
    trees[0].rename(data)
    with pytest.raises(StoppedError):
        convert(load(data), out, embed=True, progress=stop)
    assert (tmp_path / ".out.unfinished" / ".done.jsonl").read_bytes().count(b"\n") > 0
    shutil.rmtree(data)
    trees[1].rename(data)
    convert(load(data), out, embed=True)
    shown = next(step for step in load(out).steps if step.sample_id == "Chirp/C001/0")
    assert shown.media["screenshot"] and read_bytes(shown.media["screenshot"]) == picture


def test_nothing_of_others_is_overwritten(source: LoadedDataset, tmp_path: Path) -> None:
    full, out = tmp_path / "full", tmp_path / "out"
    for folder in (full, tmp_path / ".new.unfinished", tmp_path / ".new.before"):
        folder.mkdir()
        (folder / "thesis.tex").write_text("years of work")
    (full / "omnidata.json").write_text("{}")
    for place, overwrite in ((full, False), (full, True), (tmp_path / "new", False)):
        with pytest.raises(UsageError, match="something here already"):
            convert(source, place, embed=True, overwrite=overwrite)
    assert len(list(tmp_path.rglob("thesis.tex"))) == 3
    convert(source, out, embed=True)
    data = tmp_path / "data"
    with pytest.raises(UsageError, match="--overwrite"):
        convert(source, out, embed=True)
    assert "--overwrite" in here("convert", "omnigui", data, out, code=2).stderr
    again = ("convert", "omnigui", data, out, "--link", "--overwrite")
    (out / "thesis.tex").write_text("years of work")
    assert "something here" in here(*again, code=2).stderr
    (out / "thesis.tex").unlink()
    here(*again)


def test_what_appears_while_converting_is_not_overwritten(
    source: LoadedDataset, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def fill(done: int, total: int) -> None:
        out.mkdir(exist_ok=True)
        (out / "thesis.tex").write_text("years of work")

    with pytest.raises(UsageError, match="something here already"):
        convert(source, out, embed=True, progress=fill)
    assert (out / "thesis.tex").exists()


def test_a_source_is_never_replaced_by_its_own_repository(sample: Path, tmp_path: Path) -> None:
    data, out = small(tmp_path / "out" / "data", sample, "C001"), tmp_path / "out"
    with pytest.raises(UsageError, match="lies in there"):
        convert(load(data), out, embed=True, overwrite=True)
    convert(load(data), tmp_path / "repository", embed=True)
    with pytest.raises(UsageError, match="lies in there"):
        convert(load(tmp_path / "repository"), tmp_path / "repository", embed=True, overwrite=True)


def test_a_place_may_be_a_link_or_relative(
    source: LoadedDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    convert(source, tmp_path / "link", embed=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "README.md").is_file()
    monkeypatch.chdir(tmp_path)
    convert(source, Path("relative/below/"), embed=True)
    assert len(load(tmp_path / "relative" / "below").steps) > 0
    for place in (Path(), Path("data/Chirp/media/C001/1.png/x"), Path("o[1]")):
        with pytest.raises((UsageError, DataError)):
            convert(source, place, embed=True)


def test_a_move_that_was_interrupted_is_finished(source: LoadedDataset, tmp_path: Path) -> None:
    out = tmp_path / "out"
    convert(source, out, embed=True)
    before = (out / "omnidata.json").read_bytes()
    out.rename(tmp_path / ".out.before")  # killed between the two moves
    with pytest.raises(UsageError, match="--overwrite"):
        convert(source, out, embed=True)
    assert (out / "omnidata.json").read_bytes() == before
    shutil.copytree(out, tmp_path / ".out.before")  # killed after them
    (out / ".plan.json").write_text("{}")
    convert(source, out, embed=False, overwrite=True)
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "data", "omnidata.json"]
    assert {path.name for path in tmp_path.iterdir()} == {"data", "out", ".out.lock"}


def test_two_conversions_to_one_place_are_refused(source: LoadedDataset, tmp_path: Path) -> None:
    out = tmp_path / "out"
    errors: list[str] = []

    def again(done: int, total: int) -> None:
        with pytest.raises(DataError) as caught:
            convert(source, out, embed=True)
        errors.append(str(caught.value))

    convert(source, out, embed=True, progress=again)
    assert "another process is converting" in errors[0]

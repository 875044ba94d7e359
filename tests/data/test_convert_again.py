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
from tests.cli.running import Started, here
from tests.data.converting import LINK_AND_EMBED, StoppedError, said, small, stop


@LINK_AND_EMBED
def test_the_same_source_gives_the_same_files(sample: Path, tmp_path: Path, embed: bool) -> None:
    data = small(tmp_path / "data", sample, "C001", "P002")
    for name in ("one", "two"):
        convert(load(data), tmp_path / name / "out", embed=embed)
    one, two = tmp_path / "one" / "out", tmp_path / "two" / "out"
    names = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(two) for path in two.rglob("*") if path.is_file())
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in names)


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
    data, out = small(tmp_path / "data", sample, "C001", "S008"), tmp_path / "out"
    other = tmp_path / "other" / "data"
    small(other, sample, "C001", "S008")
    picture = other / "Chirp" / "media" / "C001" / "1.png"
    picture.write_bytes((picture.parent / "2.png").read_bytes())
    first, second = load(data), load(other)
    if form == "repository":
        for name, source in (("a", first), ("b", second)):
            convert(source, tmp_path / name, embed=True)
        first, second = load(tmp_path / "a"), load(tmp_path / "b")
        (tmp_path / "b").rename(tmp_path / "c")
        (tmp_path / "a").rename(tmp_path / "b")
        (tmp_path / "c").rename(tmp_path / "a")
        second = load(tmp_path / "a")
    else:
        (data / "Chirp" / "media" / "C001" / "1.png").stat()
    with pytest.raises(StoppedError):
        convert(first if form == "tree" else load(tmp_path / "b"), out, embed=True, progress=stop)
    left = (tmp_path / ".out.unfinished" / ".done.jsonl").read_bytes().count(b"\n")
    assert left > 0
    if form == "tree":
        shutil.copy(picture, data / "Chirp" / "media" / "C001" / "1.png")
        second = load(data)
    convert(second, out, embed=True)
    shown = next(step for step in load(out).steps if step.sample_id == "Chirp/C001/0")
    assert shown.media["screenshot"]
    assert read_bytes(shown.media["screenshot"]) == picture.read_bytes()


def test_nothing_of_others_is_overwritten(sample: Path, tmp_path: Path) -> None:
    data = small(tmp_path / "data", sample, "C001")
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.tex").write_text("years of work")
    (full / "omnidata.json").write_text("{}")
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="something here already"):
            convert(load(data), full, embed=True, overwrite=overwrite)
    for name in (".new.unfinished", ".new.before"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="something here already"):
        convert(load(data), tmp_path / "new", embed=True)
    assert len(list(tmp_path.rglob("thesis.tex"))) == 3
    convert(load(data), tmp_path / "out", embed=True)
    with pytest.raises(UsageError, match="--overwrite"):
        convert(load(data), tmp_path / "out", embed=True)
    done = here("convert", "omnigui", data, tmp_path / "out", code=2)
    assert "--overwrite" in done.stderr
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    assert (
        "something here"
        in here("convert", "omnigui", data, tmp_path / "out", "--overwrite", code=2).stderr
    )
    (tmp_path / "out" / "thesis.tex").unlink()
    here("convert", "omnigui", data, tmp_path / "out", "--link", "--overwrite")


def test_what_appears_while_converting_is_not_overwritten(sample: Path, tmp_path: Path) -> None:
    data, out = small(tmp_path / "data", sample, "C001"), tmp_path / "out"

    def fill(done: int, total: int) -> None:
        out.mkdir(exist_ok=True)
        (out / "thesis.tex").write_text("years of work")

    with pytest.raises(UsageError, match="something here already"):
        convert(load(data), out, embed=True, progress=fill)
    assert (out / "thesis.tex").exists()


def test_a_source_is_never_replaced_by_its_own_repository(sample: Path, tmp_path: Path) -> None:
    data, out = small(tmp_path / "out" / "data", sample, "C001"), tmp_path / "out"
    with pytest.raises(UsageError, match="lies in there"):
        convert(load(data), out, embed=True, overwrite=True)
    convert(load(data), tmp_path / "repository", embed=True)
    with pytest.raises(UsageError, match="lies in there"):
        convert(load(tmp_path / "repository"), tmp_path / "repository", embed=True, overwrite=True)


def test_a_place_may_be_a_link_or_relative(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = small(tmp_path / "data", sample, "C001")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    convert(load(data), tmp_path / "link", embed=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "README.md").is_file()
    monkeypatch.chdir(tmp_path)
    convert(load(data), Path("relative/below/"), embed=True)
    assert len(load(tmp_path / "relative" / "below").steps) > 0
    for place in (Path(), Path("data/Chirp/media/C001/1.png/x"), Path("o[1]")):
        with pytest.raises((UsageError, DataError)):
            convert(load(data), place, embed=True)


def test_a_move_that_was_interrupted_is_finished(sample: Path, tmp_path: Path) -> None:
    data, out = small(tmp_path / "data", sample, "C001"), tmp_path / "out"
    convert(load(data), out, embed=True)
    before = (out / "omnidata.json").read_bytes()
    out.rename(tmp_path / ".out.before")  # killed between the two moves
    with pytest.raises(UsageError, match="--overwrite"):
        convert(load(data), out, embed=True)
    assert (out / "omnidata.json").read_bytes() == before
    shutil.copytree(out, tmp_path / ".out.before")  # killed after them
    (out / ".plan.json").write_text("{}")
    convert(load(data), out, embed=False, overwrite=True)
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "data", "omnidata.json"]
    assert {path.name for path in tmp_path.iterdir()} == {"data", "out", ".out.lock"}


def test_two_conversions_to_one_place_are_refused(sample: Path, tmp_path: Path) -> None:
    data, out = small(tmp_path / "data", sample, "C001"), tmp_path / "out"
    errors: list[str] = []

    def again(done: int, total: int) -> None:
        with pytest.raises(DataError) as caught:
            convert(load(data), out, embed=True)
        errors.append(str(caught.value))

    convert(load(data), out, embed=True, progress=again)
    assert "another process is converting" in errors[0]

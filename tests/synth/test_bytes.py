"""The same bytes, whatever the number of processes and interruptions."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from omnidata.errors import DataError, RunError, UsageError
from omnidata.synth.episodes import MOST_EPISODES, make_episodes
from tests.synth.making import TINY, digests

COUNT = 40


@pytest.fixture
def wanted(tmp_path: Path) -> dict[str, str]:
    """The files of an uninterrupted run in one process."""
    make_episodes(tmp_path / "wanted", TINY, episodes=COUNT)
    return digests(tmp_path / "wanted")


def test_two_processes_make_the_bytes_of_one(tmp_path: Path, wanted: dict[str, str]) -> None:
    make_episodes(tmp_path / "two", TINY, episodes=COUNT, workers=2)
    assert digests(tmp_path / "two") == wanted


def test_another_seed_makes_other_bytes(tmp_path: Path, wanted: dict[str, str]) -> None:
    make_episodes(tmp_path / "other", replace(TINY, seed=1), episodes=COUNT)
    media = {name: hash_ for name, hash_ in wanted.items() if name.endswith(".wav")}
    assert not set(media.values()) & set(digests(tmp_path / "other").values())


def test_an_episode_does_not_depend_on_how_many_there_are(
    tmp_path: Path, wanted: dict[str, str]
) -> None:
    make_episodes(tmp_path / "few", TINY, episodes=10)
    few = {name: hash_ for name, hash_ in digests(tmp_path / "few").items() if "/media/" in name}
    assert len({Path(name).parent for name in few}) == 10
    assert few.items() <= wanted.items()


def test_held_out_episodes_are_those_that_come_later(
    tmp_path: Path, wanted: dict[str, str]
) -> None:
    make_episodes(tmp_path / "late", TINY, first=24, episodes=COUNT - 24)
    late = {name: hash_ for name, hash_ in digests(tmp_path / "late").items() if "/media/" in name}
    names = {Path(name).parent.name for name in late}
    assert names == {f"E{number:07d}" for number in range(24, COUNT)}
    assert late.items() <= wanted.items()


def _stop_at(number: int) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        if done >= number:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("number", [0, 16, 32, COUNT])
def test_an_interrupted_run_goes_on_and_makes_nothing_twice(
    tmp_path: Path, wanted: dict[str, str], number: int
) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        make_episodes(out, TINY, episodes=COUNT, progress=_stop_at(number))
    assert not out.exists()
    parts = tmp_path / ".out.unfinished" / "parts"
    before = {
        path.relative_to(path.parents[4]).parts[-2:]: path.stat().st_mtime_ns
        for path in parts.glob("*/tree/*/media/E*/*")
    }
    assert len({episode for episode, _ in before}) == number
    make_episodes(out, TINY, episodes=COUNT)
    assert digests(out) == wanted
    after = {path.parts[-2:]: path.stat().st_mtime_ns for path in out.glob("*/media/E*/*")}
    assert before.items() <= after.items()
    assert not (tmp_path / ".out.unfinished").exists()


def test_an_interrupted_joining_goes_on(tmp_path: Path, wanted: dict[str, str]) -> None:
    out, hidden = tmp_path / "out", tmp_path / ".out.unfinished"
    with pytest.raises(KeyboardInterrupt):
        make_episodes(out, TINY, episodes=COUNT, progress=_stop_at(COUNT))
    for media in list((hidden / "parts").glob("*/tree/*/media"))[:2]:
        there = hidden / "tree" / media.parent.name / "media"
        there.mkdir(parents=True, exist_ok=True)
        for episode in list(media.iterdir())[:3]:
            episode.rename(there / episode.name)
    (there.parent / "localization.jsonl.partial").write_text("half a li")
    make_episodes(out, TINY, episodes=COUNT)
    (out / there.parent.name / "localization.jsonl.partial").unlink(missing_ok=True)
    assert digests(out) == wanted


def test_half_a_part_is_made_again(tmp_path: Path, wanted: dict[str, str]) -> None:
    out, parts = tmp_path / "out", tmp_path / ".out.unfinished" / "parts"
    with pytest.raises(KeyboardInterrupt):
        make_episodes(out, TINY, episodes=COUNT, progress=_stop_at(16))
    whole = next(parts.iterdir())
    shutil.copytree(whole, parts / "0000001.unfinished")
    make_episodes(out, TINY, episodes=COUNT)
    assert digests(out) == wanted


def test_an_interrupted_run_is_not_gone_on_with_by_other_settings(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        make_episodes(out, TINY, episodes=COUNT, progress=_stop_at(16))
    with pytest.raises(DataError, match="seed: 0, now 1") as caught:
        make_episodes(out, replace(TINY, seed=1), episodes=COUNT)
    assert "remove" in caught.value.remedy


def test_a_whole_dataset_is_not_made_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = make_episodes(out, TINY, episodes=8)
    (out / "dependency.jsonl").unlink()
    assert make_episodes(out, TINY, episodes=8) == first
    assert not (out / "dependency.jsonl").exists()
    with pytest.raises(DataError, match="episodes: 8, now 12"):
        make_episodes(out, TINY, episodes=12)


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="something here already"):
        make_episodes(tmp_path, TINY, episodes=8)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    make_episodes(out, TINY, episodes=4)
    assert (out / "synth.json").is_file()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_part_that_cannot_be_written_is_an_error(tmp_path: Path, workers: int) -> None:
    parts = tmp_path / ".out.unfinished" / "parts"
    parts.mkdir(parents=True)
    (parts / "0000001").write_text("in the way")
    with pytest.raises(RunError, match="0000001"):
        make_episodes(tmp_path / "out", TINY, episodes=COUNT, workers=workers)
    (parts / "0000001").unlink()
    make_episodes(tmp_path / "out", TINY, episodes=COUNT)
    assert (tmp_path / "out" / "synth.json").is_file()


@pytest.mark.parametrize(
    ("first", "episodes"), [(0, 0), (2, 4), (-4, 4), (0, MOST_EPISODES + 1), (MOST_EPISODES, 4)]
)
def test_a_range_out_of_bounds_is_refused(tmp_path: Path, first: int, episodes: int) -> None:
    with pytest.raises(UsageError):
        make_episodes(tmp_path / "out", TINY, first=first, episodes=episodes)
    assert not list(tmp_path.iterdir())

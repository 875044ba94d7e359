"""The same bytes, whatever the number of processes and interruptions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import DataError, RunError, UsageError
from omnidata.synth.episodes import MOST_EPISODES, make_episodes
from tests.full import FULL, in_gate
from tests.synth.making import TINY, digests

COUNT = 40 if FULL else 20


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("wanted") / "out"
    make_episodes(out, TINY, episodes=COUNT)
    return digests(out)


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
    make_episodes(tmp_path / "late", TINY, first=COUNT - 16, episodes=16)
    late = {name: hash_ for name, hash_ in digests(tmp_path / "late").items() if "/media/" in name}
    names = {Path(name).parent.name for name in late}
    assert names == {f"E{TINY.digest}-{number:07d}" for number in range(COUNT - 16, COUNT)}
    assert late.items() <= wanted.items()


def _stop_at(number: int) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        if done >= number:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("number", in_gate([16, COUNT, 0, 32], 2, "seconds of encoding"))
def test_an_interrupted_run_goes_on_and_makes_nothing_twice(
    tmp_path: Path, wanted: dict[str, str], number: int
) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        make_episodes(out, TINY, episodes=COUNT, progress=_stop_at(number))
    assert not out.exists()
    parts = tmp_path / ".out.unfinished" / ".parts"
    before = {
        path.parts[-2:]: path.stat().st_mtime_ns for path in parts.glob("*/tree/*/media/E*/*")
    }
    assert len({episode for episode, _ in before}) == number
    make_episodes(out, TINY, episodes=COUNT)
    assert digests(out) == wanted
    after = {path.parts[-2:]: path.stat().st_mtime_ns for path in out.glob("*/media/E*/*")}
    assert before.items() <= after.items()
    assert not (tmp_path / ".out.unfinished").exists()


@pytest.mark.parametrize("what", ["rename", "rmtree"])
def test_a_run_that_is_stopped_at_any_move_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Parts, episodes that are joined, the whole; and before that which is needed no more goes."""
    make_episodes(tmp_path / "wanted", TINY, episodes=20)
    wanted = digests(tmp_path / "wanted")
    where: Any = {"rename": Path, "rmtree": shutil}[what]
    real, left = getattr(where, what), 0

    def stopped(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(where, what, stopped)
    renames = (0, 1, 2, 11, 21, 22) if FULL else (1, 11, 22)
    for moves in renames if what == "rename" else (0,):
        out, left = tmp_path / str(moves), moves
        with pytest.raises(KeyboardInterrupt):
            make_episodes(out, TINY, episodes=20)
        assert not out.exists()
        left = 1000
        make_episodes(out, TINY, episodes=20)
        assert digests(out) == wanted
        assert not (tmp_path / f".{moves}.unfinished").exists()
    left = 1000


def test_a_part_whose_asker_was_killed_is_not_put_among_those_of_the_next_call(
    tmp_path: Path,
) -> None:
    """The next call removes it half done; what is written afterwards is not a whole part."""
    program = f"""
import os
from multiprocessing import get_context
from pathlib import Path
from omnidata.synth import episodes
from tests.synth.making import TINY
job = episodes.Job(TINY, Path({str(tmp_path)!r}), 0, 0, 16)
get_context("spawn").Process(target=episodes.make, args=(job,)).start()
os._exit(0)
"""
    # Returns when nobody holds the pipes any more: when the other process has ended as well.
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stderr == b""
    assert not (tmp_path / "0000000").exists()


def test_half_a_part_is_made_again(tmp_path: Path, wanted: dict[str, str]) -> None:
    out, parts = tmp_path / "out", tmp_path / ".out.unfinished" / ".parts"
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
    with pytest.raises(DataError, match="seed: 0 there, 1 now") as caught:
        make_episodes(out, replace(TINY, seed=1), episodes=COUNT)
    assert "remove" in caught.value.remedy


def test_a_whole_dataset_is_not_made_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = make_episodes(out, TINY, episodes=8)
    (out / "dependency.jsonl").unlink()
    assert make_episodes(out, TINY, episodes=8) == first
    assert not (out / "dependency.jsonl").exists()
    with pytest.raises(DataError, match="episodes: 8 there, 12 now"):
        make_episodes(out, TINY, episodes=12)


@pytest.mark.parametrize("workers", in_gate([1, 2], 1, "a full disk shows it of processes"))
def test_a_part_that_cannot_be_written_is_an_error(tmp_path: Path, workers: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        make_episodes(tmp_path / "out", TINY, episodes=COUNT, progress=_stop_at(16))
    in_the_way = tmp_path / ".out.unfinished" / ".parts" / "0000001"
    in_the_way.write_text("in the way")
    with pytest.raises(RunError, match="0000001"):
        make_episodes(tmp_path / "out", TINY, episodes=COUNT, workers=workers)
    in_the_way.unlink()
    make_episodes(tmp_path / "out", TINY, episodes=COUNT)
    assert (tmp_path / "out" / "synth.json").is_file()


@pytest.mark.parametrize(
    ("first", "episodes"), [(0, 0), (2, 4), (-4, 4), (0, MOST_EPISODES + 1), (MOST_EPISODES, 4)]
)
def test_a_range_out_of_bounds_is_refused(tmp_path: Path, first: int, episodes: int) -> None:
    with pytest.raises(UsageError):
        make_episodes(tmp_path / "out", TINY, first=first, episodes=episodes)
    assert not list(tmp_path.iterdir())

"""The sample dataset of the demo: what it covers, that its media are real, that twins are twins."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import omnidata
from omnidata.actions import NUMBERS, Box
from omnidata.errors import DataError
from omnidata.media import frames, image, probe, samples
from omnidata.synth.sample import make_sample
from omnidata.types import Step
from tests.full import FULL
from tests.synth.making import ROLES, content, digests
from tests.trees import DIMENSIONS


@pytest.fixture(scope="module")
def steps(demo: Path) -> Sequence[Step]:
    source = omnidata.get_task("omnigui").load(demo)
    assert not source.findings
    return source.steps


def test_the_sample_is_as_large_as_it_says(demo: Path, steps: Sequence[Step]) -> None:
    assert 130 <= len(steps) <= 170
    assert len({step.episode_id for step in steps}) >= 40
    assert sum(path.stat().st_size for path in demo.rglob("*")) < 30e6


def test_the_sample_covers_everything_that_the_benchmark_has(steps: Sequence[Step]) -> None:
    assert {step.action.label for step in steps if step.action} == set(NUMBERS)
    for tag, values in (
        ("dimension", DIMENSIONS),
        ("dependency", ("critical", "supportive", "present")),
        ("language", ("en", "zh")),
        ("app", ("Chirp", "Sonora", "Reelio", "Parcelo", "Homely")),
    ):
        assert {step.tags[tag] for step in steps} == set(values)
    for step in steps:
        assert bool(re.search("[\u4e00-\u9fff]", step.instruction)) == (
            step.tags["language"] == "zh"
        )


def test_targets_are_inside_the_screen_on_something_that_is_drawn(steps: Sequence[Step]) -> None:
    for step in steps[:: 1 if FULL else 5]:
        assert step.action is not None
        for box in (*step.action.start, *step.action.end):
            assert isinstance(box, Box)
            assert 0 <= box.left < box.right < 720
            assert 0 <= box.top < box.bottom < 1600
        if step.action.kind == "tap":
            (box,) = step.action.start
            assert isinstance(box, Box)
            ref = step.media["screenshot"]
            assert ref is not None
            pixels = image(ref).pixels
            assert pixels.shape == (1600, 720, 3)
            part = pixels[int(box.top) : int(box.bottom), int(box.left) : int(box.right)]
            assert len(np.unique(part.reshape(-1, 3), axis=0)) > 2


def test_media_decode_and_last_as_long_as_each_other(steps: Sequence[Step]) -> None:
    rates = set()
    for step in steps[:: 1 if FULL else 5]:
        screen, clip, sound = (step.media[role] for role in ("screenshot", "video", "audio"))
        assert screen and clip and sound
        info = probe(clip)
        assert (info.codec, info.width, info.height) == ("h264", 360, 800)
        rates.add(info.fps)
        signal = samples(sound, rate=16_000)
        assert info.seconds == pytest.approx(signal.size / 16_000, abs=0.05)
        assert 0.002 < np.abs(signal).max() < 0.999
        last = frames(clip, which="all").pixels[-1].astype(int)
        small = image(screen).pixels.reshape(800, 2, 360, 2, 3).mean(axis=(1, 3))
        if step.source.get("cue") != "screen":  # a sign that decides is not in the clip
            assert np.abs(last - small).mean() < 6, step.sample_id
    assert rates == {15, 30}


def test_twins_are_the_same_up_to_a_step_at_which_one_medium_decides(steps: Sequence[Step]) -> None:
    groups: dict[tuple[str, str], dict[int, list[Step]]] = defaultdict(lambda: defaultdict(list))
    for step in steps:
        groups[step.tags["app"], step.source["twins"]][step.step_index].append(step)
    assert len(groups) == 22
    decided, before = set(), 0
    for group in groups.values():
        assert len({step.instruction for twins in group.values() for step in twins}) == 1
        first = next(k for k, twins in group.items() if len({step.action for step in twins}) == 2)
        before += first
        cue = group[first][0].source["cue"]
        decided.add(cue)
        for number in range(first + 1):
            for medium, role in ROLES.items():
                differs = number == first and medium == cue
                found = {content(step, role) for step in group[number]}
                assert len(found) == (2 if differs else 1)
    assert decided == {"audio", "video", "screen"}
    assert before == 2  # some begin outside the app, with a step that twins share


def test_an_episode_is_critical_if_a_step_must_be_heard_or_seen_in_motion(
    steps: Sequence[Step],
) -> None:
    cues = defaultdict(set)
    for step in steps:
        cues[step.episode_id, step.tags["dependency"]].add(step.source.get("cue"))
    for (_, dependency), media in cues.items():
        assert (dependency == "critical") == bool(media & {"audio", "video"})


def test_the_same_seed_gives_the_same_files(demo: Path, tmp_path: Path) -> None:
    """Of the first two groups of twins, after which it is interrupted."""
    out, whole = tmp_path / "again", digests(demo)
    made: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        made.append((done, total))
        if len(made) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_sample(out, progress=stop)
    found = digests(out)
    assert len(found) > 10
    assert found == {name: whole[name] for name in found}
    assert made == sorted(made)
    shots = [sum(name.endswith(".png") for name in names) for names in (found, whole)]
    assert made[-1] == tuple(shots)


@pytest.mark.full("ten seconds for each sample")
def test_another_seed_gives_other_media_and_the_same_one_all_files_again(
    demo: Path, tmp_path: Path
) -> None:
    assert digests(make_sample(tmp_path / "again")) == digests(demo)
    other = digests(make_sample(tmp_path / "other", seed=7))
    media = {name: digest for name, digest in other.items() if name.endswith((".png", ".wav"))}
    assert not set(media.values()) & set(digests(demo).values())


def test_the_sample_is_not_written_over_something_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="something here already"):
        make_sample(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]

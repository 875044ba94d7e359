"""The sample dataset: what it covers, that its media are real, and that its twins are twins."""

from __future__ import annotations

import json
import re
import wave
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from omnidata.actions import NUMBERS
from omnidata.errors import DataError
from omnidata.loaders.episode_tree import DIMENSIONS
from omnidata.synth.sample import chirp, make_sample
from tests.conftest import Once
from tests.full import FULL
from tests.synth.making import digests

LABELS = {number: label for label, number in NUMBERS.items()}
SWIPES = [label for label in NUMBERS if label.startswith("SWIPE")]
MEDIA = {"image": "image_path", "video": "video_path", "audio": "audio_path"}


@dataclass(frozen=True)
class Episode:
    root: Path
    meta: dict[str, Any]
    dimension: str
    dependency: str
    steps: list[dict[str, Any]]

    @property
    def name(self) -> str:
        return f"{self.meta['app']}/{self.meta['ID']}"

    def file(self, step: int, kind: str) -> Path:
        return self.root / str(self.meta["app"]) / "media" / str(self.steps[step][MEDIA[kind]])


def read(root: Path) -> list[Episode]:
    labels = {
        (row["app"], row["ID"]): row["dependency"]
        for row in map(json.loads, (root / "dependency.jsonl").read_text().splitlines())
    }
    found = []
    for app in sorted(path for path in root.iterdir() if path.is_dir()):
        for dimension in DIMENSIONS:
            for line in (app / f"{dimension}.jsonl").read_text().splitlines():
                meta = json.loads(line)
                name = meta["ID"]
                steps = json.loads((app / "media" / name / f"{name}.json").read_text())
                found.append(Episode(root, meta, dimension, labels[app.name, name], steps))
    return found


def samples(path: Path) -> NDArray[np.float64]:
    with wave.open(str(path)) as file:
        data = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    return data / 32768


def loudness(signal: NDArray[np.float64]) -> float:
    """Root mean square of the loudest tenth of a second."""
    blocks = signal[: signal.size // 1600 * 1600].reshape(-1, 1600)
    return float(np.sqrt((blocks**2).mean(axis=1)).max())


@pytest.fixture(scope="module")
def progress() -> list[tuple[int, int]]:
    return []


@pytest.fixture(scope="module")
def tree(once: Once) -> Path:
    return once("demo", make_sample)


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory, progress: list[tuple[int, int]]) -> Path:
    """The same sample, or one app of it, made again by somebody who looks at its progress."""
    out = tmp_path_factory.mktemp("again") / "tree"
    with pytest.MonkeyPatch.context() as patch:
        if not FULL:
            patch.setattr("omnidata.synth.sample._APPS", (chirp,))
        return make_sample(out, seed=0, progress=lambda *both: progress.append(both))


@pytest.fixture(scope="module")
def sample_episodes(tree: Path) -> list[Episode]:
    return read(tree)


@pytest.fixture(scope="module")
def groups(sample_episodes: list[Episode]) -> list[list[Episode]]:
    found = defaultdict(list)
    for one in sample_episodes:
        if "twins" in one.meta:
            found[one.meta["app"], one.meta["twins"]].append(one)
    return list(found.values())


def test_the_sample_is_large_enough(tree: Path, sample_episodes: list[Episode]) -> None:
    assert len(sample_episodes) >= 24
    assert sum(len(one.steps) for one in sample_episodes) >= 100
    assert len({one.meta["app"] for one in sample_episodes}) >= 4
    assert sum(path.stat().st_size for path in tree.rglob("*")) < 40e6


def test_the_sample_covers_everything_that_the_benchmark_has(
    sample_episodes: list[Episode],
) -> None:
    kinds = {step["result_action_type"] for one in sample_episodes for step in one.steps}
    assert kinds == set(NUMBERS.values())
    assert {one.dimension for one in sample_episodes} == set(DIMENSIONS)
    levels = {one.dependency for one in sample_episodes}
    assert levels == {"critical", "supportive", "present"}
    assert {one.meta["language"] for one in sample_episodes} == {"en", "zh"}
    assert all(one.meta["instruction_en"] for one in sample_episodes)
    assert all(re.search("[\u4e00-\u9fff]", one.meta["instruction_zh"]) for one in sample_episodes)


def test_positional_actions_have_a_target_inside_the_screen(
    sample_episodes: list[Episode],
) -> None:
    for one in sample_episodes:
        for step in one.steps:
            label = LABELS[step["result_action_type"]]
            roles = ["touch"] * (0 <= NUMBERS[label] <= 6) + ["lift"] * (label in SWIPES)
            for role in ("touch", "lift"):
                spelled = step[f"result_{role}_xy"]
                assert bool(spelled) == (role in roles), one.name
                if spelled:
                    (left, top), (right, bottom) = json.loads(spelled)
                    assert 0 <= left < right < step["image_width"]
                    assert 0 <= top < bottom < step["image_height"]


def test_swipes_go_where_their_name_says(sample_episodes: list[Episode]) -> None:
    seen = set()
    for one in sample_episodes:
        for step in one.steps:
            label = LABELS[step["result_action_type"]]
            if label in SWIPES:
                start, end = (
                    np.mean(json.loads(step[f"result_{role}_xy"]), axis=0)
                    for role in ("touch", "lift")
                )
                dx, dy = end - start
                names = {"SWIPE_RIGHT": dx, "SWIPE_LEFT": -dx, "SWIPE_DOWN": dy, "SWIPE_UP": -dy}
                assert max(names, key=lambda name: names[name]) == label, one.name
                seen.add(label)
    assert seen == set(SWIPES)


def test_a_tap_lands_on_something_that_is_drawn(sample_episodes: list[Episode]) -> None:
    for one in sample_episodes[:: 1 if FULL else 4]:
        for index, step in enumerate(one.steps):
            if step["result_action_type"] == NUMBERS["TAP"]:
                (left, top), (right, bottom) = json.loads(step["result_touch_xy"])
                with Image.open(one.file(index, "image")) as image:
                    colours = image.crop((left, top, right, bottom)).getcolors(1 << 20)
                assert colours is not None
                assert len(colours) > 2, one.name


def test_media_decode_and_have_the_stated_form(sample_episodes: list[Episode]) -> None:
    rates, checked, seen = set(), set(), set()
    for one in sample_episodes[:: 1 if FULL else 4]:
        for index, step in enumerate(one.steps):
            checked.add((one.name, step["step_id"]))
            media = tuple(one.file(index, kind).read_bytes() for kind in MEDIA)
            if media in seen:  # twins share them
                continue
            seen.add(media)
            with Image.open(one.file(index, "image")) as image:
                image.load()
                assert (image.format, image.size) == ("PNG", (720, 1600))
                last_screen = np.asarray(image.reduce(2), dtype=np.int16)
            with av.open(str(one.file(index, "video"))) as container:
                stream = container.streams.video[0]
                assert stream.codec_context.name == "h264"
                assert (stream.width, stream.height) == (360, 800)
                assert not container.streams.audio
                frames = list(container.decode(stream))
                assert stream.average_rate is not None
                rates.add(int(stream.average_rate))
                seconds = len(frames) / float(stream.average_rate)
            with wave.open(str(one.file(index, "audio"))) as track:
                form = (track.getframerate(), track.getnchannels(), track.getsampwidth())
                assert form == (16_000, 1, 2)
                assert track.getnframes() / 16_000 == pytest.approx(seconds, abs=0.05)
            assert 1 <= seconds <= 2.1
            last_frame = frames[-1].to_ndarray(format="rgb24").astype(np.int16)
            assert np.abs(last_frame - last_screen).mean() < 6, f"{one.name} {index}"
    assert rates == {15, 30}
    assert len(checked) >= (100 if FULL else 30)


def test_every_critical_episode_has_a_twin_with_another_answer(
    sample_episodes: list[Episode], groups: list[list[Episode]]
) -> None:
    critical = {one.name for one in sample_episodes if one.dependency == "critical"}
    assert {one.name for group in groups for one in group} == critical
    for group in groups:
        step = group[0].meta["decisive_step_id"]
        answers = {
            tuple(
                one.steps[step][key]
                for key in ("result_action_type", "result_touch_xy", "result_lift_xy")
            )
            for one in group
        }
        assert len(group) >= 2
        assert len(answers) == len(group), group[0].name
    assert {group[0].meta["decisive_modality"] for group in groups} == {"audio", "video"}


def test_twins_differ_in_the_decisive_medium_only(groups: list[list[Episode]]) -> None:
    for group in groups:
        decisive, medium = group[0].meta["decisive_step_id"], group[0].meta["decisive_modality"]
        for key in ("instruction_en", "instruction_zh", "language", "decisive_step_id"):
            assert len({one.meta[key] for one in group}) == 1
        for index in range(decisive + 1):
            for kind in MEDIA:
                contents = {one.file(index, kind).read_bytes() for one in group}
                differs = index == decisive and kind == medium
                assert len(contents) == (len(group) if differs else 1), (group[0].name, index, kind)
        histories = {
            json.dumps([step["result_action_json"] for step in one.steps[:decisive]])
            for one in group
        }
        assert len(histories) == 1


def test_the_sounds_that_decide_are_audible_and_unlike(groups: list[list[Episode]]) -> None:
    heard = 0
    for group in groups:
        if group[0].meta["decisive_modality"] != "audio":
            continue
        step = group[0].meta["decisive_step_id"]
        signals = [samples(one.file(step, "audio")) for one in group]
        assert min(map(loudness, signals)) > 0.05, group[0].name
        for k, one in enumerate(signals):
            for other in signals[:k]:
                assert loudness(one - other) > 0.05, group[0].name
        heard += 1
    assert heard >= 5


def test_the_clips_that_decide_are_visibly_unlike(groups: list[list[Episode]]) -> None:
    seen = 0
    for group in groups:
        if group[0].meta["decisive_modality"] != "video":
            continue
        films = []
        for one in group:
            with av.open(str(one.file(one.meta["decisive_step_id"], "video"))) as container:
                frames = [frame.to_ndarray(format="gray") for frame in container.decode(video=0)]
            films.append(np.stack(frames).astype(np.int16))
        for k, film in enumerate(films):
            for other in films[:k]:
                changed = np.abs(film - other) > 24
                assert changed.mean(axis=(1, 2)).max() > 5e-4, group[0].name
        seen += 1
    assert seen >= 5


def test_no_track_is_silent_or_clipped(sample_episodes: list[Episode]) -> None:
    for one in sample_episodes:
        for index in range(len(one.steps)):
            signal = samples(one.file(index, "audio"))
            assert loudness(signal) > 0.002
            assert np.abs(signal).max() < 0.999, f"{one.name} {index}"


def test_the_same_seed_gives_the_same_files_and_pixels(tree: Path, again: Path) -> None:
    apps = [path.name for path in again.iterdir() if path.is_dir()]
    for app in apps:
        assert digests(again / app) == digests(tree / app)
    assert len(apps) == (5 if FULL else 1)


@pytest.mark.full("15 seconds of encoding")
def test_another_seed_gives_other_media(tree: Path, tmp_path: Path) -> None:
    first = digests(tree)
    other = digests(make_sample(tmp_path / "other", seed=7))
    suffixes = (".png", ".mp4", ".wav")
    media = {path: digest for path, digest in other.items() if path.endswith(suffixes)}
    assert not [path for path, digest in media.items() if digest in first.values()]


def test_progress_ends_with_all_steps(again: Path, progress: list[tuple[int, int]]) -> None:
    assert progress == sorted(progress)
    assert progress[-1][0] == progress[-1][1] == len(list(again.rglob("*.png")))


def test_the_sample_is_not_written_over_something_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="something here already"):
        make_sample(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]

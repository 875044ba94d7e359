"""Generated data are as good as any: they load, they are sound, and there is something to learn."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from omnidata.data.validate import validate
from omnidata.errors import PlatformError
from omnidata.media import frames, image, samples
from omnidata.run.evaluate import evaluate
from omnidata.synth.episodes import Settings, make_episodes, with_speech
from omnidata.synth.episodes.settings import CUES
from omnidata.tasks import get_task
from omnidata.types import MediaRef, Step
from tests.cli.running import as_json, here
from tests.full import FULL, in_gate
from tests.synth.making import TINY, make_steps, only, right


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every cue and question, on screens of a phone's shape."""
    out = tmp_path_factory.mktemp("varied") / "data"
    make_episodes(out, replace(Settings(), size=(108, 240), clip_size=(54, 120)), episodes=48)
    return out


def test_the_tree_is_read_without_a_finding(varied: Path) -> None:
    source = get_task("omnigui").load(varied, strict=True)
    assert len({(step.tags["app"], step.episode_id) for step in source.steps}) == 48
    assert {step.tags["dependency"] for step in source.steps} >= {"critical"}


def test_every_medium_and_step_is_sound(varied: Path) -> None:
    assert validate(get_task("omnigui").load(varied), workers=0).findings == []


def test_the_oracle_gets_all_of_it_right(varied: Path, tmp_path: Path) -> None:
    task = get_task("omnigui")
    results = evaluate(task, task.load(varied), "baseline:oracle", tmp_path / "run")
    assert results["overall"]["EM"] == 1


def test_the_dimension_chooses_the_steps_of_one_medium(varied: Path) -> None:
    steps = get_task("omnigui").load(varied).steps
    for dimension, medium in (
        ("cross_modal_discrimination", "audio"),
        ("temporal_reasoning", "video"),
        ("localization", "screen"),
    ):
        chosen = [step for step in steps if step.tags["dimension"] == dimension]
        assert {step.source["cue"] for step in chosen} == {medium}


def _features(step: Step, medium: str) -> npt.NDArray[np.float64]:
    if medium == "audio":
        wave = samples(_ref(step, "audio"), rate=16_000)
        parts = np.lib.stride_tricks.sliding_window_view(wave, 512)[::256] * np.hanning(512)
        power = np.log(np.abs(np.fft.rfft(parts, axis=1)) + 0.1)
        return np.concatenate([power.mean(axis=0), power.std(axis=0)])
    if medium == "video":
        return frames(_ref(step, "video"), which="all").pixels.astype(np.float64).reshape(-1)
    return image(_ref(step, "screenshot")).pixels.astype(np.float64).reshape(-1)


def _ref(step: Step, role: str) -> MediaRef:
    ref = step.media[role]
    assert ref is not None
    return ref


@pytest.mark.parametrize(
    "cue", in_gate(["pitch", "lamp", "digit", "timbre", "colour"], 3, "seconds of films")
)
def test_the_nearest_example_in_the_deciding_medium_gets_held_out_steps_right(
    tmp_path: Path, cue: str
) -> None:
    from sklearn.neighbors import KNeighborsClassifier

    medium = CUES[cue].medium
    chosen = only(
        medium, cues=(cue,), questions=("leave",), shuffled=False, max_steps=1, apps=1,
        seconds=1.0, distractors=0.0,
    )  # fmt: skip
    steps = make_steps(tmp_path / "data", chosen, episodes=160 if FULL else 96)
    learnt, held_out = steps[:-40], steps[-40:]
    for looked_at in {medium, "audio", "screen"}:
        rule = KNeighborsClassifier(n_neighbors=1)
        rule.fit([_features(step, looked_at) for step in learnt], [right(step) for step in learnt])
        seen = [_features(step, looked_at) for step in held_out]
        score = rule.score(seen, [right(step) for step in held_out])
        assert score > 0.9 if looked_at == medium else score <= 0.25


@pytest.mark.parametrize(("seed", "leaks"), [(1, set()), (0, {"leak-episode"})])
def test_another_seed_is_no_leak_and_the_same_episodes_are(
    tmp_path: Path, seed: int, leaks: set[str]
) -> None:
    make_episodes(tmp_path / "trained on", only("screen"), episodes=24)
    make_episodes(tmp_path / "evaluated", only("screen", seed=seed), episodes=24)
    told = as_json(
        here(
            "export", "omnigui", tmp_path / "trained on", tmp_path / "out", "--format", "trl",
            "--workers", "1", "-T", "modalities=I", "--json",
            "--check-against", tmp_path / "evaluated",
            code=1 if leaks else 0,
        )
    )  # fmt: skip
    assert {finding["code"] for finding in told["findings"]} & {"leak-episode"} == leaks


def test_the_audit_finds_nothing_that_tells_the_answer_without_a_look(tmp_path: Path) -> None:
    chosen = replace(TINY, questions=("leave",), shuffled=False, max_steps=1)
    make_episodes(tmp_path / "data", chosen, episodes=160)
    found = as_json(here("audit", "omnigui", tmp_path / "data", "--json"))
    assert not found["leak"]
    assert found["judged"] == 160
    assert max(rule["overall"]["EM"] for rule in found["rules"]) <= 0.25


def test_the_spoken_numbers_differ_and_are_never_required(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoken = only("audio", cues=("speech",), seconds=1.0, max_steps=1)
    report = make_episodes(tmp_path / "data", spoken, episodes=16)
    assert report["made"]["cues"] == {"speech": 16}
    assert report["made_by"]["speech"].startswith("espeak-ng")
    longer = replace(TINY, seconds=1.0)
    assert with_speech(longer).all_cues == (*longer.all_cues, "speech")
    assert with_speech(TINY) == TINY  # there is no time to say a number
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    with pytest.raises(PlatformError, match="voice"):
        make_episodes(tmp_path / "other", spoken, episodes=4)


def test_without_a_voice_no_number_is_spoken() -> None:
    """In a process that has not spoken yet."""
    script = """
import subprocess
import sys
sys.modules["espeakng_loader"] = None
from omnidata.synth.episodes import Settings, with_speech
assert with_speech(Settings(seconds=1.0)) == Settings(seconds=1.0)
"""
    subprocess.run([sys.executable, "-c", script], check=True)

"""Steps get other media, or media that say nothing; the data stay as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata import media
from omnidata.actions import Action
from omnidata.analysis.controls import alter
from omnidata.data.convert import convert
from omnidata.errors import RunError
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import read_run
from omnidata.tasks import get_task
from omnidata.tasks.json_answers import LABELS
from omnidata.tasks.omnigui.load import load
from omnidata.types import LoadedDataset, MediaRef, Modality, Step
from tests.conftest import Once
from tests.data.segment.films import film, noise
from tests.export.small import tree
from tests.trees import row, write_rows

TWINS = 2
ROLE = {"image": "screenshot", "video": "video", "audio": "audio"}

MEDIUM: dict[Any, Modality] = {
    "other-sound": "audio",
    "silence": "audio",
    "other-clip": "video",
    "frozen-clip": "video",
    "other-picture": "image",
}


@pytest.fixture(scope="module")
def source(once: Once) -> LoadedDataset:
    """Three pairs of twins, of four steps each; twins have the same actions."""
    return load(once("controlled", lambda root: tree(root, episodes=6, twins=TWINS)))


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def ref_of(step: Step, role: str) -> MediaRef:
    ref = step.media[role]
    assert ref is not None
    return ref


@pytest.mark.parametrize("control", MEDIUM)
def test_one_medium_is_another_and_all_else_stays(
    control: Any, source: LoadedDataset, tmp_path: Path
) -> None:
    before = digests(source.root)
    found = alter(source, control, tmp_path / "made")
    assert digests(source.root) == before
    assert not found.left_out and not found.findings
    assert set(found.given) == {step.sample_id for step in source.steps}
    assert found.source.fingerprint == source.fingerprint
    assert found.source.media_overrides["name"] == control
    kind = MEDIUM[control]
    for own, other in zip(source.steps, found.source.steps, strict=True):
        assert own.sample_id == other.sample_id and own.source is other.source
        changed = {role for role, ref in own.media.items() if ref and ref.kind == kind}
        assert {r: m for r, m in own.media.items() if r not in changed} == {
            r: m for r, m in other.media.items() if r not in changed
        }
        for role in changed:
            assert media.read_bytes(ref_of(own, role)) != media.read_bytes(ref_of(other, role))
        assert ROLE[kind] in changed


def test_silence_is_as_long_as_the_sound(source: LoadedDataset, tmp_path: Path) -> None:
    found = alter(source, "silence", tmp_path)
    for own, other in zip(source.steps, found.source.steps, strict=True):
        was, now = (media.probe(ref_of(step, "audio")) for step in (own, other))
        assert (was.audio, now.audio) == ("present", "silent")
        assert now.seconds == pytest.approx(was.seconds)
    assert len(list(tmp_path.iterdir())) == 1  # all of one length


def test_a_frozen_clip_has_the_frames_of_the_clip_but_nothing_moves(
    source: LoadedDataset, tmp_path: Path
) -> None:
    found = alter(source, "frozen-clip", tmp_path, steps={source.steps[0].sample_id})
    own, other = ref_of(source.steps[0], "video"), ref_of(found.source.steps[0], "video")
    was, now = media.probe(own), media.probe(other)
    assert was.moves and now.moves is False
    assert (now.frames, now.width, now.height) == (was.frames, was.width, was.height)
    assert now.fps == pytest.approx(was.fps) and now.seconds == pytest.approx(was.seconds)
    first, still = (media.frames(ref, num_frames=1).pixels[0] for ref in (own, other))
    assert abs(first.astype(int) - still.astype(int)).mean() < 8
    assert len(list(tmp_path.iterdir())) == 1  # the steps that nobody asks about stay
    assert found.source.steps[1] is source.steps[1]


def test_files_that_are_there_are_not_made_again(source: LoadedDataset, tmp_path: Path) -> None:
    alter(source, "frozen-clip", tmp_path)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    alter(source, "frozen-clip", tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == times


def test_data_in_parquet_are_altered_as_well(source: LoadedDataset, tmp_path: Path) -> None:
    convert(source, tmp_path / "parquet", embed=True)
    stored = load(tmp_path / "parquet")
    for control in MEDIUM:
        found = alter(stored, control, tmp_path / control)
        assert not found.findings
        own, other = (each.steps[0] for each in (stored, found.source))
        role = ROLE[MEDIUM[control]]
        assert media.read_bytes(ref_of(own, role)) != media.read_bytes(ref_of(other, role))


def test_a_run_says_under_which_control_it_was_and_is_no_other(
    source: LoadedDataset, tmp_path: Path
) -> None:
    task, run = get_task("omnigui"), tmp_path / "run"
    found = alter(source, "other-sound", tmp_path / "made", seed=3)
    evaluate(task, found.source, "baseline:center", run)
    recorded = read_run(run)
    assert recorded.settings["control"] == {"name": "other-sound", "seed": 3, "steps": 24}
    assert recorded.name == "baseline:center [other-sound]"
    with pytest.raises(RunError, match="control"):
        evaluate(task, source, "baseline:center", run)


def test_an_episode_without_a_partner_is_found_and_left_out(tmp_path: Path) -> None:
    source = load(tree(tmp_path / "data", episodes=1))
    found = alter(source, "other-sound", tmp_path / "made")
    assert found.left_out == {step.sample_id for step in source.steps}
    (finding,) = found.findings
    assert (finding.code, finding.where) == ("control-impossible", "other-sound")
    assert "no other episode has audio" in finding.what


def test_an_episode_without_the_medium_is_found_and_left_out(tmp_path: Path) -> None:
    silent = row("B", app="TED", audio_path="")
    rows = [row("A", app="TED"), silent, row("C", app="TED")]
    source = load(write_rows(tmp_path / "steps.json", rows), check_media=False)
    found = alter(source, "other-sound", tmp_path / "made")
    assert {finding.where: finding.what for finding in found.findings} == {
        "TED/B": "other-sound: no step of it has audio"
    }
    assert found.left_out == {"TED/B/0"}
    assert found.given == {"TED/A/0": "TED/C/0", "TED/C/0": "TED/A/0"}


def test_data_that_allow_no_control_are_found_with_every_reason(tmp_path: Path) -> None:
    rows = [row("A", app="TED"), row("B", app="TED", audio_path="")]
    source = load(write_rows(tmp_path / "steps.json", rows), check_media=False)
    found = alter(source, "other-sound", tmp_path / "made")
    (finding,) = found.findings
    why = "no other episode has audio; no step of it has audio"
    assert (finding.where, finding.what) == ("other-sound", f"no episode can be altered: {why}")
    assert found.left_out == {"TED/A/0", "TED/B/0"}
    assert not found.given


def test_an_unreadable_medium_leaves_its_episode_out_alone(tmp_path: Path) -> None:
    source = load(tree(tmp_path / "data", episodes=3))
    broken = source.steps[5]
    media.resolve(ref_of(broken, "video")).write_bytes(b"no clip")
    found = alter(source, "frozen-clip", tmp_path / "made")
    (finding,) = found.findings
    assert finding.where == broken.episode
    assert "cannot be decoded" in finding.what and "2.mp4" in finding.what
    assert len(found.left_out) == 4 and len(found.given) == 8


def test_a_clip_with_a_sound_of_its_own_weakens_a_control(tmp_path: Path) -> None:
    source = load(tree(tmp_path / "data", episodes=2))
    clip = media.resolve(ref_of(source.steps[0], "video"))
    film(clip, count=9, sound=noise(0.3), codec="aac")
    for control in ("silence", "frozen-clip"):
        found = alter(source, control, tmp_path / control)
        (finding,) = found.findings
        assert finding.code == "control-clip-with-sound"
        assert source.steps[0].sample_id in finding.where
        assert not found.left_out
    with av.open(str(media.resolve(ref_of(found.source.steps[0], "video")))) as container:
        assert not container.streams.audio


# Partners


SOUND = MediaRef("audio", Path("/nowhere"), "sound.wav")  # unreadable ones count as different


def step(app: str, episode: str, index: int, action: int, twins: str, language: str = "en") -> Step:
    made = Step(
        sample_id=f"{app}/{episode}/{index}",
        episode_id=episode,
        step_index=index,
        num_steps=1,
        instruction="",
        screen=(10, 10),
        media={"audio": SOUND},
        history=(),
        history_screens=(),
        action=Action.of(LABELS[action]),
        tags={"app": app, "language": language},
        source={"twins": twins} if twins else {},
    )
    grouped = get_task("omnigui").benchmark.group(made)
    assert grouped
    return grouped


def partners(source: LoadedDataset, steps: Sequence[Step], seed: int = 0) -> dict[str, str | None]:
    """The episode whose sound each episode gets."""
    found = alter(replace(source, steps=steps), "other-sound", Path("/nowhere"), seed=seed)
    episode = {step.sample_id: step.episode_id for step in steps}
    given = {episode[name]: episode[other] for name, other in found.given.items() if other}
    assert {episode[name] for name in found.left_out} == {*episode.values()} - {*given}
    return {each: given.get(each) for each in episode.values()}


Drawn = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(8, 11)), min_size=1, max_size=24
)


@given(Drawn, st.integers(0, 3))
def test_partners_are_other_episodes_and_never_twins_with_the_same_answer(
    source: LoadedDataset, drawn: list[tuple[int, int, int]], seed: int
) -> None:
    steps = [
        step(f"A{app}", str(number), 0, action, f"G{twins}" if twins else "")
        for number, (app, twins, action) in enumerate(drawn)
    ]
    found = partners(source, steps, seed)
    assert found == partners(source, steps, seed)
    by_name = {each.episode_id: each for each in steps}

    def group(name: str) -> tuple[str, str]:
        return by_name[name].tags["app"], str(by_name[name].source.get("twins", name))

    for name, other in found.items():
        twins = [each for each in by_name if each != name and group(each) == group(name)]
        differing = [each for each in twins if by_name[each].action != by_name[name].action]
        if other is None:
            assert not differing and len(twins) == len(by_name) - 1
        else:
            assert other != name
            assert other in differing if differing else other not in twins


def test_an_episode_without_twins_gets_one_of_its_app_else_of_its_language(
    source: LoadedDataset,
) -> None:
    steps = [
        step("TED", "a", 0, 8, ""),
        step("TED", "b", 0, 8, ""),
        step("Bili", "c", 0, 8, "", "zh"),
        step("Douyin", "d", 0, 8, "", "zh"),
        step("Else", "e", 0, 8, "", "fr"),
    ]
    found = partners(source, steps)
    assert (found["a"], found["b"], found["c"], found["d"]) == ("b", "a", "d", "c")
    assert found["e"] in {"a", "b", "c", "d"}


def test_each_episode_of_an_app_is_used_once(source: LoadedDataset) -> None:
    found = partners(source, [step("App", str(n), 0, 8, "") for n in range(40)], seed=1)
    assert sorted(filter(None, found.values())) == sorted(found)


def test_of_twins_the_one_with_the_most_other_answers_is_chosen(source: LoadedDataset) -> None:
    answers = {"a": (8, 9, 10), "b": (8, 9, 11), "c": (9, 8, 11)}
    steps = [
        step("TED", name, index, each, "G")
        for name, given in answers.items()
        for index, each in enumerate(given)
    ]
    for seed in range(5):
        assert partners(source, steps, seed) == {"a": "c", "b": "c", "c": "a"}


def test_a_twin_with_the_same_medium_is_no_partner(source: LoadedDataset, tmp_path: Path) -> None:
    """Of twins that the clip tells apart, the sound of one is the sound of the other."""
    (tmp_path / "sound.wav").write_bytes(b"the same")
    steps = [
        replace(
            step("TED", name, 0, answer, group),
            media={"audio": MediaRef("audio", tmp_path, "sound.wav")},
        )
        for name, answer, group in (("a", 8, "G"), ("b", 9, "G"), ("c", 8, ""))
    ]
    found = partners(source, steps)
    assert (found["a"], found["b"]) == ("c", "c")


def test_a_medium_that_is_the_steps_own_to_the_byte_is_found_and_not_counted(
    tmp_path: Path,
) -> None:
    data = tree(tmp_path / "data", episodes=2)
    media_of = data / "App" / "media"
    (media_of / "E01" / "1.wav").write_bytes((media_of / "E00" / "1.wav").read_bytes())
    source = load(data)
    found = alter(source, "other-sound", tmp_path / "made")
    (finding,) = found.findings
    assert finding.code == "control-same-medium"
    assert "2 of" in finding.where
    assert found.source.media_overrides["steps"] == len(found.given) - 2


def test_a_clip_that_has_changed_is_frozen_again(source: LoadedDataset, tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir()
    moved = replace(source.steps[0], media={"video": MediaRef("video", root, "clip.mp4")})
    frozen = []
    for step in source.steps[:2]:
        (root / "clip.mp4").write_bytes(media.read_bytes(ref_of(step, "video")))
        found = alter(replace(source, steps=[moved]), "frozen-clip", tmp_path / "made")
        frozen.append(ref_of(found.source.steps[0], "video"))
    assert frozen[0] != frozen[1]


def test_a_shorter_partner_gives_its_media_in_turn(tmp_path: Path) -> None:
    rows = [row("A", n, app="TED") for n in range(5)] + [row("B", n, app="TED") for n in range(2)]
    source = load(write_rows(tmp_path / "steps.json", rows), check_media=False)
    found = alter(source, "other-sound", tmp_path)
    assert [found.given[f"TED/A/{n}"] for n in range(5)] == [f"TED/B/{n}" for n in (0, 1, 0, 1, 0)]

"""OSWorld's result trees in every dialect that is known, and every trap of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from omnidata import media
from omnidata.actions import Point
from omnidata.data.validate import report
from omnidata.errors import DataError, MediaError
from omnidata.loaders.load import recognise
from omnidata.loaders.steps_cache import Entry, reporting
from omnidata.tasks import get_task
from omnidata.tasks.osworld.load import dump, dump_lines, load
from omnidata.types import LoadedDataset, MediaRef, VideoSegment
from tests.full import FULL
from tests.loaders.osworld import (
    RUN,
    SIZE,
    codes,
    line,
    picture,
    plain,
    recording,
    rollout,
    stamp,
    write_lines,
)
from tests.loaders.test_steps_cache import make_old

fingerprint = get_task("osworld").benchmark.fingerprint
TASKED: dict[str, Any] = {"instruction": "Open the menu"}


def lines_of(folder: Path) -> list[Any]:
    text = (folder / "traj.jsonl").read_text(encoding="utf-8")
    return [json.loads(text) for text in text.splitlines() if text.startswith("{")]


def name(ref: MediaRef | None) -> str:
    assert ref is not None
    return ref.path.rpartition("/")[2]


def test_a_tree_of_the_release_is_read_whole(tmp_path: Path) -> None:
    source = load(plain(tmp_path))
    assert [step.sample_id for step in source.steps] == [f"{RUN}/chrome/e1/{n}" for n in range(3)]
    first, second, last = source.steps
    assert first.tags == {
        "domain": "chrome",
        "group": "Daily",
        "action_space": "pyautogui",
        "observation_type": "screenshot",
        "model": "agent",
        "outcome": "success",
        "alignment": "estimated",
    }
    assert first.screen == SIZE
    did = [step.action or pytest.fail(step.sample_id) for step in source.steps]
    assert [action.label for action in did] == ["TAP", "INPUT", "TASK_COMPLETE"]
    assert [action.words for action in did[:2]] == [
        "pyautogui.click(96, 54)", "pyautogui.write('a;b')",
    ]  # fmt: skip
    assert (did[0].start, did[1].text) == ((Point(96, 54, "px"),), "a;b")
    assert last.history == (first.action, second.action)
    assert codes(source) == ["instruction-missing"]


def test_many_steps_are_kept_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMNIDATA_NO_CACHE")
    monkeypatch.setenv("OMNIDATA_STEPS_IN_MEMORY", "0")
    monkeypatch.setenv("OMNIDATA_CACHE", str(tmp_path / "cache"))
    tree = make_old(plain(tmp_path / "tree"))
    written: list[Entry] = []
    with reporting(written.append):
        first, second = load(tree), load(tree)
        load(tree, align="pictures")  # which may place the clips elsewhere
    assert second == first
    assert [entry.steps for entry in written] == [3, 3]


def test_a_screenshot_is_of_after_the_action_and_so_of_before_the_next(tmp_path: Path) -> None:
    first, second, third = load(plain(tmp_path)).steps
    assert name(first.media["screenshot_after"]) == name(second.media["screenshot"])
    assert name(second.media["screenshot_after"]) == name(third.media["screenshot"])
    shown = first.media["screenshot"]
    assert shown and shown.cell == VideoSegment(f"{RUN}/chrome/e1/recording.mp4", 0, 0)
    pixels = media.image(shown).pixels
    assert pixels.shape == (SIZE[1], SIZE[0], 3)
    assert abs(int(pixels[10, 10, 0]) - 40) < 8, "the first frame of the recording: no change yet"


def test_without_a_recording_the_first_screenshot_is_missing_with_a_reason(tmp_path: Path) -> None:
    rollout(tmp_path, line(**TASKED), line(2, **TASKED))
    source = load(tmp_path)
    assert source.steps[0].media["screenshot"] is None
    assert source.steps[1].media["screenshot"] is not None
    (found,) = source.findings
    assert (found.code, found.severity) == ("observation-missing", "warning")
    assert "no recording can be read" in found.what


@pytest.mark.parametrize("content", [b"", b"no film", picture(1)])
def test_a_broken_recording_is_a_finding_and_the_steps_stay(tmp_path: Path, content: bytes) -> None:
    rollout(tmp_path, line(**TASKED), film=content)
    source = load(tmp_path)
    assert codes(source) == ["recording-broken", "observation-missing"]
    assert {found.sample_ids for found in source.findings} == {(source.steps[0].sample_id,)}
    assert source.steps[0].media["video"] is None


def test_a_fork_that_keeps_the_screen_before_the_action_is_taken_at_its_word(
    tmp_path: Path,
) -> None:
    rows = [
        line(n, **TASKED, screenshot_file=None, screenshot_file_before_exec=f"before_{n}.png")
        for n in (1, 2)
    ]
    folder = rollout(tmp_path, *rows)
    for number in (1, 2):
        (folder / f"before_{number}.png").write_bytes(picture(number))
    source = load(tmp_path)
    assert [name(step.media["screenshot"]) for step in source.steps] == [
        "before_1.png", "before_2.png",
    ]  # fmt: skip
    assert [step.media["screenshot_after"] for step in source.steps] == [None, None]
    assert codes(source) == []


def test_a_fork_that_keeps_the_first_screen_is_believed(tmp_path: Path) -> None:
    reset = line(0, "reset", screenshot_file="step_reset.png", **TASKED)
    folder = rollout(tmp_path / "a", reset, line(1, **TASKED))
    source = load(tmp_path / "a")
    assert [step.sample_id for step in source.steps] == [f"{RUN}/chrome/e1/0"]
    assert name(source.steps[0].media["screenshot"]) == "step_reset.png"
    assert dump(source.steps) == {f"{RUN}/chrome/e1": lines_of(folder)}
    folder = rollout(tmp_path / "b", line(1))
    (folder / "step_0.png").write_bytes(picture(0))
    (folder / "instruction.txt").write_text("Open the menu\n")
    source = load(tmp_path / "b")
    assert name(source.steps[0].media["screenshot"]) == "step_0.png"
    assert (source.steps[0].instruction, codes(source)) == ("Open the menu", [])


RESPONSES: dict[str, dict[str, Any]] = {
    "absent": {},
    "string": {"response": "I click.\n```python\npyautogui.click(96, 54)\n```"},
    "object": {"response": {"provider": "x", "raw_response": [{"type": "text"}], "actions": []}},
    "microseconds": {"action_timestamp": stamp(10, micro=True)},
    "phase": {"phase": "execute", "response": None, "info": None},
    "no number": {"reward": float("nan")},
}


@pytest.mark.parametrize("dialect", RESPONSES)
def test_every_dialect_of_a_line_comes_back_as_it_was(tmp_path: Path, dialect: str) -> None:
    rows = [{**line(n, **TASKED), **RESPONSES[dialect]} for n in (1, 2)]
    folder = rollout(tmp_path, *rows, film=recording((11.0,), 30.0))
    source = load(tmp_path)
    assert len(source.steps) == 2
    assert codes(source) == []
    (back,) = dump(source.steps).values()
    assert dump_lines(back) == (folder / "traj.jsonl").read_bytes()


def test_turns_may_be_counted_from_0_and_leave_gaps(tmp_path: Path) -> None:
    rollout(tmp_path / "a", line(0, **TASKED), line(1, **TASKED))
    assert [step.step_index for step in load(tmp_path / "a").steps] == [0, 1]
    rollout(tmp_path / "b", line(2, **TASKED), line(4, "DONE", **TASKED))  # no code in the others
    first, second = load(tmp_path / "b").steps
    assert (first.step_index, first.history) == (1, (None,))
    assert (second.step_index, second.num_steps) == (3, 2)
    assert second.history == (None, first.action, None)
    assert len(second.history_screens) == 3


def about(source: LoadedDataset, code: str) -> list[str]:
    """The steps that findings of a code name."""
    return [own for found in source.findings if found.code == code for own in found.sample_ids]


def test_several_lines_of_one_turn_are_one_step(tmp_path: Path) -> None:
    one, other = line(1, **TASKED), line(1, "pyautogui.press('enter')", **TASKED)
    folder = rollout(tmp_path, one, other, line(2, "DONE", **TASKED))
    source = load(tmp_path)
    assert [len(step.source["rows"]) for step in source.steps] == [2, 1]
    assert source.steps[0].source["rows"] == [one, other]
    action = source.steps[0].action
    assert action is not None
    assert (action.label, action.words) == (
        "TAP", "pyautogui.click(96, 54)\npyautogui.press('enter')",
    )  # fmt: skip
    assert codes(source).count("screenshot-shared") == 1, "one second, one name: the later stays"
    assert about(source, "screenshot-shared") == [source.steps[0].sample_id]
    (back,) = dump(source.steps).values()
    assert back == lines_of(folder)


def test_a_run_that_was_appended_is_an_episode_of_its_own(tmp_path: Path) -> None:
    crash = {"Error": "Time limit exceeded in chrome/e1"}
    old = [line(1, **TASKED), line(2, **TASKED), crash]
    new = [
        line(n, action_timestamp=stamp(100 + 10 * n), screenshot_file=f"new_{n}.png", **TASKED)
        for n in (1, 2)
    ]
    folder = rollout(tmp_path, *old, *new, film=recording((11.0,), 30.0))
    source = load(tmp_path)
    assert [step.episode_id for step in source.steps] == [f"{RUN}/chrome/e1@1"] * 2 + [
        f"{RUN}/chrome/e1"
    ] * 2
    assert [step.tags["outcome"] for step in source.steps] == ["unfinished"] * 2 + ["success"] * 2
    assert [step.media["video"] is None for step in source.steps] == [True, True, False, False]
    assert sorted(codes(source)) == ["observation-missing", "run-crashed", "runs-appended"]
    assert about(source, "run-crashed") == [step.sample_id for step in source.steps[:2]]
    assert about(source, "runs-appended") == [step.sample_id for step in source.steps]
    (back,) = dump(source.steps).values()
    assert back == lines_of(folder)


def test_a_run_of_one_turn_that_was_done_before_is_another_run(tmp_path: Path) -> None:
    rollout(tmp_path, line(1, "DONE", **TASKED), line(1, "FAIL", **TASKED))
    assert [step.sample_id for step in load(tmp_path).steps] == [
        f"{RUN}/chrome/e1@1/0", f"{RUN}/chrome/e1/0",
    ]  # fmt: skip


def test_a_broken_result_is_about_the_steps_of_the_last_run(tmp_path: Path) -> None:
    runs = line(1, "DONE", **TASKED), line(1, "WAIT", **TASKED), line(2, "FAIL", **TASKED)
    folder = rollout(tmp_path, *runs, result="good")
    source = load(tmp_path)
    assert about(source, "result-broken") == [f"{RUN}/chrome/e1/{n}" for n in (0, 1)]
    assert f"{RUN}/chrome/e1/1" in report(source, {}).quarantine
    (folder / "traj.jsonl").unlink()
    assert about(load(tmp_path, needs_steps=False), "result-broken") == []


def test_a_crash_keeps_the_steps_and_leaves_no_result(tmp_path: Path) -> None:
    crash = {"Error": "Time limit exceeded"}
    rollout(tmp_path, line(1, **TASKED), crash, result=None)
    source = load(tmp_path)
    (step,) = source.steps
    assert (step.tags["outcome"], step.source["after"]) == ("unfinished", [crash])
    assert "run-crashed" in codes(source)


def test_a_screenshot_that_is_not_there_is_found(tmp_path: Path) -> None:
    folder = rollout(tmp_path, line(1, **TASKED), line(2, **TASKED), film=recording((), 30.0))
    next(folder.glob("step_1_*.png")).unlink()
    found = [finding.where for finding in load(tmp_path).findings if finding.code == "media-broken"]
    assert found == [f"{RUN}/chrome/e1/0"]


@pytest.mark.parametrize(
    "named",
    [
        f"{RUN}/vlc/e1/traj.jsonl", f"{RUN}/vlc/e1", f"{RUN}/vlc", RUN, "pyautogui/screenshot",
        "pyautogui", ".",
    ],
)  # fmt: skip
def test_the_tree_may_be_named_at_any_level(tmp_path: Path, named: str) -> None:
    rollout(tmp_path, line(**TASKED), place=f"{RUN}/vlc/e1")
    step = load(tmp_path / named, check_media=False).steps[0]
    assert (step.tags["domain"], step.source["example_id"]) == ("vlc", "e1")
    assert (step.tags["model"], step.tags["action_space"]) == ("agent", "pyautogui")
    assert recognise(tmp_path / named) == ["osworld"]


def test_folders_for_each_instruction_are_rollouts_of_one_example(tmp_path: Path) -> None:
    for number in (0, 1):
        rollout(tmp_path, line(**TASKED), place=f"{RUN}/gimp/e1/instruction_{number}")
    steps = load(tmp_path).steps
    assert [step.source["instruction_id"] for step in steps] == ["instruction_0", "instruction_1"]
    assert {step.source["example_id"] for step in steps} == {"e1"}
    assert {step.tags["domain"] for step in steps} == {"gimp"}


def test_a_bare_tree_is_described_by_its_settings(tmp_path: Path) -> None:
    rollout(tmp_path, line(**TASKED), place="my_app/e1")
    said = {"action_space": "computer_13", "observation_type": "som", "model": "m", "x": 1}
    (tmp_path / "args.json").write_text(json.dumps(said))
    tags = load(tmp_path).steps[0].tags
    assert tags == {
        "domain": "my_app", "action_space": "computer_13", "observation_type": "som", "model": "m",
        "outcome": "success", "alignment": "none",
    }  # fmt: skip


def test_onboard_hidden_folders_and_links_within_are_passed_over(tmp_path: Path) -> None:
    rollout(tmp_path, line(**TASKED))
    rollout(tmp_path, line(**TASKED), place="/".join("abcdefghij") + "/os/e1")
    rollout(tmp_path, line(), place=f"{RUN}/onboard/os/e2")
    rollout(tmp_path, line(), place=f"{RUN}/.cache/os/e2")
    (tmp_path / RUN / "os").symlink_to("chrome")
    (tmp_path / RUN / "chrome" / "self").symlink_to("self")
    source = load(tmp_path)
    assert len(source.steps) == 2
    assert "link-skipped" in codes(source)


def test_instructions_come_from_the_examples_of_the_release(tmp_path: Path) -> None:
    rollout(tmp_path / "tree", line())
    path = tmp_path / "examples" / "chrome" / "e1.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"id": "e1", "instruction": "Clear the cookies"}))
    held = tmp_path / "tree" / "evaluation_examples"
    for examples in (tmp_path / "examples", None):
        source = load(tmp_path / "tree", examples=examples)
        assert source.steps[0].instruction == "Clear the cookies"
        assert "instruction-missing" not in codes(source)
        held.mkdir(exist_ok=True)
        shutil.copytree(tmp_path / "examples", held / "examples", dirs_exist_ok=True)


@pytest.mark.parametrize("bad", ["../../../out.png", "/etc/passwd", "http://x/y.png", "a\0b.png"])
def test_no_screenshot_is_read_from_outside(tmp_path: Path, bad: str) -> None:
    (tmp_path / "out.png").write_bytes(picture(1))
    rollout(
        tmp_path / "tree", line(1, screenshot_file=bad, **TASKED), line(2, **TASKED), pictures=False
    )
    source = load(tmp_path / "tree")
    ref = source.steps[1].media["screenshot"]
    assert ref is not None
    with pytest.raises(MediaError):
        media.image(ref)
    unsafe = [found for found in source.findings if found.code == "path-unsafe"]
    own = [step.sample_id for step in source.steps]
    assert [list(found.sample_ids) for found in unsafe] == [own], "after the first, before the next"


@pytest.mark.parametrize("file", ["traj.jsonl", "result.txt", "recording.mp4", "shot.png"])
def test_no_file_is_read_through_a_link_to_the_outside(tmp_path: Path, file: str) -> None:
    folder = rollout(tmp_path / "tree", line(1, screenshot_file="shot.png", **TASKED), result=None)
    target = tmp_path / file
    content = {
        "traj.jsonl": (folder / "traj.jsonl").read_bytes(),
        "result.txt": b"1.0",
        "recording.mp4": recording((), 3.0),
        "shot.png": picture(1),
    }
    target.write_bytes(content[file])
    (folder / file).unlink(missing_ok=True)
    (folder / file).symlink_to(target)
    source = load(tmp_path / "tree", needs_steps=False)
    if file == "traj.jsonl":
        assert codes(source) == ["trajectory-unreadable"]
        return
    found = {"result.txt": "result-broken", "recording.mp4": "recording-broken"}
    assert found.get(file, "media-broken") in codes(source)
    assert source.steps[0].tags["outcome"] == "unfinished"


def test_broken_lines_are_found_and_the_others_kept(tmp_path: Path) -> None:
    folder = rollout(tmp_path, line(1, **TASKED), film=recording((), 30.0))
    with (folder / "traj.jsonl").open("a") as file:
        file.write("{not json\n[1]\n\n" + "[" * 100_000 + "\n" + '"' + "x" * 1000 + '"\n')
        file.write(json.dumps(line(2, "DONE", **TASKED)) + "\n")
    source = load(tmp_path, check_media=False)
    assert (len(source.steps), source.skipped) == (2, 4)
    assert codes(source) == ["json-invalid"] * 4


def test_a_number_that_no_run_has_is_not_believed(tmp_path: Path) -> None:
    odd = [{**line(1, **TASKED), "step_num": n} for n in (10**12, None, True, "7", -3, 2.5)]
    write_lines(tmp_path / "a" / "os" / "e1", [line(1, **TASKED), *odd])
    source = load(tmp_path / "a", check_media=False)
    assert [step.step_index for step in source.steps] == list(range(7))
    assert codes(source).count("step-number") == 6
    assert about(source, "step-number") == [step.sample_id for step in source.steps[1:]]
    # Every step has the history of all turns before it, also of those that are not there.
    rollout(tmp_path / "b", *(line(1 + 1000 * turn) for turn in range(40)), pictures=False)
    source = load(tmp_path / "b")
    assert [step.step_index for step in source.steps] == [0, *range(1000, 1039)]
    assert codes(source).count("step-number") == 38


def test_an_endless_run_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not FULL:
        monkeypatch.setattr("omnidata.tasks.osworld.turns.MOST_TURNS", 20)
    most = 2000 if FULL else 20
    write_lines(tmp_path / "os" / "e1", [line(n, "WAIT") for n in range(1, most + 3)])
    source = load(tmp_path, check_media=False)
    assert len(source.steps) == most
    assert codes(source).count("turns-many") == 2


def test_times_that_go_back_cut_no_clips(tmp_path: Path) -> None:
    rows = [line(1, **TASKED), line(2, action_timestamp=stamp(1), **TASKED)]
    rollout(tmp_path, *rows, film=recording((), 30.0))
    source = load(tmp_path)
    assert codes(source) == ["times-unusable"]
    assert source.steps[0].media["video"] is None
    assert source.steps[0].media["screenshot"] is not None, "the first frame needs no clock"
    assert source.steps[0].tags["alignment"] == "none"


def test_results_alone_are_no_steps(tmp_path: Path) -> None:
    folder = tmp_path / "os" / "e1"
    folder.mkdir(parents=True)
    (folder / "result.txt").write_text("1.0")
    with pytest.raises(DataError, match="no turn of an agent"):
        load(tmp_path)
    assert load(tmp_path, needs_steps=False).steps == []
    assert recognise(tmp_path) == ["osworld"]
    (folder / "traj.jsonl").write_text("{broken\n")
    with pytest.raises(DataError, match=r"no turn.*traj.jsonl:1: the line is not a JSON object"):
        load(tmp_path)


@pytest.mark.parametrize("place", ["nothing", "empty"])
def test_what_is_no_tree_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError) as caught:
        load(tmp_path / place)
    assert "traj.jsonl" in caught.value.expected


def test_the_fingerprint_changes_with_lines_and_results_and_not_with_the_place(
    tmp_path: Path,
) -> None:
    one, other = plain(tmp_path / "a"), plain(tmp_path / "b")
    before = fingerprint(one)
    assert before == fingerprint(other) == load(one).fingerprint
    folder = other / RUN / "chrome" / "e1"
    (folder / "result.txt").write_text("0.0")
    after = fingerprint(other)
    (folder / "instruction.txt").write_text("Open the menu")
    assert len({before, after, fingerprint(other)}) == 3


def test_lines_before_a_first_turn_are_kept_with_the_next_one(tmp_path: Path) -> None:
    reset = {"step_num": 0, "action": "reset", "screenshot_file": "reset.png"}
    folder = rollout(tmp_path, {"Error": "no machine"}, reset, {"Error": "again"}, line(1))
    (step,) = load(tmp_path).steps
    assert dump([step]) == {f"{RUN}/chrome/e1": lines_of(folder)}
    assert step.sample_id == f"{RUN}/chrome/e1/0"
    assert name(step.media["screenshot"]) == "reset.png"


def test_lines_of_a_last_go_without_a_turn_are_kept_with_the_turn_before(tmp_path: Path) -> None:
    folder = rollout(tmp_path, line(1), {"step_num": 0, "action": "reset"}, {"Error": "gone"})
    source = load(tmp_path)
    assert list(dump(source.steps).values()) == [lines_of(folder)]
    # The result is of the last go, which has no step.
    assert [step.episode_id for step in source.steps] == [f"{RUN}/chrome/e1@1"]
    assert source.steps[0].tags["outcome"] == "unfinished"


@pytest.mark.parametrize("levels", [150, 500, 980])
def test_an_action_of_many_levels_is_no_trouble(tmp_path: Path, levels: int) -> None:
    deep = "[" * levels + "]" * levels
    folder = rollout(tmp_path, line(1), line(2))
    text = (folder / "traj.jsonl").read_text().replace('"pyautogui.click(96, 54)"', deep, 1)
    (folder / "traj.jsonl").write_text(text)
    source = load(tmp_path)
    assert ("json-invalid" in codes(source)) is (levels > 200)

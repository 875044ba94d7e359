"""The options that every task has: what they change of a prompt, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from omnidata.errors import DataError, UsageError
from omnidata.tasks import get_task
from omnidata.types import Conversation, Step
from tests.data.tiny import wav
from tests.goldens.worlds import build
from tests.loaders import agentstudio
from tests.loaders.agentstudio import ground
from tests.plugin import data as odyssey
from tests.tasks.words import told
from tests.trees import row, write_rows

SHOTS = ("history_screenshot_1", "history_screenshot_2")


def tree(folder: Path, *changes: dict[str, object]) -> Path:
    """Three steps of one OmniGUI episode, and one of another."""
    rows = [row("T1", n, **each) for n, each in enumerate(changes or ({}, {}, {}))]
    return write_rows(folder / "steps.json", [*rows, row("T2", 0)])


def steps(task: str, data: Path, **options: str) -> list[Step]:
    return list(get_task(task, options).load(data, check_media=False).steps)


def lines(told: Conversation) -> list[str]:
    return [line for m in told for part in m.parts for line in part.text.splitlines()]


@pytest.mark.parametrize(
    "world", ["aitz", "androidcontrol", "osworld", "agentnet", "omnibench", "omnigui", "odyssey"]
)
def test_only_the_last_actions_are_told(
    world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = {"aitz": "aitw"}.get(world, world)
    if world == "odyssey":
        odyssey.install(tmp_path / "site", monkeypatch)
        data = odyssey.write(tmp_path / "data", episodes=1)
    else:
        data = tree(tmp_path) if world == "omnigui" else build(world, tmp_path / "data")
    step = max(steps(name, data), key=lambda step: len(step.history))
    assert len(step.history) > 1

    def told(**options: str) -> list[str]:
        return lines(get_task(name, options).conversation(step))

    assert told(history_window="0") == told(history="none")
    whole, last = told(history_window="99"), told(history_window="1")
    nothing = told(history_window="0")
    latest = [line for line in whole if line not in nothing][-1]
    assert any(line.endswith(latest) for line in last)
    assert len(nothing) <= len(last) < len(whole)
    if world != "osworld":  # which tells of the last three
        assert whole == told()


def test_predictions_are_forgotten_too(tmp_path: Path) -> None:
    step = steps("omnigui", tree(tmp_path))[2]
    task = get_task("omnigui", {"history": "predicted", "history_window": "1"})
    (told,) = [
        line for line in lines(task.conversation(step, step.history)) if line.startswith("Step 1:")
    ]
    assert told in lines(task.conversation(step, [None, step.history[1]]))
    assert not [line for line in lines(task.conversation(step, step.history)) if "Step 0:" in line]


def test_earlier_screenshots_stand_before_the_current_one(tmp_path: Path) -> None:
    data = tree(tmp_path)
    task = get_task("omnigui", {"history_screenshots": "2"})
    source = task.load(data, check_media=False)
    assert source.roles.keys() == {"screenshot", "video", "audio", *SHOTS}
    parts = [task.conversation(step)[1].parts for step in source.steps]
    shown = [[p.media.path if p.media else p.text for p in each][:-1] for each in parts]
    own = [[f"T1/{n}.mp4", f"T1/{n}.wav", f"T1/{n}.png"] for n in (1, 2, 3)]
    first, second = ["[Screenshot of step 0]:", "T1/1.png"], ["[Screenshot of step 1]:", "T1/2.png"]
    assert shown[:3] == [own[0], [*first, *own[1]], [*first, *second, *own[2]]]
    assert shown[3] == ["T2/1.mp4", "T2/1.wav", "T2/1.png"]  # another episode's are not its own
    none = get_task("omnigui", {"history_screenshots": "0"})
    both = [get_task("omnigui", {"history_screenshot": "off"}), none]
    plain, bare = (task.conversation(task.load(data, check_media=False).steps[2]) for task in both)
    assert plain == bare


def test_clips_and_sounds_are_shown_up_to_a_share_and_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "voice").mkdir()
    from omnidata.loaders.instructions import voice_file

    data = tree(tmp_path)
    step = steps("omnigui", data)[2]
    (tmp_path / "voice" / voice_file(step.instruction)).write_bytes(wav(0))
    options = {"voice": str(tmp_path / "voice"), "media_until": "0.25"}
    told = get_task("omnigui", options).conversation(step)
    shares = {part.role: part.media.until for m in told for part in m.parts if part.media}
    assert shares == {
        "history_screenshot": 1, "screenshot": 1, "video": 0.25, "audio": 0.25, "voice": 1
    }  # fmt: skip


def test_the_instruction_is_told_in_the_language_that_is_asked_for(tmp_path: Path) -> None:
    data = tree(tmp_path, {"instruction_zh": "点分享"}, {"instruction_zh": "点分享"}, {})
    for language, said in (("zh", "点分享"), ("en", "Tap Share"), ("both", "Tap Share / 点分享")):
        task = get_task("omnigui", {"language": language})
        source = task.load(data, check_media=False)
        assert f"Goal: {said}" in lines(task.conversation(source.steps[0]))
        if language != "en":
            with pytest.raises(DataError, match="no instruction in the requested language"):
                task.conversation(source.steps[2])
    own = get_task("omnigui", {"language": "zh"})
    assert own.load(data, check_media=False).fingerprint == (
        get_task("omnigui").load(data, check_media=False).fingerprint
    )


def test_a_default_is_as_good_as_not_given_and_everything_else_has_a_hash_of_its_own() -> None:
    plain = get_task("omnigui")
    own = {"language": "own", "history_window": "own", "history_screenshots": "own"}
    same = get_task("omnigui", {"media_until": "1.0", **own})
    assert (same.options, same.prompt_hash) == (plain.options, plain.prompt_hash)
    given = [{"media_until": "0.5"}, {"history_window": "2"}, {"history_screenshots": "2"}]
    tasks = [get_task("omnigui", options) for options in [*given, {"language": "en"}]]
    assert len({task.prompt_hash for task in (plain, *tasks)}) == 5
    assert dict(get_task("omnigui", {"media_until": "0.50"}).options)["media_until"] == "0.5"


@pytest.mark.parametrize(
    "wrong", ["media_until=0", "media_until=1.5", "media_until=nan", "media_until=half",
              "history_window=-1", "history_window=²", "history_screenshots=many",
              "history_screenshots=1000", "language=fr"],
)  # fmt: skip
def test_a_value_that_means_nothing_is_refused(wrong: str) -> None:
    name, _, value = wrong.partition("=")
    with pytest.raises(UsageError, match="has no value") as caught:
        get_task("omnigui", {name: value})
    assert caught.value.where == f"-T {wrong}"


@pytest.mark.parametrize(
    ("option", "lacks"),
    [
        ("media_until=0.5", "no step has a clip or a sound"),
        ("history_window=2", "no prompt has earlier actions"),
        ("history_screenshots=1", "no step has the screenshot of the previous step"),
        ("language=en", "no row has an instruction in that language"),
    ],
)
def test_an_option_that_changes_nothing_of_the_data_is_refused(
    tmp_path: Path, option: str, lacks: str
) -> None:
    data = agentstudio.write(tmp_path / "rows.jsonl", ground())
    with pytest.raises(UsageError, match=lacks):
        steps("groundui", data, **dict([option.split("=")]))


def test_a_step_without_a_medium_of_time_is_asked_as_ever(tmp_path: Path) -> None:
    step = steps("omnigui", tree(tmp_path))[0]
    still = replace(step, media={"screenshot": step.media["screenshot"]})
    assert get_task("omnigui", {"media_until": "0.5"}).conversation(still) == (
        get_task("omnigui").conversation(still)
    )


OWN_PROMPT = """

    def prompt(self, step, history):
        from omnidata.types import Message, Part

        done = " ".join(action.label for action in step.history if action)
        return (Message("user", (Part("text", f"Task {step.group}: {done}"),)),)

    from omnidata.tasks.benchmark import Wordings

    class InChinese(Wordings):
        def instruction_by_language(self, step, episode_row):
            return {"zh": "点分享"}

    wordings = InChinese()
"""


@pytest.mark.parametrize(
    ("world", "given", "remedy"),
    [
        ("omnigui", "history_window=1 history=none", "or leave out history=none"),
        ("omnigui", "media_until=0.5 modalities=I", "or leave out modalities=I"),
        ("androidcontrol", "history_screenshots=2 observation=a11y", "leave out observation=a11y"),
        ("osworld", "media_until=0.5", "leave media_until out"),
        ("odyssey", "history_window=1", "leave history_window out"),
        ("odyssey", "language=zh", "leave language out"),
    ],
)
def test_an_option_that_no_prompt_shows_is_refused_before_a_model_is_asked(
    world: str, given: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if world == "odyssey":
        site = odyssey.install(tmp_path / "site", monkeypatch)
        file = site / odyssey.HOME.name
        file.write_text(file.read_text("utf-8") + OWN_PROMPT, "utf-8")
        data = odyssey.write(tmp_path / "data", episodes=1)
    else:
        data = tree(tmp_path) if world == "omnigui" else build(world, tmp_path / "data")
    options = [text for option in given.split() for text in ("-T", option)]
    asked = ("--model", "baseline:oracle", "--out", tmp_path / "run")
    said = " ".join(told("evaluate", world, data, *asked, *options, code=2).split())
    assert f"-T {given.split()[0]}: the option changes no prompt" in said
    assert remedy in said
    assert not (tmp_path / "run").exists()
    # Whoever reads old runs is not refused what they had.
    assert get_task(world, dict(one.split("=") for one in given.split())).load(data).steps


def planned(task: str, data: Path, window: int, *more: str, code: int = 0) -> str:
    """What a dry run prints."""
    options = ("-T", f"history_window={window}", "--limit", "1", "--dry-run", *more)
    asked = ("--model", "baseline:oracle", "--out", data.parent / "run")
    return told("evaluate", task, data, *asked, *options, code=code)


def test_where_the_data_alone_leave_nothing_to_cut_there_is_a_warning(tmp_path: Path) -> None:
    data = tree(tmp_path)
    for window, idle in ((1, False), (2, True), (9, True)):
        assert ("[option-idle]" in planned("omnigui", data, window)) is idle
        if idle:
            planned("omnigui", data, window, "--strict", code=2)


def test_a_window_longer_than_all_histories_may_still_tell_of_more(tmp_path: Path) -> None:
    """Where a task tells of three by itself, as OSWorld's does."""
    data = build("osworld", tmp_path / "data")
    for window, idle in ((99, False), (3, True)):
        assert ("[option-idle]" in planned("osworld", data, window)) is idle


AT_THE_END = """

    def prompt(self, step, history):
        done = history.actions(step) if step.step_index == step.num_steps - 1 else ()
        from omnidata.types import Message, Part

        return (Message("user", (Part("text", f"{step.instruction}: {sum(map(bool, done))}"),)),)
"""


def test_an_option_that_some_prompts_of_each_episode_show_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = odyssey.install(tmp_path / "site", monkeypatch) / odyssey.HOME.name
    file.write_text(file.read_text("utf-8") + AT_THE_END, "utf-8")
    data = odyssey.write(tmp_path / "data", episodes=8)
    assert "[option-idle]" not in planned("odyssey", data, 1)


def test_exports_and_suites_refuse_it_too(tmp_path: Path) -> None:
    data, said = tree(tmp_path), "-T history_window=1: the option changes no prompt"
    given = ("-T", "history=none", "-T", "history_window=1")
    out = ("--format", "trl", tmp_path / "out")
    assert said in told("export", "omnigui", data, *out, *given, code=2)
    options = 'options = {history = "none", history_window = [1, "own"]}'
    (tmp_path / "suite.toml").write_text(
        f'out = "runs"\n[[tasks]]\ntask = "omnigui"\ndata = "{data.name}"\n{options}\n'
        '[[models]]\nmodel = "baseline:oracle"\n'
    )
    assert said in told("suite", tmp_path / "suite.toml", code=1)
    assert [run.name for run in (tmp_path / "runs").iterdir() if "own" in run.name]
    assert len([*(tmp_path / "runs").iterdir()]) == 1

"""The unified prompt is the benchmark's, byte for byte, and so are its ablations."""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from omnidata.errors import DataError, UsageError
from omnidata.loaders.instructions import voice_file
from omnidata.tasks import get_task
from omnidata.tasks.omnigui.load import load
from omnidata.types import Conversation, Part, Step
from tests.data.tiny import wav
from tests.trees import NO_SHARED, SHARED, read_lines, row, write_rows

CASES = SHARED / "cases" / "omnigui_messages_sample.jsonl"
HASHES = {
    ("IAV", ""): "c5f675efeeeaf061520ce293b75d479bb2ee4d356e44afcfc2840dea5e78d95b",
    ("IV", ""): "8577985e6a98dd62af7686247139b250efa57bd7ac165e82f5adc21fab3ea2fb",
    ("IA", ""): "8533f29a8087c96f9a02b97022e2896ff9a7a8cfb1059262942ff59cbe25d4b5",
    ("I", ""): "277c0d3bd74af77acac3df5176213bcb78c8182e0ad7086a1a0071db44ce5ef8",
    ("IAV", "release"): "23d884dc7fd0efd05e3a5d10f174a3d2b3fef5bc4cf460c6031f714f5f59cb53",
}
VARIANTS = {"v2": "IAV", "no_audio": "IV", "no_video": "IA", "no_av": "I", "tts": "IAV"}


def one_step(tmp_path: Path, **changes: Any) -> Step:
    return load(write_rows(tmp_path / "steps.json", [row(app="ted", **changes)])).steps[0]


def system_prompt(folder: Path, modalities: str, voice_form: str = "") -> str:
    options = {"modalities": modalities}
    step = one_step(folder)
    if voice_form:
        options |= {"voice": str(folder), "voice_form": voice_form}
        (folder / voice_file(step.instruction)).write_bytes(wav(0))
    return get_task("omnigui", options).conversation(step)[0].parts[0].text


def texts(conversation: Conversation) -> list[str]:
    return [part.text or part.role for part in conversation[1].parts]


@pytest.mark.parametrize(("variant", "expected"), HASHES.items())
def test_the_five_system_prompts_are_the_released_bytes(
    tmp_path: Path, variant: tuple[str, str], expected: str
) -> None:
    assert hashlib.sha256(system_prompt(tmp_path, *variant).encode()).hexdigest() == expected


def test_the_papers_voice_prompt_is_the_directive_before_the_normal_first_sentence(
    tmp_path: Path,
) -> None:
    directive, _, rest = system_prompt(tmp_path, "IAV", "paper").partition("\n")
    assert directive == "Listen to the voice instruction audio for the task description."
    assert rest == system_prompt(tmp_path, "IAV")


def _released(part: Part) -> dict[str, Any]:
    """A part as the released evaluator writes it down."""
    if part.kind == "text":
        return {"type": "text", "text": part.text}
    assert part.media is not None
    folder = "{TTS}" if part.role == "voice" else "data/benchmark"
    if part.media.inline is not None:
        return {"type": part.kind, "url": part.media.inline}
    url = str(PurePosixPath(folder) / part.media.path)  # an absolute path stays, as there
    return {"type": part.kind, "url": {"path": url} if part.kind == "audio" else url}


@pytest.mark.skipif(not CASES.is_file(), reason=NO_SHARED)
def test_the_messages_of_the_release_are_reproduced(tmp_path: Path) -> None:
    cases = read_lines(CASES)
    for number, case in enumerate(cases):
        voice = tmp_path / f"voice{number}"
        voice.mkdir()
        expected = case["user_content"]
        for part in expected:
            name = part["url"].get("path", "") if part["type"] == "audio" else ""
            if name.startswith("{TTS}/"):
                (voice / name.removeprefix("{TTS}/")).write_bytes(bytes(1001))
        options = {"modalities": VARIANTS[case["variant"]], "prompt_form": "release"}
        if case["variant"] == "tts":
            options |= {"voice": str(voice), "voice_form": "release"}
        data = write_rows(tmp_path / f"{number}.json", [case["doc"]])
        (step,) = load(data, check_media=False).steps
        system, user = get_task("omnigui", options).conversation(step)
        digest = hashlib.sha256(system.parts[0].text.encode()).hexdigest()
        assert digest == case["system_sha256"], case["id"]
        assert [_released(part) for part in user.parts] == expected, case["id"]
    assert len(cases) == 100


def test_the_parts_come_in_the_papers_order(sample: Path) -> None:
    step = next(step for step in load(sample).steps if step.step_index == 2)
    conversation = get_task("omnigui").conversation(step)
    assert [message.role for message in conversation] == ["system", "user"]
    *parts, prompt = texts(conversation)
    assert parts == ["[History Screenshot]:", "history_screenshot", "video", "audio", "screenshot"]
    blocks = prompt.split("\n\n")
    assert blocks[0] == f"Goal: {step.instruction}"
    assert blocks[1] == "Step: 2"
    assert blocks[2].startswith("Action History:\nStep 0: ")
    assert blocks[2].count("\n") == 2
    assert blocks[3] == "Analyze the current screenshot and output the next action as JSON."


@pytest.mark.parametrize(
    ("modalities", "left"),
    [("IV", ["video", "screenshot"]), ("IA", ["audio", "screenshot"]), ("I", ["screenshot"])],
)
def test_an_ablation_leaves_out_the_medium_and_changes_one_sentence(
    sample: Path, modalities: str, left: list[str]
) -> None:
    step = load(sample).steps[0]
    full = get_task("omnigui").conversation(step)
    ablated = get_task("omnigui", {"modalities": modalities}).conversation(step)
    assert texts(ablated)[:-1] == left
    assert texts(ablated)[-1] == texts(full)[-1]
    sentences = ablated[0].parts[0].text.split(". "), full[0].parts[0].text.split(". ")
    assert sum(a != b for a, b in zip(*sentences, strict=True)) == 1


def test_the_history_is_worded_as_history_v1(tmp_path: Path) -> None:
    actions: list[dict[str, Any]] = [
        {"result_action_type": 0},
        {"result_action_type": 1, "result_touch_xy": "[360, 801]"},
        {"result_action_type": 3, "result_lift_xy": "[[0,0],[3,8]]"},
        {"result_action_type": 4},
        {"result_action_type": 7, "result_action_text": 'say "hi"'},
        {"result_action_type": -1},
        {"result_action_type": 8},
        {"result_action_type": 12},
        {"result_action_type": 8, "action_text": "goes back"},
        {"result_action_type": 10},
    ]
    rows = [row(step=index, app="ted", **action) for index, action in enumerate(actions)]
    last = load(write_rows(tmp_path / "steps.json", rows)).steps[-1]
    assert texts(get_task("omnigui").conversation(last))[-1].split("\n\n")[2].splitlines() == [
        "Action History:",
        "Step 0: TAP at [390, 511]",
        "Step 1: DOUBLE_TAP at [500, 501]",
        "Step 2: SWIPE_UP from [390, 511] to [2, 3]",
        "Step 3: SWIPE_DOWN from [390, 511]",
        'Step 4: INPUT text: "say "hi""',
        "Step 5: NONE",
        "Step 6: BACK",
        "Step 8: goes back",
    ]


def test_a_past_action_is_placed_on_the_screen_it_was_made_on(tmp_path: Path) -> None:
    corner: dict[str, Any] = {
        "image_width": 1600,
        "image_height": 720,
        "result_touch_xy": "[1600, 720]",
    }
    rows = [row(step=0, app="ted", **corner), row(step=1, app="ted")]
    step = load(write_rows(tmp_path / "steps.json", rows)).steps[1]
    assert (
        "Step 0: TAP at [1000, 1000]\n" in texts(get_task("omnigui").conversation(step))[-1] + "\n"
    )


def test_the_release_form_of_the_prompt_bridges_the_papers_tree(sample: Path) -> None:
    step = load(sample, check_media=False).steps[0]
    prompt = get_task("omnigui", {"prompt_form": "release"}).conversation(step)
    assert texts(prompt)[-1].startswith(f"Goal: {step.instruction}\n")


def test_a_voice_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    for form in ("paper", "release"):
        with pytest.raises(UsageError, match="the folder does not exist"):
            get_task("omnigui", {"voice": str(tmp_path / "none"), "voice_form": form})


def test_history_can_be_left_out(sample: Path) -> None:
    step = next(step for step in load(sample).steps if step.step_index == 2)
    options = {"history": "none", "history_screenshot": "off"}
    parts = texts(get_task("omnigui", options).conversation(step))
    assert parts[:-1] == ["video", "audio", "screenshot"]
    assert "Action History" not in parts[-1]


@pytest.mark.parametrize(
    ("form", "order", "goal"),
    [
        ("paper", ["video", "audio", "voice", "screenshot"],
         "Goal: [Please listen to the voice instruction]"),
        ("release", ["video", "audio", "screenshot", "voice"],
         "Goal: [请听语音指令 / Please listen to the voice instruction]"),
    ],
)  # fmt: skip
def test_the_voice_instruction_takes_its_place_in_both_forms(
    tmp_path: Path, form: str, order: list[str], goal: str
) -> None:
    step = one_step(tmp_path)
    name = hashlib.md5(step.instruction.encode(), usedforsecurity=False).hexdigest()
    (tmp_path / f"{name}.wav").write_bytes(bytes(1001))
    task = get_task("omnigui", {"voice": str(tmp_path), "voice_form": form})
    *parts, prompt = texts(task.conversation(step))
    assert parts == order
    assert prompt.startswith(goal + "\n\n")
    assert step.instruction not in prompt


def test_a_missing_voice_is_an_error_in_the_papers_form_and_a_fallback_in_the_releases(
    tmp_path: Path,
) -> None:
    step = one_step(tmp_path)
    with pytest.raises(DataError, match=r"ted/T1/0.*\.wav"):
        get_task("omnigui", {"voice": str(tmp_path)}).conversation(step)
    release = get_task("omnigui", {"voice": str(tmp_path), "voice_form": "release"})
    assert texts(release.conversation(step))[-1].startswith(f"Goal: {step.instruction}")


def test_the_prompt_hash_tells_voices_apart_and_not_their_folders(tmp_path: Path) -> None:
    """`test_options.py` has the other options."""

    def hashed(**options: str) -> str:
        return get_task("omnigui", options).prompt_hash

    for name in "ab":
        (tmp_path / name).mkdir()
    one, other = (str(tmp_path / name) for name in "ab")
    assert len({hashed(), hashed(voice=one), hashed(voice=one, voice_form="release")}) == 3
    assert hashed(coordinates="px") == hashed()
    assert hashed(voice=other) == hashed(voice=one)

"""Rows as each trainer's documentation has them; what it cannot hold is refused or left out."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from omnidata import media
from omnidata.actions import Action, Box
from omnidata.adapters.media_budget import Capabilities
from omnidata.adapters.render import RenderedPart, render
from omnidata.errors import UsageError
from omnidata.tasks import get_task
from omnidata.training.media_store import Sizing
from omnidata.training.rows import Options
from omnidata.types import MediaRef, Modality
from tests.conftest import Once
from tests.export.small import (
    BACK,
    CONTROLS,
    PLACEHOLDERS,
    STUDIO,
    SWIPE,
    TAP,
    answer,
    codes,
    faults,
    load,
    rows,
    studio,
    tree,
    written,
)
from tests.full import in_gate

TRAINERS: dict[str, dict[str, Any]] = {
    "trl": {"video": "frames", "drop_audio": True},
    "llamafactory": {},
    "swift": {},
    "qwen-vl": {"drop_audio": True},
}
IN_GATE = in_gate(
    ("trl", "qwen-vl", "llamafactory", "swift"), 2, "texts are searched before rows are made"
)
TAGS = {"<image>": "images", "<video>": "videos", "<audio>": "audios"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tree(tmp_path_factory.mktemp("data") / "tree", episodes=2)


def seen(row: dict[str, Any]) -> list[str]:
    """What a trainer shows its model: texts, and names of files where a placeholder stands."""
    if "prompt" in row:
        pictures = iter(row["images"])
        parts = [part for turn in row["prompt"] for part in turn["content"]]
        return [next(pictures) if p["type"] == "image" else p["text"] for p in parts]
    if "conversations" in row:
        texts = [turn["value"] for turn in row["conversations"][:-1]]
        lists = {"<image>": row.get("image", []), "<video>": row.get("video", [])}
    else:
        texts = [turn["content"] for turn in row["messages"][:-1]]
        lists = {tag: row[name] for tag, name in TAGS.items() if name in row}
    files = {tag: iter(names) for tag, names in lists.items()}
    found = [
        next(files[piece]) if piece in files else piece
        for text in texts
        for piece in re.split(f"({'|'.join(TAGS)})", text)
        if piece.strip()
    ]
    assert all(next(names, None) is None for names in files.values()), "media without placeholder"
    return found


@pytest.mark.parametrize("form", TRAINERS)
def test_a_trainer_shows_what_the_evaluation_shows(form: str, data: Path, tmp_path: Path) -> None:
    options = TRAINERS[form]
    written(data, tmp_path / "out", format=form, **options)
    deaf = options.get("drop_audio")
    task = get_task("omnigui", {"modalities": "IV"} if deaf else {})
    accepts: set[Modality] = {"image", "video"}
    if not deaf:
        accepts.add("audio")
    takes = Capabilities(
        accepts=frozenset(accepts),
        video="frames" if "video" in options else "native",
        degrade="audio" not in accepts,
    )
    steps = {step.sample_id: step for step in load(data).steps}
    found = rows(tmp_path / "out")
    assert [row["sample_id"] for row in found] == list(steps)
    for row in found:
        messages, _ = render(task.conversation(steps[row["sample_id"]]), takes)
        wanted = _joined([part for message in messages for part in message.parts])
        if form == "qwen-vl":  # it knows no system prompt
            wanted[0] += b"\n\n"
            if not wanted[1].startswith((b"\x89PNG", b"\0\0\0")):
                wanted[:2] = [wanted[0] + wanted[1]]
        shown = [
            (tmp_path / "out" / piece).read_bytes()
            if piece.startswith("media/")
            else piece.encode()
            for piece in seen(row)
        ]
        assert shown == wanted


def _joined(parts: list[RenderedPart]) -> list[bytes]:
    return [part.data if part.kind != "text" else part.text.encode() for part in parts]


@pytest.mark.parametrize("form", TRAINERS)
@pytest.mark.parametrize("task", STUDIO)
def test_agentstudios_tasks_are_exported_for_every_trainer(
    task: str, form: str, tmp_path: Path
) -> None:
    path = studio(tmp_path / "data", task)
    done = written(path, tmp_path / "out", task=task, format=form)
    assert not done.findings
    profile = next(iter(get_task(task).profiles.values()))
    for step, row in zip(load(path, task).steps, rows(tmp_path / "out"), strict=True):
        assert profile.judge(step, answer(row)).values[0] is True
        shown = [piece for piece in seen(row) if piece.startswith("media/")]
        assert len(shown) == sum(
            part.media is not None
            for turn in get_task(task).conversation(step)
            for part in turn.parts
        )


@pytest.mark.parametrize("form", ["llamafactory", "swift", "qwen-vl"])
def test_turns_alternate_for_trainers_that_want_it(form: str, tmp_path: Path) -> None:
    path = studio(tmp_path / "data", "criticbench")
    written(path, tmp_path / "out", task="criticbench", format=form)
    for row in rows(tmp_path / "out"):
        turns = row.get("messages") or row["conversations"]
        roles = [turn.get("role") or turn["from"] for turn in turns]
        assert roles in (["user", "assistant"], ["human", "gpt"])


def test_llamafactory_finds_its_files_by_dataset_info(data: Path, tmp_path: Path) -> None:
    written(data, tmp_path / "out")
    info = json.loads((tmp_path / "out" / "dataset_info.json").read_text())
    assert info == {
        "omnigui_train": {
            "file_name": "train.jsonl",
            "formatting": "sharegpt",
            "columns": {
                "audios": "audios", "images": "images", "messages": "messages", "videos": "videos",
            },
            "tags": {
                "role_tag": "role", "content_tag": "content", "user_tag": "user",
                "assistant_tag": "assistant", "system_tag": "system",
            },
        }
    }  # fmt: skip
    for row in rows(tmp_path / "out"):
        assert [turn["role"] for turn in row["messages"]] == ["system", "user", "assistant"]


@pytest.mark.parametrize(
    ("form", "options", "flags"),
    [
        ("trl", {}, ("--drop-audio", "--video frames", "-T modalities")),
        ("trl", {"drop_audio": True}, ("--video frames", "-T modalities")),
        ("trl", {"video": "frames"}, ("--drop-audio",)),
        ("qwen-vl", {}, ("--drop-audio",)),
    ],
)
def test_what_a_trainer_cannot_hold_is_an_error_that_names_the_flag(
    form: str, options: dict[str, Any], flags: tuple[str, ...], data: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=f"rows of {form} hold no") as error:
        written(data, tmp_path / "out", format=form, **options)
    assert all(flag in error.value.remedy for flag in flags)
    assert ("--drop-audio" in error.value.remedy) == ("--drop-audio" in flags)
    assert list(tmp_path.iterdir()) == []


def test_media_are_left_out_with_an_option_where_the_task_has_it() -> None:
    for task, said in (("agentnet", "clips"), ("omnigui", "clips; or drop them with -T mod")):
        with pytest.raises(UsageError) as error:
            Options(format="trl").check_kinds(get_task(task), ["image", "video"])
        assert error.value.remedy.startswith(
            f"add --video frames to give pictures in place of {said}"
        )
        assert ("modalities" in error.value.remedy) == ("modalities" in get_task(task).allowed)


def asking(folder: Path, tokens: Sequence[str]) -> Path:
    return tree(folder, episodes=len(tokens), actions=[TAP], instruct=lambda n: f"a{tokens[n]}b")


TOKENS = [
    ("media", ["<image>", *PLACEHOLDERS], "placeholder-in-text", " {} in the texts"),
    ("control", CONTROLS, "control-token-in-text", "the control token {}"),
]


@pytest.mark.parametrize("form", IN_GATE)
@pytest.mark.parametrize(("kind", "tokens", "code", "said"), TOKENS)
def test_a_token_that_some_model_takes_for_a_medium_or_an_end_is_found_in_any_format(
    form: str, kind: str, tokens: Sequence[str], code: str, said: str, once: Once, tmp_path: Path
) -> None:
    """Most tokenizers make one token of it, whoever wrote it."""
    data = once(f"export-{kind}-tokens", lambda folder: asking(folder, [*tokens, "it"]))
    done = written(data, tmp_path / "out", format=form, **TRAINERS[form])
    assert faults(done) == [code] * len(tokens)
    found = {finding.where: finding.what for finding in done.findings}
    for number, token in enumerate(tokens):
        assert said.format(token) in found[f"App/E0{number}/0"]
    assert len(rows(tmp_path / "out")) == 1


@pytest.mark.parametrize("form", TRAINERS)
@pytest.mark.parametrize(
    ("token", "code"),
    [("<|AUDIO|>", "placeholder-in-text"), ("<|im_end|>", "control-token-in-text")],
)
def test_such_a_token_in_an_answer_is_found(
    form: str, token: str, code: str, tmp_path: Path
) -> None:
    data = tree(tmp_path / "data", actions=[BACK, Action("type", text=f"a{token}b")])
    done = written(data, tmp_path / "out", format=form, **TRAINERS[form])
    assert faults(done) == [code]
    assert done.findings[0].where == "App/E00/1"


@pytest.mark.parametrize("unit", ["norm1", "real"])
@pytest.mark.parametrize("sizing", [Sizing(), Sizing(longest=100)], ids=["as it is", "small"])
def test_swifts_objects_are_the_places_that_the_answer_would_name(
    unit: Any, sizing: Sizing, tmp_path: Path
) -> None:
    """The picture that they lie on is the current screenshot, which is the last."""
    data = tree(tmp_path / "data", actions=[TAP, BACK, SWIPE, TAP])
    done = written(data, tmp_path / "out", format="swift", objects=unit, sizing=sizing)
    plain = written(data, tmp_path / "plain", format="swift")
    assert not done.findings
    assert not plain.findings
    checked = 0
    for marked, row in zip(rows(tmp_path / "out"), rows(tmp_path / "plain"), strict=True):
        text = answer(marked)
        objects = marked.get("objects", {"bbox": [], "image_id": []})
        for (x, y), number in zip(objects["bbox"], objects["image_id"], strict=True):
            path = marked["images"][number]
            assert number == len(marked["images"]) - 1
            width, height = media.image_size(MediaRef("image", tmp_path / "out", path))
            if unit == "norm1":
                width = height = 1
            # What ms-swift does for models that take parts of a thousand.
            place = [round(x / width * 1000), round(y / height * 1000)]
            text = text.replace("<bbox>", json.dumps(place, separators=(",", ":")), 1)
            checked += 1
        assert text == answer(row)
    assert checked == 4  # two taps and both ends of a swipe


def test_a_place_that_swift_would_round_away_is_left_out(tmp_path: Path) -> None:
    """Between two parts of a thousand there is room for an answer, but not for a whole number."""
    narrow = Action("tap", (Box(10.03, 20, 10.05, 44, "px"),))
    data = tree(tmp_path / "data", actions=[TAP, narrow])
    assert not codes(written(data, tmp_path / "plain", format="swift"))
    done = written(data, tmp_path / "out", format="swift", objects="norm1")
    assert [(found.code, found.where) for found in done.findings] == [
        ("target-unreachable", "App/E00/1")
    ]
    assert "[139, 200]" in done.findings[0].what


def test_groundui_has_places_too(tmp_path: Path) -> None:
    path = studio(tmp_path / "data", "groundui")
    done = written(
        path, tmp_path / "out", task="groundui", format="swift", coordinates="norm1000",
        objects="norm1",
    )  # fmt: skip
    assert codes(done) == ["unit-differs"]
    (first, _) = rows(tmp_path / "out")
    assert (answer(first), first["objects"]["bbox"]) == ("<bbox>", [[0.764, 0.128]])


def test_objects_belong_to_swift_and_to_parts_of_a_thousand(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot store coordinates apart from answers"):
        written(data, tmp_path / "out", objects="norm1")
    with pytest.raises(UsageError, match="ms-swift writes the coordinates") as caught:
        written(data, tmp_path / "out", format="swift", objects="norm1", coordinates="px")
    assert caught.value.remedy == "add -T coordinates=norm1000"
    path = studio(tmp_path / "data", "criticbench")
    with pytest.raises(UsageError, match="ms-swift writes the coordinates") as caught:
        written(path, tmp_path / "out", task="criticbench", format="swift", objects="norm1")
    assert caught.value.expected.endswith("those of criticbench have no places")


def test_no_unit_that_a_task_lacks_is_named_as_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    task: Any = get_task("screenspot")
    monkeypatch.setattr(task, "allowed", {"coordinates": ("px",)})
    monkeypatch.setattr(task.benchmark, "options", {"coordinates": "px"})
    with pytest.raises(UsageError, match="ms-swift writes the coordinates") as caught:
        Options(format="swift", objects="norm1").check(task)
    assert caught.value.expected.endswith("those of screenspot have places in px alone")
    assert caught.value.remedy == "drop --objects"

"""Rows of an export are taught as the steps that they were made of."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from omnidata import media
from omnidata.errors import DataError
from omnidata.tasks import get_task
from omnidata.training.media_store import Sizing
from omnidata.types import Conversation, Message, Part
from tests.adapters.local_models import FAMILIES, Family, checkpoint
from tests.conftest import Once
from tests.export.small import STUDIO, studio
from tests.full import in_gate
from tests.training.exporting import collator, examples, written
from tests.training.test_feeding import loader, same

pytest.importorskip("datasets")

FRAMES = {"video": "frames", "frames": "2"}
TRAINERS = ("trl", "llamafactory", "swift", "qwen-vl")
WHOLE: dict[str, tuple[dict[str, str], dict[str, Any], dict[str, str]]] = {
    "llamafactory frames": ({}, {"video": "frames", "frames": 2}, FRAMES),
    "trl": ({"modalities": "IV"}, {"video": "frames", "frames": 2}, FRAMES),
    "swift": ({}, {}, {}),
    "llamafactory": ({}, {}, {}),
    "trl pictures": ({"modalities": "I"}, {}, {}),
}
"""Formats that keep all of a prompt: options of the task, of the export, of the model."""


def content(prompt: Conversation) -> list[tuple[str, list[tuple[str, str, bytes]]]]:
    """A prompt with the bytes of its media; texts in a row are one, and have no role."""
    found: list[tuple[str, list[tuple[str, str, bytes]]]] = []
    for message in prompt:
        parts: list[tuple[str, str, bytes]] = []
        for part in message.parts:
            if part.media:
                parts.append((part.kind, part.role, media.read_bytes(part.media)))
            elif parts and parts[-1][0] == "text":
                parts.append(("text", "", parts.pop()[2] + part.text.encode()))
            else:
                parts.append(("text", "", part.text.encode()))
        found.append((message.role, parts))
    return found


@pytest.mark.parametrize("form", in_gate(["swift", "llamafactory"], 1, "another format"))
def test_the_prompt_comes_back_as_the_evaluation_has_it(
    data: Path, tmp_path: Path, form: str
) -> None:
    task = get_task("omnigui")
    steps = written(task, data, tmp_path / "out", form)
    found = examples(tmp_path / "out")
    assert len(found) == len(steps) == 8
    for step in steps:
        example, target = found[step.sample_id], task.target(step)
        assert content(example.conversation) == content(task.conversation(step))
        assert target and example.answer == target.text


@pytest.mark.parametrize("family", in_gate(FAMILIES, 1, "a model of each family"))
def test_every_family_is_taught_the_same_by_rows_and_steps(
    once: Once, data: Path, good: Path, family: Family
) -> None:
    from omnidata.torch import OmniCollator

    folder, task = checkpoint(once, family), get_task("omnigui")
    steps, found = task.load(data).steps[2:4], examples(good)
    rows = OmniCollator(folder)([found[step.sample_id] for step in steps])
    assert same(rows, OmniCollator(folder, task)(steps))


@pytest.mark.parametrize("case", in_gate(WHOLE, 3, "a format or modalities for others"))
def test_the_tensors_from_an_export_are_those_of_the_steps(
    once: Once, data: Path, tmp_path: Path, case: str
) -> None:
    asked, options, model = WHOLE[case]
    task = get_task("omnigui", asked)
    steps = written(task, data, tmp_path / "out", case.split()[0], **options)
    found = examples(tmp_path / "out")
    of_steps, of_rows = collator(once, task, **model), collator(once, None, **model)
    for batch in (steps[:2], steps[5:]):
        assert same(of_rows([found[step.sample_id] for step in batch]), of_steps(batch))


@pytest.mark.parametrize("form", TRAINERS)
@pytest.mark.parametrize("name", in_gate(reversed(STUDIO), 2, "another of AgentStudio's tasks"))
def test_turns_of_the_user_that_follow_each_other_are_one_but_for_trl(
    once: Once, tmp_path: Path, name: str, form: str
) -> None:
    """Trainers want turns to alternate; a line break stands where one ended."""
    task = get_task(name)
    steps = written(task, studio(tmp_path / "data", name), tmp_path / "out", form)
    found = [examples(tmp_path / "out")[step.sample_id] for step in steps]
    if form == "trl":
        assert same(collator(once)(found), collator(once, task)(steps))
        return
    for step, example in zip(steps, found, strict=True):
        parts: list[Part] = []
        for message in task.conversation(step):
            assert message.role == "user"
            parts += [Part("text", "\n")] * bool(parts) + list(message.parts)
        assert content(example.prompt) == content((Message("user", tuple(parts)),))


def test_rows_for_qwen_vl_differ_by_the_system_prompt_alone(
    once: Once, data: Path, tmp_path: Path
) -> None:
    """It stands at the head of the question, a blank line behind it: the reader knows no other."""
    from omnidata.torch import Example

    task = get_task("omnigui", {"modalities": "IV"})
    steps = written(task, data, tmp_path / "out", "qwen-vl")
    found = examples(tmp_path / "out")
    collate, merged = collator(once), []
    for step in steps[:3]:
        system, user = task.conversation(step)
        head = Part("text", f"{system.parts[0].text}\n\n")
        prompt = (Message("user", (head, *user.parts)),)
        assert content(found[step.sample_id].prompt) == content(prompt)
        target = task.target(step)
        assert target
        merged.append(Example(step.sample_id, prompt, target.text))
    rows = collate([found[step.sample_id] for step in steps[:3]])
    # Qwen's templates write each part as it is, so that one text is as good as two.
    assert same(rows, collate(merged))
    assert not same(rows, collator(once, task)(steps[:3]))


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_interleaved_sound_knows_its_clip(once: Once, data: Path, tmp_path: Path) -> None:
    task = get_task("omnigui")
    steps = written(task, data, tmp_path / "out", "llamafactory")
    found = examples(tmp_path / "out")
    whole = {"audio_in_video": "true"}
    taught = collator(once, None, **whole)([found[steps[0].sample_id]])
    assert taught["use_audio_in_video"] is True
    assert same(taught, collator(once, task, **whole)(steps[:1]))


def test_answers_in_pixels_belong_to_the_pictures_of_the_export(
    once: Once, data: Path, tmp_path: Path
) -> None:
    task = get_task("omnigui", {"coordinates": "px"})
    steps = written(task, data, tmp_path / "out", "swift", sizing=Sizing(longest=80))
    found = [examples(tmp_path / "out")[step.sample_id] for step in steps]
    of_steps = collator(once, task, image_size="80")(steps[:2])
    assert same(collator(once)(found[:2]), of_steps)
    with pytest.raises(DataError, match="is shown with 18 x 40 pixels, the answer is for 36 x 80"):
        collator(once, image_size="40")(found[:2])


def test_workers_read_an_export(once: Once, good: Path) -> None:
    from omnidata.torch import check, exported_table

    table, collate = exported_table(good).select(range(4)), collator(once)
    assert check(table, collate) == max(
        batch["input_ids"].shape[1] for batch in loader(table, collate, 0)
    )
    pairs = zip(loader(table, collate, 0), loader(table, collate, 2, "fork"), strict=True)
    assert all(same(one, other) for one, other in pairs)
    spawned = pickle.loads(pickle.dumps(table))
    assert [row["example"] for row in spawned] == [row["example"] for row in table]

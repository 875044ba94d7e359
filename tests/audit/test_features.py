"""Features of rendered prompts, and the groups within which nothing is learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from omnidata.analysis.audit_learning import MAX_BINS, features, groups, shuffled
from omnidata.tasks import get_task
from omnidata.types import Conversation, MediaRef, Message, Part
from tests.loaders.agentstudio import act, trajectory
from tests.trees import write_lines

IMAGE = Part("image", media=MediaRef("image", Path("nowhere"), "none.png"))


def prompt(*parts: Part | str) -> Conversation:
    made = (Part("text", part) if isinstance(part, str) else part for part in parts)
    return (Message("user", tuple(made)),)


def column(prompts: list[Conversation], name: str) -> list[str]:
    """The level of each prompt."""
    found = features(prompts)
    number = found.names.index(name)
    first = found.starts[number]
    return [found.levels[first + code] for code in found.codes[:, number]]


def grouped(tmp_path: Path, rows: list[dict[str, Any]]) -> list[int]:
    """The group of each row of CriticBench."""
    task = get_task("criticbench")
    steps = task.load(write_lines(tmp_path / "a.jsonl", rows), check_media=False).steps
    found: list[int] = groups(steps, [task.prompt(step) for step in steps]).tolist()
    return found


def test_parts_are_counted_by_kind_without_opening_them() -> None:
    prompts = [prompt(IMAGE, "a")] * 5 + [prompt(IMAGE, IMAGE, "a")] * 5
    assert column(prompts, "number of parts") == ["2"] * 5 + ["3"] * 5


def test_the_kind_of_a_part_is_counted_from_the_end() -> None:
    prompts = [prompt("a", IMAGE, "q")] * 5 + [prompt(IMAGE, "a", "q")] * 5
    assert column(prompts, "kind of part 2 from the end") == ["image"] * 5 + ["text"] * 5


def test_a_word_of_an_action_space_is_a_feature() -> None:
    lists = ("click, type", "type, click", "click, hold", "hold, click")
    prompts = [prompt(f"Actions: {words}") for words in lists] * 5
    assert column(prompts, 'has "hold"') == ["0", "0", "1", "1"] * 5


def test_texts_of_few_prompts_are_no_features() -> None:
    prompts = [prompt(f"{number:03}", "q") for number in range(50)]
    assert features(prompts).names == []


def test_numbers_have_few_bins_and_every_prompt_one() -> None:
    prompts = [prompt("x" * number) for number in range(1, 200)]
    found = features(prompts)
    assert found.matrix.shape == (199, MAX_BINS)
    assert (found.matrix.sum(axis=1) == 1).all()
    assert min(found.matrix.sum(axis=0)) > 20


def test_features_that_part_prompts_alike_are_one() -> None:
    prompts = [prompt("a")] * 5 + [prompt("a", "b")] * 5
    assert features(prompts).names == ["number of parts"]


def test_rows_of_one_recording_or_instruction_are_a_group(tmp_path: Path) -> None:
    rows = [
        trajectory(act(number), instruction=text, annotation_id=f"e{number}")
        for number, text in enumerate(["Buy it", "buy  IT", *map(str, range(10))])
    ]
    again = trajectory(act(5), instruction="seen before", annotation_id="e99")
    assert grouped(tmp_path, [*rows, again]) == [0, 0, *range(1, 11), 4]


def test_an_instruction_of_all_rows_is_no_group(tmp_path: Path) -> None:
    rows = [trajectory(act(number), annotation_id=f"e{number}") for number in range(10)]
    assert grouped(tmp_path, rows) == [*range(10)]


def test_rows_with_the_same_prompt_are_a_group_and_those_with_other_images_are_not(
    tmp_path: Path,
) -> None:
    rows = [trajectory(act(number % 10), annotation_id=f"e{number}") for number in range(20)]
    for each in rows:
        each["actions"][0]["metadata"] = {"repr": "the same"}
    assert grouped(tmp_path, rows) == [*range(10)] * 2


def test_every_group_gets_the_features_of_one_group_in_a_shuffle() -> None:
    group = np.repeat(np.arange(6), [1, 40, 2, 7, 1, 3])
    for seed in range(20):
        rows = shuffled(group, np.random.default_rng(seed))
        givers = [set(group[rows[group == number]].tolist()) for number in range(6)]
        assert sorted(giver.pop() for giver in givers if len(giver) == 1) == [*range(6)]


def test_a_shuffle_deals_every_row_once_and_keeps_groups_of_one_size_together() -> None:
    group = np.repeat(np.arange(30), 4)
    rows = shuffled(group, np.random.default_rng(0))
    assert sorted(rows.tolist()) == [*range(120)]
    givers = [set(group[rows[group == number]].tolist()) for number in range(30)]
    assert all(len(giver) == 1 for giver in givers)
    assert [giver.pop() for giver in givers] != [*range(30)]

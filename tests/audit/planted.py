"""Trajectories whose prompts give their labels away, more or less."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from omnidata.analysis.audit import Report, audit
from omnidata.tasks import get_task
from tests.loaders.agentstudio import act, trajectory
from tests.trees import write_lines

Cue = Literal["images", "last part", "length", "word", "none"]
CUES: Sequence[Cue] = ("images", "last part", "length", "word")
WORDS = [
    *("open", "find", "the", "a", "cheap", "house", "train", "near"),
    *("shop", "and", "sort", "list", "by", "price", "then", "show", "it"),
]
WORD = "class: 99"
"""The cue "word", which looks like the text that a tree is printed as."""
SPACES = (["CLICK", "SELECT", "TYPE"], ["click", "scroll", "press back"])


def rows(cue: Cue, strength: float, *, count: int, seed: int) -> list[dict[str, Any]]:
    """Rows of CriticBench, half of them successes.

    Args:
        cue: what differs between the two labels.
        strength: the share of rows in which the cue is that of the row's label; 0.5 says nothing.
        count: how many rows.
        seed: of everything that is drawn.
    """
    draw = random.Random(seed)
    labels = [number % 2 == 0 for number in range(count)]
    draw.shuffle(labels)
    found = [_row(draw, cue, label == (draw.random() < strength), label) for label in labels]
    for number, row in enumerate(found):  # every row is a recording of its own
        for action in row["actions"]:
            for key in ("obs_before", "obs_after"):
                action[key] = action[key] and action[key].replace("m2w/", f"m2w/row{number}x")
    return found


def _row(draw: random.Random, cue: Cue, shown: bool, label: bool) -> dict[str, Any]:
    """A row with the cue of the label `shown`; whatever is no cue is chance."""
    few = shown if cue == "images" else draw.random() < 0.5
    ends = shown if cue == "last part" else draw.random() < 0.5
    short = shown if cue == "length" else draw.random() < 0.5
    actions = [act(number) for number in range(draw.choice((1, 2) if few else (3, 4)))]
    if ends:
        actions[-1]["obs_after"] = None
    words = draw.choices(WORDS, k=draw.randint(4, 9) if short else draw.randint(10, 16))
    space = list(draw.choice(SPACES))
    if cue == "word" and shown:
        space.append(WORD)
        draw.shuffle(space)
    operation = draw.choice(space)
    for action in actions:
        action["operation"] = operation
        action["metadata"] = {"repr": f"[link]  Thing {draw.getrandbits(20)} -> {operation}"}
    return trajectory(
        *actions,
        instruction=" ".join(words),
        annotation_id=f"e{draw.getrandbits(40)}",
        action_space=space,
        is_success=label,
    )


def shuffled(given: Sequence[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    labels = [row["is_success"] for row in given]
    random.Random(seed).shuffle(labels)
    return [{**row, "is_success": label} for row, label in zip(given, labels, strict=True)]


def audited(path: Path, given: Sequence[dict[str, Any]], **options: str) -> Report:
    task = get_task("criticbench", options)
    source = task.load(write_lines(path, given), check_media=False)
    assert len(source.steps) == len(given)
    return audit(task, source.steps, task.profiles[task.default_profile])

"""ms-swift 4.6 (custom datasets, `RowPreprocessor`, `Template`, `swift rlhf`, `swift.rewards`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnidata.training.formats.base import (
    Content,
    Log,
    Messages,
    Objects,
    PreferenceFormat,
    PromptFormat,
    Row,
    screenshot_size,
)
from omnidata.types import PLACE, Target

_REWARD = """\
from pathlib import Path

from omnidata.training.reward_files import load_reward, swift_scores
from swift.rewards import ORM, orms

REWARD = load_reward(Path(__file__).with_name("reward.json"))


class Omnidata(ORM):
    def __call__(self, completions, **kwargs):
        return swift_scores(REWARD, completions, **kwargs)


orms["omnidata"] = Omnidata
"""


class Swift(Messages):
    """Messages; the coordinates of answers may stand apart, for ms-swift to write them.

    Args:
        objects: unit of coordinates apart from the answer: "norm1" for [0, 1], "real" for pixels of
            the picture; those of the target are norm1000. None leaves them in the answer.
    """

    name = "swift"
    title = "swift (ms-swift)"
    log = Log("swift", "response", label=("labels", "label"))

    def __init__(self, objects: Objects | None = None) -> None:
        self._objects = objects

    def with_objects(self, unit: Objects) -> Swift:
        return Swift(unit)

    def row(self, content: Content) -> Row:
        row, target = super().row(content), content.target
        if self._objects and target.points:
            row["messages"][-1]["content"] = target.template
            row["objects"] = _objects(content, self._objects)
        return row

    def placeholders(self, row: Row) -> dict[str, Sequence[Any]]:
        apart = {PLACE: row["objects"]["bbox"], "<ref-object>": ()} if "objects" in row else {}
        return {**super().placeholders(row), **apart}

    def answer(self, target: Target) -> str:
        """Return the answer that ms-swift makes of one with `<bbox>`: whole parts of a thousand."""
        if not self._objects:
            return target.text
        text = target.template
        for x, y in target.points:
            text = text.replace(PLACE, f"[{round(x)}, {round(y)}]", 1)
        return text


def _objects(content: Content, unit: Objects) -> Row:
    pictures = [piece for turn in content.turns for piece in turn.parts if piece.kind == "image"]
    number = [piece.role for piece in pictures].index("screenshot")
    width, height = pictures[number].size if unit == "real" else (1, 1)
    points = content.target.points
    return {
        "bbox": [[x / 1000 * width, y / 1000 * height] for x, y in points],
        "bbox_type": unit,
        "image_id": [number] * len(points),
    }


class SwiftGrpo(PromptFormat):
    """Messages up to the question."""

    name = "swift-grpo"
    module, code = "reward_swift.py", _REWARD
    usage = "ms-swift: --external_plugins THIS_FILE --reward_funcs omnidata"

    def row(self, content: Content) -> Row:
        size = screenshot_size(content.receipt)
        return {"messages": content.messages(), **content.lists(), "receipt": size}


class SwiftDpo(PreferenceFormat):
    """Messages with the right answer, and the text of the wrong one."""

    name = "swift-dpo"
    supervised = Swift()

    def pair(self, chosen: Row, rejected: Row) -> Row:
        return {**chosen, "rejected_response": rejected["messages"][-1]["content"]}

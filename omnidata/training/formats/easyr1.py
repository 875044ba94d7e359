"""EasyR1 b44b311 (`verl/utils/dataset.py`, `verl/workers/reward/function.py`)."""

from __future__ import annotations

import json

from omnidata.errors import UsageError
from omnidata.training.formats.base import Content, PromptFormat, Row, screenshot_size

_REWARD = """\
from pathlib import Path

from omnidata.training.reward_files import load_reward, easyr1_score

REWARD = load_reward(Path(__file__).with_name("reward.json"))

REWARD_NAME = "omnidata"
REWARD_TYPE = "batch"


def compute_score(reward_inputs, **kwargs):
    return easyr1_score(REWARD, reward_inputs)
"""


class EasyR1(PromptFormat):
    """Prompts of one text; the reward gets nothing but the answer's column."""

    name = "easyr1"
    module, code = "reward_easyr1.py", _REWARD
    usage = "EasyR1: worker.reward.reward_function=THIS_FILE:compute_score"
    holds = frozenset({"image", "video"})

    def row(self, content: Content) -> Row:
        """Return a step as a row.

        Raises:
            UsageError: the prompt has turns of the model's, or clips beside pictures.
        """
        texts, lists = content.texts(), content.lists()
        if any(role == "assistant" for role, _ in texts):
            raise UsageError(
                "the prompt has turns of the model's, and a prompt of easyr1 is one text",
                where="--format easyr1",
                expected="prompts of a system's and a user's turn",
                remedy="drop -T dialect or the history, or use another trainer",
            )
        if lists.get("images") and lists.get("videos"):
            raise UsageError(
                "rows of easyr1 hold pictures or clips, and pass over clips beside pictures",
                where="--format easyr1",
                expected="one of the two",
                remedy="add --video frames to use pictures instead of clips",
            )
        column = "videos" if lists.get("videos") else "images"
        reason = {"sample_id": content.sample_id, "receipt": screenshot_size(content.receipt)}
        return {
            "prompt": "\n\n".join(text for _, text in texts),
            "answer": json.dumps(reason),
            **({column: lists[column]} if column in lists else {}),
        }

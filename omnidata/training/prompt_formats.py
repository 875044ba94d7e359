"""Prompts without answers, as the trainers of reinforcement learning take them.

A row has the id of its step, by which the reward finds what is right, and never the answer. Beside
the rows lie `reward.json`, which says whose verdicts the reward is made of, and the file that the
trainer loads the reward from.

Sources: TRL 1.16 (`GRPOTrainer`), ms-swift 4.6 (`swift rlhf`, `swift.rewards`), verl 0.9.1
(`RLHFDataset`, `reward.custom_reward_function`), EasyR1 b44b311 (`verl/utils/dataset.py`,
`verl/workers/reward/function.py`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args

from omnidata.adapters.media_budget import ALL
from omnidata.errors import UsageError
from omnidata.training.formats import (
    PLACEHOLDERS,
    FormatName,
    Row,
    Turns,
    names_of,
    texts_of,
    trl_messages,
)
from omnidata.types import Modality

PromptFormat = Literal["trl-grpo", "swift-grpo", "verl", "easyr1"]
PROMPT_FORMATS: Final[Sequence[PromptFormat]] = get_args(PromptFormat)

PROMPTS_HOLD: Final[Mapping[PromptFormat, frozenset[Modality]]] = {
    "trl-grpo": frozenset({"image"}),
    "swift-grpo": ALL,
    "verl": ALL,
    "easyr1": frozenset({"image", "video"}),
}
"""The modalities that a row may have as files. TRL's own trainer would take sound, and train
without it (see `omnidata.training.grpo`)."""

LIKE: Final[FormatName] = "swift"
"""The format whose rows have the same texts and media, and answers."""

REWARD: Final = "reward.json"
REWARD_FILE: Final[Mapping[PromptFormat, str]] = {
    "swift-grpo": "reward_swift.py",
    "verl": "reward_verl.py",
    "easyr1": "reward_easyr1.py",
}
"""What the trainer loads the reward from; with TRL it is handed over in Python."""

SUFFIX: Final[Mapping[str, str]] = {"verl": ".json"}
"""What files of rows end in, where it is not `.jsonl`: verl tells by it that they are JSON."""

_SEEN: Final = ("role", "width", "height", "original", "pixels")


def screenshot_sizes(receipt: Mapping[str, Any]) -> str:
    """Return the part of a receipt that a reward needs, as JSON: the size of the screenshot."""
    lines = [
        {name: line[name] for name in _SEEN if name in line}
        for line in receipt.get("parts", ())
        if line.get("role") == "screenshot"
    ]
    return json.dumps({"parts": lines}, separators=(",", ":"))


def prompt_row(
    form: PromptFormat,
    turns: Turns,
    *,
    task: str,
    sample_id: str,
    receipt: Mapping[str, Any],
    kinds: Collection[Modality],
    root: Path,
) -> Row:
    """One prompt in the form of a trainer.

    Args:
        form: of the rows.
        turns: the prompt.
        task: the benchmark.
        sample_id: of the step.
        receipt: of the prompt.
        kinds: modalities that any row of the export has; each row has a list of each.
        root: the export.

    Raises:
        UsageError: the trainer has no place for a turn of the model's, or for clips beside
            pictures.
    """
    shown = screenshot_sizes(receipt)
    media = {f"{kind}s": names_of(turns, kind) for kind in PLACEHOLDERS if kind in kinds}
    if form == "trl-grpo":
        return {"prompt": trl_messages(turns), **media, "receipt": shown}
    messages = [{"role": role, "content": text} for role, text in texts_of(turns)]
    if form == "swift-grpo":
        return {"messages": messages, **media, "receipt": shown}
    if form == "verl":
        files = {
            "images": [{"image": str(root / name)} for name in media.get("images", ())],
            "videos": [{"video": str(root / name)} for name in media.get("videos", ())],
            "audios": [str(root / name) for name in media.get("audios", ())],
        }
        return {
            "data_source": task,
            "prompt": messages,
            **{name: files[name] for name in media},
            "reward_model": {"style": "rule", "ground_truth": sample_id},
            "extra_info": {"sample_id": sample_id, "receipt": shown},
        }
    return _easyr1(messages, media, sample_id, shown)


def _easyr1(
    messages: Sequence[Mapping[str, str]],
    media: Mapping[str, Sequence[str]],
    sample_id: str,
    shown: str,
) -> Row:
    if any(message["role"] == "assistant" for message in messages):
        raise UsageError(
            "the prompt has turns of the model's, and a prompt of easyr1 is one text",
            where="--format easyr1",
            expected="prompts of a system's and a user's turn",
            remedy="drop -T dialect or the history, or use another trainer",
        )
    if media.get("images") and media.get("videos"):
        raise UsageError(
            "rows of easyr1 hold pictures or clips, and pass over clips beside pictures",
            where="--format easyr1",
            expected="one of the two",
            remedy="add --video frames to use pictures instead of clips",
        )
    kind = "videos" if media.get("videos") else "images"
    return {
        "prompt": "\n\n".join(message["content"] for message in messages),
        "answer": json.dumps({"sample_id": sample_id, "receipt": shown}),
        **({kind: list(media[kind])} if kind in media else {}),
    }

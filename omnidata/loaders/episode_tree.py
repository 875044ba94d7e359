"""The format of the episode tree: labels, limits and columns, for its writer and its readers.

The tree has a folder for each app, in it the episodes with their media, and indexes beside. The
layout is that of OmniGUI's Appendix B. The demo, `segment` and `synth` write it
(`omnidata.loaders.tree_writer`), and the task that says `reads_episode_tree` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, get_args

from omnidata.jsontext import as_name

Dimension = Literal[
    "localization",
    "semantic_understanding",
    "cross_modal_discrimination",
    "temporal_reasoning",
    "instant_response",
]
Dependency = Literal["critical", "supportive", "present"]
Label = TypeVar("Label", bound=str)

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
"""The five cognitive dimensions, also the names of the files that list the episodes."""

DEPENDENCIES: tuple[Dependency, ...] = get_args(Dependency)
"""How much a task depends on audio and video."""

CRITICAL: Dependency = "critical"
"""The level of an episode with an answer that no screenshot explains (OmniGUI, section 3.2)."""

SIDE_FILE = "dependency.jsonl"
"""The file with the dependency levels of labelled episodes."""

MAX_STEPS = 2000
"""Steps of one episode; every step holds the history before it, so length costs its square."""

FARTHEST = 1_000_000
"""Pixels; beyond it a coordinate is a mistake, and arithmetic on it may overflow."""


def label(value: object, allowed: Iterable[Label]) -> Label | None:
    """Return a dimension or dependency label in our spelling; None if it is not allowed.

    Examples:
        >>> label("AV-Critical", DEPENDENCIES), label("Temporal Reasoning", DIMENSIONS)
        ('critical', 'temporal_reasoning')
    """
    if not isinstance(value, str):
        return None
    plain = value.strip().casefold().replace("-", "_").replace(" ", "_").removeprefix("av_")
    return next((name for name in allowed if name == plain), None)


# The columns of the format, in every spelling that its data have.

MEDIA_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "screenshot": ("current_image", "image", "image_path"),
    "history_screenshot": ("history_screenshot_path",),
    "video": ("current_video", "video", "video_path"),
    "audio": ("current_audio", "audio", "audio_path"),
}
"""The columns that name a step's media, by role; the first that has a value wins."""

TARGET_COLUMNS = frozenset(
    f"result_{name}"
    for name in (
        *("action_type", "action_text", "action_json"),
        *("touch_xy", "lift_xy", "touch_yx", "lift_yx"),
    )
)
"""The columns of a step's target."""

STEP_COLUMNS = frozenset(
    {
        *("episode_id", "episode_length", "step_id", "step_index", "instruction_en"),
        *("image_width", "image_height"),
        *(name for names in MEDIA_COLUMNS.values() for name in names),
    }
)
"""The columns that describe a step, all but its target."""

EPISODE_COLUMNS = frozenset({"ID", "app", "instruction_en", "instruction_zh"})
"""The columns of an episode's own row."""


def instructions(
    episode: Mapping[str, Any], step: Mapping[str, Any]
) -> tuple[str | None, str | None]:
    """Return the instruction in English and in Chinese; None for a missing one.

    Args:
        episode: the episode's own row, which comes first; empty where it has none.
        step: the row of a step.

    Examples:
        >>> instructions({"instruction_en": "Like it."}, {"instruction": "点赞"})
        ('Like it.', '点赞')
    """
    english = as_name(episode.get("instruction_en")) or as_name(step.get("instruction_en"))
    chinese = (
        as_name(episode.get("instruction_zh"))
        or as_name(step.get("instruction_zh"))
        or as_name(step.get("instruction"))
    )
    return english, chinese

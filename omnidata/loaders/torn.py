"""Episodes that fall apart because their steps are of several apps."""

from __future__ import annotations

from collections.abc import Iterable

from omnidata.errors import Finding
from omnidata.types import Step


def torn_episodes(steps: Iterable[Step]) -> list[Finding]:
    """A finding for each episode whose tag `app` changes, where the loader has not named it.

    `Step` names an episode `app/episode_id` then, because two apps may have the same id. Those are
    told from the parts of one: the same number of a step comes twice, or each is whole.

    Args:
        steps: all of the data.
    """
    parts: dict[str, dict[str, list[Step]]] = {}
    for step in steps:
        app = step.tags.get("app")
        if step.episode == (f"{app}/{step.episode_id}" if app else step.episode_id):
            parts.setdefault(step.episode_id, {}).setdefault(step.episode, []).append(step)
    return [
        _torn(own, list(found)) for own, found in parts.items() if len(found) > 1 and _is_one(found)
    ]


def _is_one(parts: dict[str, list[Step]]) -> bool:
    numbers = [step.step_index for part in parts.values() for step in part]
    lacking = any(len(part) < part[0].num_steps for part in parts.values())
    return lacking and len(set(numbers)) == len(numbers)


def _torn(own: str, names: list[str]) -> Finding:
    return Finding(
        "episode-torn",
        "error",
        own,
        f"the tag app changes within the episode, which falls into {', '.join(names[:3])}"
        + ("" if len(names) <= 3 else f" and {len(names) - 3} more"),
        "a tag app that all steps of an episode have in common, or none",
        "name the episode in the loader, Step(episode=...), or call the tag otherwise; the parts "
        "count as episodes until then",
    )

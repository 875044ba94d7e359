"""Findings about the data of plug-ins, which the loaders of our own benchmarks report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from omnidata.actions import Point
from omnidata.errors import Finding, plural, suggestion
from omnidata.loaders.load import short, unsafe_paths
from omnidata.tasks.profile import Profile
from omnidata.types import LoadedDataset, Step


def find_plugin_mistakes(source: LoadedDataset, profiles: Iterable[Profile]) -> list[Finding]:
    """Find torn and merged episodes, unknown axes, unsafe paths and misplaced targets.

    Args:
        source: what the plug-in loaded.
        profiles: of its rules.
    """
    steps = source.steps
    findings = [
        *_find_torn_episodes(steps),
        *_find_merged_episodes(steps),
        *_find_unknown_axes(profiles, steps),
    ]
    # A Parquet repository keeps the findings of the data that it was made of.
    findings = [finding for finding in findings if finding not in source.findings]
    return [*findings, *unsafe_paths(source), *_find_misplaced_targets(source)]


def _find_torn_episodes(steps: Iterable[Step]) -> list[Finding]:
    """Find the episodes whose tag `app` changes.

    `Step` names an episode `app/episode_id`, because two apps may have the same id. Parts with that
    id are two episodes if a step index repeats, or if each has all of its steps.
    """
    episodes: dict[str, dict[str, list[Step]]] = {}
    for step in filter(_is_unnamed, steps):
        episodes.setdefault(step.episode_id, {}).setdefault(step.episode, []).append(step)
    findings = []
    for episode_id, parts in episodes.items():
        whole = [step for part in parts.values() for step in part]
        incomplete = any(len(part) < part[0].num_steps for part in parts.values())
        distinct = len({step.step_index for step in whole}) == len(whole)
        if len(parts) < 2 or not incomplete or not distinct:
            continue
        findings.append(
            Finding(
                "episode-torn",
                "error",
                episode_id,
                "the tag app changes within the episode, which falls into "
                + _first_names([*parts]),
                "the same tag app, or none, for all steps of an episode",
                "name the episode in the loader, Step(episode=...), or rename the tag; the parts "
                "count as episodes until then",
                tuple(step.sample_id for step in whole),
            )
        )
    return findings


def _find_merged_episodes(steps: Iterable[Step]) -> list[Finding]:
    episodes: dict[str, list[Step]] = {}
    for step in filter(_is_unnamed, steps):
        episodes.setdefault(step.episode, []).append(step)
    findings = []
    for episode, members in episodes.items():
        counts = Counter(step.step_index for step in members)
        if len(counts) == len(members):
            continue
        first, *more = [index for index, count in counts.items() if count > 1]
        same = [step.sample_id for step in members if step.step_index == first]
        also = ", ".join(map(str, more[:3])) + (" and others" if len(more) > 3 else "")
        findings.append(
            Finding(
                "step-number-repeated",
                "error",
                episode,
                f"{plural(len(same), 'step')} of the episode have step_index {first}: "
                f"{_first_names(same)}" + (f"; so it is with step_index {also}" if more else ""),
                "each step_index once in an episode",
                "give each of several episodes an episode_id of its own, or number the steps from "
                "0; they count as one episode until then",
                tuple(step.sample_id for step in members),
            )
        )
    return findings


def _is_unnamed(step: Step) -> bool:
    app = step.tags.get("app")
    return step.episode == (f"{app}/{step.episode_id}" if app else step.episode_id)


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _find_unknown_axes(profiles: Iterable[Profile], steps: Sequence[Step]) -> list[Finding]:
    tags = {tag for step in steps for tag in step.tags}
    users: dict[str, str] = {}
    for profile in profiles:
        for axis in profile.by:
            users.setdefault(axis, profile.name)
    return [
        Finding(
            "axis-unknown",
            "warning",
            name,
            f"no step has the tag {axis}, by which the profile's table has groups",
            f"one of {', '.join(sorted(tags))}" if tags else "steps with tags",
            suggestion(axis, tags) or "correct `by` of the profile, or the tags of the steps",
        )
        for axis, name in users.items()
        if steps and axis not in tags
    ]


_PLACES = frozenset({"target-outside", "target-unreadable", "box-outside", "box-unusable"})


def _find_misplaced_targets(source: LoadedDataset) -> list[Finding]:
    """Find the targets outside the screen, unless the loader reported the place of the step."""
    reported = {
        name
        for finding in source.findings
        if finding.code in _PLACES
        for name in (finding.where, *finding.sample_ids)
    }
    steps = (step for step in source.steps if step.sample_id not in reported)
    return [finding for step in steps if (finding := _find_misplaced_target(step))]


def _find_misplaced_target(step: Step) -> Finding | None:
    actions = (step.action, *step.action.then) if step.action else ()
    for region in (place for action in actions for place in (*action.start, *action.end)):
        if isinstance(region, Point):
            left, top, right, bottom = region.x, region.y, region.x, region.y
        else:
            left, top, right, bottom = region.left, region.top, region.right, region.bottom
        edges = short([left, top, right, bottom])
        width, height = {"px": step.screen, "rel": (1, 1)}.get(region.space, (1000, 1000))
        try:
            in_order = left <= right and top <= bottom
            inside = min(left, top) >= 0 and right <= width and bottom <= height
        except TypeError:
            in_order = inside = False
        if not in_order:
            code, what = "box-unusable", f"the target {edges} is not a box"
            expected = "four numbers, left <= right and top <= bottom"
        elif inside or (region.space == "px" and min(step.screen) < 1):  # an unknown screen
            continue
        else:
            code, what = "target-outside", f"the target {edges} exceeds the screen"
            unit = "" if region.space == "px" else f', in "{region.space}"'
            expected = f"a place within {width} x {height}{unit}"
        remedy = "correct the row; the target is used as it is until then"
        return Finding(code, "warning", step.sample_id, what, expected, remedy, (step.sample_id,))
    return None

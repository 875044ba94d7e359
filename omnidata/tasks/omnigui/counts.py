"""The paper's Table 7 and Figure 2 of a dataset, and how it differs from the published Table 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnidata.loaders.apps import DEPENDENCIES, DIMENSIONS, published, table7
from omnidata.types import Step

_COLUMNS: Mapping[str, str] = dict((*DIMENSIONS.items(), *DEPENDENCIES.items()))
_AXES: Mapping[str, tuple[str, Sequence[str]]] = {
    "languages": ("language", ("zh", "en")),
    "dimensions": ("dimension", tuple(DIMENSIONS)),
    "dependencies": ("dependency", tuple(DEPENDENCIES)),
}
KEYS = ("episodes", "steps", *DIMENSIONS.values(), *DEPENDENCIES.values())


def count(steps: Sequence[Step]) -> dict[str, Any]:
    """Table 7 of some steps.

    Returns:
        `apps`: name -> language ("zh+en" for an app with episodes in both), episodes, steps, and
        episodes per dimension and dependency level in Table 7's abbreviations; and `languages`:
        language -> episodes, steps. `total`: the sums. An episode is labelled as its first step.
    """
    apps: dict[str, dict[str, Any]] = {}
    for (app, _), (first, number) in _episodes(steps).items():
        row = apps.setdefault(app, {"language": "", **dict.fromkeys(KEYS, 0), "languages": {}})
        part = row["languages"].setdefault(first.tags["language"], {"episodes": 0, "steps": 0})
        for numbers in (row, part):
            numbers["episodes"] += 1
            numbers["steps"] += number
        for tag in ("dimension", "dependency"):
            if tag in first.tags:
                row[_COLUMNS[first.tags[tag]]] += 1
    for row in apps.values():
        row["language"] = "+".join(sorted(row["languages"], reverse=True))
    total = {key: sum(row[key] for row in apps.values()) for key in KEYS}
    return {"apps": dict(sorted(apps.items())), "total": {"language": "", **total}}


def distribution(steps: Sequence[Step]) -> dict[str, dict[str, dict[str, int]]]:
    """Figure 2 of some steps: how they spread over languages, dimensions and dependency levels.

    The numbers that the paper prints for it are in section 3.2.

    Returns:
        `languages`, `dimensions` and `dependencies`: name -> apps, episodes, steps; the names of
        the paper always, and `unlabelled` where there are episodes without a label. An episode is
        labelled as its first step.
    """
    episodes = _episodes(steps)
    found: dict[str, dict[str, dict[str, int]]] = {}
    for axis, (tag, names) in _AXES.items():
        apps: dict[str, set[str]] = {name: set() for name in names}
        groups = {name: {"apps": 0, "episodes": 0, "steps": 0} for name in names}
        for (app, _), (first, number) in episodes.items():
            name = first.tags.get(tag, "unlabelled")
            apps.setdefault(name, set()).add(app)
            group = groups.setdefault(name, {"apps": 0, "episodes": 0, "steps": 0})
            group["apps"] = len(apps[name])
            group["episodes"] += 1
            group["steps"] += number
        found[axis] = groups
    return found


def _episodes(steps: Sequence[Step]) -> dict[tuple[str, str], tuple[Step, int]]:
    """App and id of every episode -> its first step and how many it has."""
    found: dict[tuple[str, str], tuple[Step, int]] = {}
    for step in steps:
        key = step.tags["app"], step.episode_id
        first, number = found.get(key, (step, 0))
        found[key] = first, number + 1
    return found


def compare(counts: dict[str, Any]) -> list[str]:
    """Where the counts differ from Table 7, one sentence each; empty if nowhere."""
    found: dict[str, dict[str, Any]] = {}
    differences = []
    for name, row in counts["apps"].items():
        expected = published(name)
        if expected is None:
            differences.append(f"{name}: the app is not in Table 7")
        elif expected["app"] in found:  # another spelling of an app that was counted before
            merged = found[expected["app"]]
            merged |= {key: merged[key] + row[key] for key in KEYS}
        else:
            found[expected["app"]] = dict(row)
    for expected in table7()["apps"]:
        row = found.get(expected["app"])
        if row is None:
            differences.append(f"{expected['app']}: missing ({expected['episodes']} episodes)")
        else:
            differences += _differences(expected["app"], row, expected, ("language", *KEYS))
    return differences + _differences("total", counts["total"], table7()["totals"], KEYS)


def _differences(
    name: str, row: dict[str, Any], expected: dict[str, Any], keys: Sequence[str]
) -> list[str]:
    return [
        f"{name}: {key} is {row[key]}, published {expected[key]}"
        for key in keys
        if row[key] != expected[key]
    ]

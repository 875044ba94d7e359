"""The paper's Table 7 and Figure 2 of a dataset, and how it differs from the published Table 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnidata.loaders.omnigui_apps import DEPENDENCIES, DIMENSIONS, published, table7
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
        `apps`: name -> language, episodes, steps, and episodes per dimension and dependency level
        in Table 7's abbreviations; `total`: their sums.
    """
    apps: dict[str, dict[str, Any]] = {}
    seen: set[tuple[str, str]] = set()
    for step in steps:
        app = step.tags["app"]
        row = apps.setdefault(app, {"language": step.tags["language"], **dict.fromkeys(KEYS, 0)})
        row["steps"] += 1
        if (app, step.episode_id) in seen:
            continue
        seen.add((app, step.episode_id))
        row["episodes"] += 1
        for tag in ("dimension", "dependency"):
            if tag in step.tags:
                row[_COLUMNS[step.tags[tag]]] += 1
    total = {key: sum(row[key] for row in apps.values()) for key in KEYS}
    return {"apps": dict(sorted(apps.items())), "total": {"language": "", **total}}


def distribution(steps: Sequence[Step]) -> dict[str, dict[str, dict[str, int]]]:
    """Figure 2 of some steps: how they spread over languages, dimensions and dependency levels.

    The numbers that the paper prints for it are in section 3.2.

    Returns:
        `languages`, `dimensions` and `dependencies`: name -> apps, episodes, steps; the names of
        the paper always, and `unlabelled` where there are steps without a label.
    """
    found: dict[str, dict[str, dict[str, int]]] = {}
    for axis, (tag, names) in _AXES.items():
        apps: dict[str, set[str]] = {name: set() for name in names}
        episodes: dict[str, set[tuple[str, str]]] = {name: set() for name in names}
        steps_of: dict[str, int] = dict.fromkeys(names, 0)
        for step in steps:
            name = step.tags.get(tag, "unlabelled")
            app = step.tags["app"]
            apps.setdefault(name, set()).add(app)
            episodes.setdefault(name, set()).add((app, step.episode_id))
            steps_of[name] = steps_of.get(name, 0) + 1
        found[axis] = {
            name: {"apps": len(apps[name]), "episodes": len(episodes[name]), "steps": number}
            for name, number in steps_of.items()
        }
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

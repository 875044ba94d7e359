"""`omnidata score hf://ORG/RUN`: do the published results follow from the published answers?"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.cli import terminal
from omnidata.cli.data import data_of
from omnidata.errors import RunError

if TYPE_CHECKING:
    from omnidata.run.run_files import Run


def fetch_published(named: str, data: Path | None) -> tuple[str, Path, Path, Run]:
    """Return the task, the data, the folder and the scored run of a run on the Hub.

    Raises:
        DataError: it is no run, or its data cannot be downloaded.
        RunError: a file is broken, or the task or profile is unknown.
    """
    from omnidata.loaders.data_place import AUTO
    from omnidata.loaders.hub import copy_of, parse_address
    from omnidata.run.run_files import read_run
    from omnidata.run.run_info import ANSWERS, INFO, RESULTS, SCORES
    from omnidata.tasks import get_task
    from omnidata.tasks.common_options import OPTIONS

    address = parse_address(named)
    assert address is not None
    run = copy_of(address, (INFO, ANSWERS, SCORES, RESULTS), terminal.note)
    published = read_run(run)
    info = published.settings
    if not info:
        raise RunError(
            "the run has no run.json",
            where=named,
            expected="a run published with `omnidata push`",
            remedy="ask its publisher to push it again",
        )
    known = {*get_task(info["task"]).allowed, *OPTIONS}
    if unknown := sorted(info.get("options", {}).keys() - known):
        terminal.note(f"unknown options of the run, not checked: {', '.join(unknown)}"[:500])
    said = str(info.get("data") or "")
    # A published run must not open files of this machine: only the Hub is allowed.
    place = said if parse_address(said) else AUTO
    if data is None:
        terminal.note(f"its data: {place}")
        data = data_of(info["task"], Path(place))
    return info["task"], data, run, published


_NOT_SCORED = frozenset({"agent", "stopped", "places", "headline", "errata", "with_errata"})
"""Keys of results that depend on the command, not on the answers."""
_SHOWN = 20
"""Differences that are listed."""


def find_differences(published: Run, found: Mapping[str, Any], scored: Path) -> list[str]:
    """Return a line for each number of a published run that differs from the computed one.

    Args:
        published: the run.
        found: the computed results.
        scored: the folder with the computed scores.
    """
    from omnidata.run.run_files import read_scores

    whole = json.loads(json.dumps(found))
    differing = [
        line
        for key in whole
        if key not in _NOT_SCORED
        for line in _unlike(key, published.results.get(key), whole[key])
    ]
    ours, theirs = read_scores(scored, published.profile), published.scores
    for name in dict.fromkeys([*theirs, *ours]):
        differing += _unlike(f"the score of {name}", theirs.get(name), ours.get(name))
    return differing


def _unlike(place: str, said: Any, found: Any) -> list[str]:
    if isinstance(said, dict) and isinstance(found, dict):
        pairs = [(key, said.get(key), found.get(key)) for key in dict.fromkeys([*said, *found])]
        return [line for key, *pair in pairs for line in _unlike(f"{place}.{key}", *pair)]
    if isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        both = enumerate(zip(said, found, strict=True))
        return [line for number, pair in both for line in _unlike(f"{place}.{number}", *pair)]
    if _is_same(said, found):
        return []
    return [f"{place:.200}: published {_brief(said)}, computed {_brief(found)}"]


def _brief(value: object) -> str:
    if isinstance(value, dict | list):
        return "something" if value else "nothing"
    return "nothing" if value is None else f"{value!s:.60}"


def _is_same(said: Any, found: Any) -> bool:
    if isinstance(said, bool) or isinstance(found, bool):
        return said is found
    try:
        return said == found or math.isclose(said, found, rel_tol=0, abs_tol=1e-9)
    except (TypeError, OverflowError):  # no number, or a huge one
        return False


def note_compared(published: Run, found: Mapping[str, Any], differing: Sequence[str]) -> None:
    """Print the differences, and what was not compared."""
    for line in differing[:_SHOWN]:
        terminal.note(line)
    if len(differing) > _SHOWN:
        terminal.note(f"and {len(differing) - _SHOWN:,} more")
    besides = ["the README", *sorted(published.results.keys() - (found.keys() - _NOT_SCORED))]
    terminal.note(f"not compared: {', '.join(besides)}"[:500])
    verb = "do not follow" if differing else "follow"
    terminal.note(f"the published results {verb} from the published answers")


def note_uncompared(published: Run) -> None:
    """Print that the results are not those that were published."""
    terminal.note(
        "not compared: the published results are for all steps of the run and the profile "
        f"{published.profile}"
    )

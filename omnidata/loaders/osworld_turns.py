"""`traj.jsonl`: lines of an agent's actions -> turns, and the runs that were appended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from omnidata.jsontext import BROKEN
from omnidata.loaders.place import Note, Place, short

Row = Mapping[str, Any]

MOST_TURNS: Final = 2000
"""Turns of one run that are kept, and the highest `step_num`: every step has the history of all
before it, also of the turns in which the agent said nothing that could be run."""

_STAMP: Final = re.compile(r"(\d{8})@(\d{6})(\d{6})?", re.ASCII)


@dataclass(slots=True)
class Turn:
    """What an agent did at once: lines with one `step_num`.

    Attributes:
        number: the `step_num`; where a line has none, the one after the turn before.
        rows: the lines, untouched.
        where: file and line of the first.
        after: lines behind it that belong to no turn, such as errors.
    """

    number: int
    rows: list[Row]
    where: str
    after: list[Row] = field(default_factory=list)

    @property
    def time(self) -> datetime | None:
        """When the first action began; None where the line does not say."""
        return read_stamp(self.rows[0].get("action_timestamp"))

    @property
    def shown_before(self) -> str | None:
        """The screenshot that a fork took before the action."""
        return _file(self.rows[0].get("screenshot_file_before_exec"))

    @property
    def shown_after(self) -> str | None:
        """The screenshot after the last action."""
        return _file(self.rows[-1].get("screenshot_file"))


@dataclass(slots=True)
class Run:
    """One go at an example; a folder that was not cleaned before holds several.

    Attributes:
        turns: in order.
        before: lines before the first turn: the reset of a fork, errors.
        crashed: the error that ended it; empty if none did.
    """

    turns: list[Turn] = field(default_factory=list)
    before: list[Row] = field(default_factory=list)
    crashed: str = ""

    @property
    def first_number(self) -> int:
        """What the first turn is called: 0 where one has that number, else 1."""
        return min((turn.number for turn in self.turns), default=1) and 1

    @property
    def reset(self) -> str | None:
        """The screenshot of a fork's reset, which is what the agent saw first."""
        names = (_file(row.get("screenshot_file")) for row in reversed(self.before))
        return next(filter(None, names), None)


def _file(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def read_stamp(value: object) -> datetime | None:
    """A time as the runner writes it, with or without microseconds; it has no zone.

    Returns:
        With UTC for a zone, which means nothing: only differences do. None for anything else.

    Examples:
        >>> read_stamp("20240501@120000250000") - read_stamp("20240501@120000")
        datetime.timedelta(microseconds=250000)
    """
    found = _STAMP.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    try:
        whole = datetime.strptime(found[1] + found[2], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return whole + timedelta(microseconds=int(found[3] or 0))


def is_reset(row: Row) -> bool:
    """Whether a line is the screenshot that a fork takes before the agent's first turn."""
    return row.get("action") == "reset" and row.get("step_num") in (0, None)


def read_runs(lines: Iterable[tuple[str, Any]], note: Note) -> list[Run]:
    """The runs of a file, the last of which is the one that its folder's result is about.

    Lines with the same `step_num` are one turn. A run begins anew where `step_num` goes back, where
    it stays after a line that says it is done, and after an error unless it goes on.

    Args:
        lines: as `json_lines.values` gives them.
        note: takes the findings.
    """
    runs: list[Run] = [Run()]
    for where, row in lines:
        place = Place(where, note)
        if row is BROKEN or not isinstance(row, Mapping):
            place.refuse(
                "json-invalid", "the line is not a JSON object", "one JSON object in UTF-8"
            )
        elif _is_error(row):
            _crash(runs[-1], row, place)
        elif is_reset(row):
            if runs[-1].turns or runs[-1].before:
                runs.append(Run())
            runs[-1].before.append(row)
        else:
            number = _number(row, runs[-1], place)
            if _begins(runs[-1], number):
                runs.append(Run())
                number = _number(row, runs[-1], None)
            _add(runs[-1], Turn(number, [row], where), place)
    return _with_turns(runs)


def _with_turns(runs: Iterable[Run]) -> list[Run]:
    """Lines of a go that ended before its first turn are kept with the next one, or the one before.

    Such a go is a run only where it is the last, for recording and result are about it.
    """
    kept: list[Run] = []
    lines: list[Row] = []
    for run in runs:
        if run.turns:
            run.before[:0], lines = lines, []
            kept.append(run)
        else:
            lines += run.before
    if not lines:
        return kept
    if not kept:
        return [Run(before=lines)]
    kept[-1].turns[-1].after += lines
    return [*kept, Run()]


def _is_error(row: Row) -> bool:
    return "Error" in row and row.keys().isdisjoint(("action", "actions", "step_num"))


def _crash(run: Run, row: Row, place: Place) -> None:
    run.crashed = short(row.get("Error"))
    (run.turns[-1].after if run.turns else run.before).append(row)
    place.warn(
        "run-crashed",
        f"the run ended with an error: {run.crashed}",
        "a run that ends by itself",
        "run the example again; the steps before it are kept",
    )


def _number(row: Row, run: Run, place: Place | None) -> int:
    value = row.get("step_num")
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TURNS:
        return value
    if place:
        place.warn(
            "step-number",
            f"step_num is {short(value)}",
            f"a whole number from 0 to {MOST_TURNS}",
            "mend the row; until then it counts as the one after the row before",
        )
    return run.turns[-1].number + 1 if run.turns else 1


def _begins(run: Run, number: int) -> bool:
    if not run.turns:
        return bool(run.crashed)
    last = run.turns[-1]
    done = last.rows[-1].get("done") is True
    return number < last.number or (number == last.number and (done or bool(run.crashed)))


def _add(run: Run, turn: Turn, place: Place) -> None:
    last = run.turns[-1] if run.turns else None
    if last and last.number == turn.number:
        if last.shown_after and last.shown_after == turn.shown_after:
            place.warn(
                "screenshot-shared",
                f"two actions of one turn name the screenshot {short(last.shown_after)}",
                "a screenshot for each",
                "nothing is lost for the step: the file shows the screen after the last of them",
            )
        last.rows += turn.rows
    elif len(run.turns) < MOST_TURNS:
        run.turns.append(turn)
    else:
        place.refuse("turns-many", "the run goes on", f"at most {MOST_TURNS} turns")

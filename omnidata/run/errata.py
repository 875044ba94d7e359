"""Errata: corrections of labels, which a person has decided on, and the steps that they correct."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec

from omnidata import remote
from omnidata.actions import Action, centre
from omnidata.errors import DataError, OmnidataError, UsageError
from omnidata.files import WHOLE, read_text
from omnidata.jsontext import BROKEN, decode_utf8, fault_of, text_lines
from omnidata.loaders.rows import read_action
from omnidata.tasks.asking import Asking
from omnidata.tasks.benchmark import Benchmark
from omnidata.tasks.marks import find_standing
from omnidata.types import Step

Kind = Literal["also_right", "replace", "instruction", "drop"]
LONGEST: Final = 2**20
"""Bytes of a line."""
_HEAD: Final = '{"errata": NAME, "version": "1", "benchmark": TASK}'
_LINE: Final = '{"sample_id": ID, "kind": "also_right", "value": {"kind": "BACK"}, "reason": WHY}'

_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Struct = TypeVar("_Struct")


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    errata: _Name
    version: _Name
    benchmark: _Name
    fingerprint: str = ""
    licence: str = ""
    authors: tuple[str, ...] = ()


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    sample_id: _Name
    kind: Kind
    reason: _Name
    value: Any = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction of one step.

    Attributes:
        sample_id: of the step.
        kind: "also_right" adds a right action and "replace" replaces all of them; "instruction"
            replaces the instruction; "drop" leaves the step out.
        action: of the first two kinds.
        instruction: of the third kind.
        reason: why the label is wrong.
        source: who says it.
        where: file and line.
    """

    sample_id: str
    kind: Kind
    action: Action | None
    instruction: str
    reason: str
    source: str
    where: str


@dataclass(frozen=True, slots=True)
class Errata:
    """A file of corrections.

    Attributes:
        name, version: of the errata.
        benchmark: the task whose labels it corrects.
        fingerprint: of the data that it was made for; empty if it does not say.
        licence, authors: of the errata.
        hash: SHA-256 of the file's text in UTF-8, in hexadecimal.
        corrections: in the order of the file.
        where: the file.
    """

    name: str
    version: str
    benchmark: str
    fingerprint: str
    licence: str
    authors: Sequence[str]
    hash: str
    corrections: Sequence[Correction]
    where: str

    def by_sample(self) -> dict[str, list[Correction]]:
        """Return the corrections of each step, in order."""
        found: dict[str, list[Correction]] = {}
        for one in self.corrections:
            found.setdefault(one.sample_id, []).append(one)
        return found


def read_errata(place: str | Path, task: str = "") -> Errata:
    """Read a file of corrections.

    Args:
        place: the file, or its URL.
        task: the benchmark that the file must be for; empty for any.

    Raises:
        DataError: the file cannot be read, a line is no correction, two lines are the same or
            contradict each other, or the file is for another benchmark.
    """
    path = remote.get(place)
    where = remote.display_path(path)
    try:
        text = read_text(path, WHOLE)
    except OSError as error:
        what = f"the errata cannot be read ({error.strerror})"
        remedy = "check the path of the file"
        raise DataError(what, where=where, expected="JSON Lines", remedy=remedy) from None
    rows = text_lines(io.BytesIO(text))
    number, first = next(rows, (1, b"{}"))
    head = _read(first, _Head, f"{where}:{number}", _HEAD)
    if task and head.benchmark != task:
        raise DataError(
            f"the errata correct {head.benchmark}, and the task is {task}",
            where=f"{where}:{number}",
            expected=f'"benchmark": "{task}"',
            remedy=f"name errata for {task}",
        )
    corrections: list[Correction] = []
    known: dict[str, list[Correction]] = {}
    for number, row in rows:
        found = _read_correction(row, f"{where}:{number}")
        others = known.setdefault(found.sample_id, [])
        if fault := _contradiction(found, others):
            raise DataError(
                f"{fault}: {found.sample_id:.80}",
                where=found.where,
                expected=f"one decision on a step ({others[-1].where} has another line on it)",
                remedy="remove one of the two lines",
            )
        others.append(found)
        corrections.append(found)
    return Errata(
        head.errata,
        head.version,
        head.benchmark,
        head.fingerprint,
        head.licence,
        head.authors,
        sha256(text).hexdigest(),
        corrections,
        where,
    )


def _read(text: bytes, kind: type[_Struct], where: str, expected: str) -> _Struct:
    what = f"the line has more than {LONGEST:,} bytes"
    if len(text) <= LONGEST:
        value = decode_utf8(text)
        try:
            if value is not BROKEN:
                return msgspec.convert(value, kind)
            what = fault_of(text)
        except msgspec.ValidationError as error:
            what = str(error)
    raise DataError(what, where=where, expected=expected, remedy="correct or remove the line")


def _read_correction(text: bytes, where: str) -> Correction:
    line = _read(text, _Line, where, _LINE)
    action, instruction, fault = None, "", ""
    if line.kind in ("also_right", "replace"):
        try:
            action = read_action(line.value)
        except (ValueError, TypeError) as error:
            fault = f"the value of {line.kind} is no action: {error}"
    elif line.kind == "instruction" and isinstance(line.value, str) and line.value.strip():
        instruction = line.value
    elif line.kind == "instruction":
        fault = "the value of instruction is no text"
    elif line.value is not None:
        fault = "drop has no value"
    if fault:
        raise DataError(fault, where=where, expected=_LINE, remedy="correct or remove the line")
    return Correction(
        line.sample_id, line.kind, action, instruction, line.reason, line.source, where
    )


def _contradiction(one: Correction, others: Sequence[Correction]) -> str:
    """Return why a file cannot have a correction beside others of the step; empty if it can."""
    kinds = {other.kind for other in others}
    if any((other.kind, other.action) == (one.kind, one.action) for other in others):
        return "the step has two such lines"
    if others and "drop" in {one.kind, *kinds}:
        return "the step is dropped, and has another correction"
    return "the step has two targets" if one.kind == "replace" and "replace" in kinds else ""


# Corrected steps.


def correct_step(
    benchmark: Benchmark, step: Step, corrections: Sequence[Correction]
) -> tuple[Step, ...]:
    """Return a step with each of its right actions; nothing if it is dropped.

    Args:
        benchmark: of the step.
        step: as in the data.
        corrections: of the step, in order. A later `replace` also restores a dropped step.

    Raises:
        DataError: the benchmark has no such action.
    """
    found: tuple[Step, ...] = (step,)
    for one in corrections:
        if one.kind == "drop":
            found = ()
        elif one.kind == "instruction":
            step = replace(step, instruction=one.instruction)
            found = tuple(replace(each, instruction=one.instruction) for each in found)
        elif one.kind == "replace":
            found = (_retarget(benchmark, step, one),)
        elif found:
            found = (*found, _retarget(benchmark, step, one))
    return found


def _retarget(benchmark: Benchmark, step: Step, correction: Correction) -> Step:
    action = correction.action
    assert action is not None
    try:
        changed = replace(step, action=action)  # checks the places, too
        return benchmark.retarget(step, action) if benchmark.retarget else changed
    except (ValueError, OmnidataError) as error:
        raise _unsayable(benchmark, correction, str(error).partition("\n")[0]) from None


def _unsayable(benchmark: Benchmark, correction: Correction, why: str) -> DataError:
    label = correction.action.label if correction.action else ""
    return DataError(
        f"{benchmark.name} cannot say the action {label} here" + (f": {why}" if why else ""),
        where=f"{correction.where}: {correction.sample_id:.80}",
        expected="an action that answers can have, with the place or text that it needs",
        remedy="correct or remove the line",
    )


class Targets:
    """Checks that a profile judges by corrected targets: that each is right by it.

    Args:
        task: the benchmark.
        profile: the name of its rule.
    """

    def __init__(self, task: Asking, profile: str) -> None:
        self._task = Asking(task.benchmark)  # a dialect may lack an action that the benchmark has
        self._rules = self._task.profiles[profile.partition("+")[0]]

    def check(self, step: Step, corrections: Sequence[Correction]) -> None:
        """Check the corrections of one step; a profile that leaves out such steps passes.

        Raises:
            DataError: the benchmark cannot say a corrected action.
            UsageError: the profile judges a corrected action as wrong.
        """
        before = self._task.target(step)
        for number, one in enumerate(corrections, 1):
            corrected = correct_step(self._task.benchmark, step, corrections[:number])
            if one.action is None or not corrected:
                continue
            target = self._task.target(corrected[-1])
            if target is None:
                raise _unsayable(self._task.benchmark, one, "")
            mark = find_standing(self._rules, self._rules.judge(corrected[-1], target.text))
            same = before is not None and before.text == target.text
            said = self._task.history_action(corrected[-1], target.text)
            if (
                mark in ("wrong", "partly")
                or (same and not _is_alike(step.action, one.action))
                or not _says(said, corrected[-1].action)
            ):
                raise UsageError(
                    f"the profile {self._rules.name} reads the row, or calls no such answer right: "
                    f"it cannot take the correction to {one.action.label}",
                    where=f"{one.where}: {one.sample_id:.80}",
                    expected="a profile by which the corrected target is right",
                    remedy="score by another --profile, or remove the line; a plug-in can define "
                    "`retarget`",
                )


def _says(said: Action | None, wanted: Action | None) -> bool:
    """Return whether an answer may be an action: a row may hold its kind or its text."""
    if said is None or wanted is None:
        return True
    texts = ((action.text or "").strip().casefold() for action in (said, wanted))
    return said.label == wanted.label and len({*texts}) == 1


def _is_alike(one: Action | None, other: Action) -> bool:
    """Return whether two actions may have the same text as target."""
    if one is None or one.label != other.label:
        return False
    ours, theirs = ([*map(centre, action.start[:1])] for action in (one, other))
    return ours == theirs or bool(ours and theirs and ours[0].space != theirs[0].space)


def read_all(places: Sequence[str | Path], task: str = "") -> list[Errata]:
    """Read several errata, which apply in order.

    Raises:
        DataError: see `read_errata`.
        UsageError: one is named twice.
    """
    found = [read_errata(place, task) for place in places]
    for number, one in enumerate(found):
        if any(one.hash == other.hash for other in found[:number]):
            raise UsageError(
                "the errata are named twice", where=f"--errata {one.where}", expected="each once"
            )
    return found


def corrections_of(errata: Sequence[Errata]) -> Mapping[str, list[list[Correction]]]:
    """Return the corrections of each step, those of each errata in a list of their own."""
    found: dict[str, list[list[Correction]]] = {}
    for number, one in enumerate(errata):
        for sample_id, corrections in one.by_sample().items():
            found.setdefault(sample_id, [[] for _ in errata])[number] = corrections
    return found


def corrections_in_order(errata: Sequence[Errata]) -> dict[str, list[Correction]]:
    """Return the corrections of each step, in the order in which they apply."""
    groups = corrections_of(errata).items()
    return {name: [one for group in each for one in group] for name, each in groups}


class RightActions:
    """The right actions of each step by errata, for answers that were given without them.

    Args:
        task: the benchmark.
        profile: the name of the rule that judges the answers.
        errata: apply in order.
    """

    def __init__(self, task: Asking, profile: str, errata: Sequence[Errata]) -> None:
        self._benchmark, self._targets = task.benchmark, Targets(task, profile)
        self._corrections = corrections_in_order(errata)

    def steps(self, step: Step) -> tuple[Step, ...]:
        """Return a step with each of its right actions; nothing if it is dropped.

        Raises:
            DataError, UsageError: as `Targets.check`.
        """
        if (corrections := self._corrections.get(step.sample_id)) is None:
            return (step,)
        self._targets.check(step, corrections)
        return correct_step(self._benchmark, step, corrections)


def correct_labels(task: Asking, steps: Sequence[Step], errata: Sequence[Errata]) -> Sequence[Step]:
    """Return the steps with corrected labels, each with the first of its right actions.

    Histories stay the actions that were done.

    Args:
        task: the benchmark.
        steps: those to correct.
        errata: apply in order.

    Raises:
        DataError: the benchmark cannot say a corrected action.
        UsageError: the default profile does not judge by a correction, or the prompt does not show
            a corrected instruction.
    """
    by_sample = corrections_in_order(errata)
    targets = Targets(task, task.benchmark.rules[0].name)
    found: list[Step] = []
    for step in steps:
        if (corrections := by_sample.get(step.sample_id)) is None:
            found.append(step)
            continue
        targets.check(step, corrections)
        corrected = correct_step(task.benchmark, step, corrections)[:1]
        reworded = [one for one in corrections if one.kind == "instruction"]
        if reworded and corrected and task.conversation(step) == task.conversation(corrected[0]):
            raise UsageError(
                f"the prompt of {task.name} does not show the corrected instruction",
                where=f"{reworded[-1].where}: {step.sample_id:.80}",
                expected="options by which prompts have the instruction of the step",
                remedy="remove the line, or choose other options with -T",
            )
        found += corrected
    return found

"""The one reason for which most of a score is lost or wrong, with the option that fixes it.

A score of 0.0 over answers in another unit says nothing about the model. `results.json` has such a
reason under `headline`, and tables show it beside the score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from omnidata.dialects import dialects
from omnidata.errors import Finding, OmnidataError, plural
from omnidata.metrics.intervals import wilson
from omnidata.predictions import Prediction
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.asking_in_dialect import AskingInDialect
from omnidata.tasks.marks import mark_of
from omnidata.tasks.profile import Profile
from omnidata.types import Cause, LoadedDataset, Step, Verdict

TRIED: Final = 200
"""Answers that are kept to be read in other ways, spread evenly over the run."""
_READ_AGAIN: Final = 40
_MOST: Final = 0.5
"""Of the steps: a reason for fewer is no headline."""
_NOTICED: Final = 0.1
"""Of the judged steps: misses in another unit that are fewer do not make the score."""
_SURE: Final = 0.9
"""Of the answers that an option is to make right."""
_ALIKE: Final = 0.8
"""Of the right answers in the best form: others that have so many are named beside it."""
_REPEATED: Final = "step-repeated"
_ENDS: Final = 4
"""For each other action: so many ends and waits are answers in a dialect."""
_SHIFTS: Final = (1, 2, 3, 5, 8)
_CHANCE: Final = 0.05
"""The share by chance, if it cannot be measured since all targets are alike."""
_BETTER: Final = 1.5
"""So many times as many answers are right in the form that was meant."""
_NAMED: Final = 4
PLACED: Final[tuple[Cause, ...]] = ("near_miss", "wrong_element", "other_unit", "axes_swapped")
"""The causes of answers whose place alone is wrong."""
_READINGS: Final = PLACED[2:]

Kind = Literal["unjudged", "skipped", "dialect", "unit"]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """An answer to a step, with the receipt of the media that the model got."""

    step: Step
    text: str
    receipt: Mapping[str, Any]


class Kept:
    """At most `TRIED` answers, spread evenly over all that are added."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps, self._every, self._met = steps, 1, 0
        self._held: list[tuple[int, Prediction]] = []

    def add(self, number: int, answer: Prediction | None) -> None:
        """Keep the answer to a step, or pass it over."""
        if answer is None or answer.delivery != "ok" or not answer.output:
            return
        if self._met % self._every == 0:
            self._held.append((number, answer))
            if len(self._held) >= TRIED:
                self._held, self._every = self._held[::2], 2 * self._every
        self._met += 1

    def __iter__(self) -> Iterator[Answer]:
        for number, answer in self._held:
            yield Answer(self._steps[number], answer.output or "", answer.receipt)


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for which a score is not to be published.

    Attributes:
        kind: "unjudged" or "skipped" steps, answers in another "dialect" or in another "unit".
        count: the number of affected steps or answers.
        of: the number of all.
        what: the reason, in a sentence.
        fix: the remedy; empty if none is known.
    """

    kind: Kind
    count: int
    of: int
    what: str
    fix: str


def lines_of(results: Mapping[str, Any]) -> list[str]:
    """Return the reasons of results in sentences, each with its fix."""
    reasons: Sequence[Mapping[str, str]] = results.get("headline", ())
    return [" ".join(filter(None, (f"{one['what']}.", one["fix"]))) for one in reasons]


def lost_steps(
    source: LoadedDataset | None, steps: Sequence[Step], judged: npt.NDArray[np.bool_]
) -> Iterator[Reason]:
    """Yield the reasons why most rows became no steps, or most steps cannot be judged."""
    errors = [one for one in source.findings if one.severity == "error"] if source else []
    other = [one for one in errors if one.code != _REPEATED]  # of a repeated row one is a step
    skipped = source.skipped - (len(errors) - len(other)) if source else 0
    if source is not None and skipped > len(source.steps):
        rows, why = skipped + len(source.steps), _commonest(other)
        what = f"{skipped:,} of {plural(rows, 'row')} of the data became no step"
        yield Reason("skipped", skipped, rows, what + _because(why), _remedy(why))
    lost = int((~judged).sum())
    if lost <= _MOST * len(steps):
        return
    numbers = np.flatnonzero(~judged).tolist()
    what = f"{lost:,} of {plural(len(steps), 'step')} cannot be judged"
    if not judged.any():
        what = f"no step can be judged, and there is no score: {lost:,} of {len(steps):,} lack a "
        what += "usable target"
    unsized = sum(min(steps[number].screen) < 1 for number in numbers)
    names = {steps[number].sample_id for number in numbers}
    findings = source.findings if source is not None else ()
    why = _commonest([one for one in findings if names.intersection(one.sample_ids)])
    if unsized >= _MOST * lost and (why is None or "size" in why.what):
        what += ": the size of their screenshots is unknown"
        fix = "Put width and height into the rows, or the screenshots beside them."
        yield Reason("unjudged", lost, len(steps), what, fix)
        return
    yield Reason("unjudged", lost, len(steps), what + _because(why), _remedy(why))


def _commonest(findings: Sequence[Finding]) -> Finding | None:
    kinds = Counter(one.code for one in findings).most_common(1)
    return next((one for one in findings if one.code == kinds[0][0]), None)


def _because(why: Finding | None) -> str:
    return f": [{why.code}] {why.what}, as at {why.where}"[:300] if why else ""


def _remedy(why: Finding | None) -> str:
    return f"Fix: {why.remedy}." if why and why.remedy else ""


def count_misplaced(
    task: Asking, profile: Profile, steps: Sequence[Step], why: Mapping[tuple[Cause, str, str], int]
) -> dict[str, Any]:
    """Count the answers at a wrong place, and those that are right in another reading.

    Chance is measured with right answers to other steps: some of those at a wrong place are right
    in another unit.

    `why` has the number of wrong answers for each cause, reading and label of the target.

    Returns:
        `missed`, `readings` by reading, and `by_chance` by cause, a share of the missed ones; None
        if no right answer is wrong for another step. Empty if no answer is right in another
        reading.
    """
    readings: Counter[str] = Counter()
    for (_, reading, _), count in why.items():
        if reading:
            readings[reading] += count
    if not readings:
        return {}
    missed = sum(count for (cause, _, _), count in why.items() if cause in PLACED)
    chance = _by_chance(task, profile, steps)
    return {"missed": missed, "readings": dict(readings.most_common()), "by_chance": chance}


def _by_chance(task: Asking, profile: Profile, steps: Sequence[Step]) -> dict[str, float] | None:
    count = min(TRIED, len(steps))
    chosen = [steps[place * len(steps) // count] for place in range(count)]
    reading = _Reading("", task, profile)
    try:
        right = [(step, own.text) for step in chosen if (own := task.target(step))]
        found = Counter(
            cause
            for shift in _SHIFTS
            if shift < len(right)
            for (step, _), (_, text) in zip(right, right[shift:] + right[:shift], strict=True)
            if (cause := reading.cause(Answer(step, text, {}))) in PLACED
        )
    except OmnidataError:  # a plug-in's: chance is not known then
        return None
    if not (wrong := found.total()):
        return None
    return {cause: round(found[cause] / wrong, 4) for cause in _READINGS}


@dataclass(frozen=True, slots=True)
class _Reading:
    """A way to read answers: a task with its options, and its rules.

    Attributes:
        way: the option that chooses it.
    """

    way: str
    task: Asking
    profile: Profile

    def judge(self, one: Answer) -> tuple[Verdict, str]:
        verdict = self.profile.judge(one.step, one.text, one.receipt)
        values = dict(zip(self.profile.values, verdict.values, strict=True))
        return verdict, mark_of(verdict.outcome, values)

    def is_right(self, one: Answer) -> bool:
        return self.judge(one)[1] == "right"

    def cause(self, one: Answer) -> Cause | None:
        verdict, mark = self.judge(one)
        if mark in ("right", "unjudged"):
            return None
        explanation = self.task.explanation(
            one.step, verdict, one.text, profile=self.profile.name, receipt=one.receipt
        )
        return explanation.diagnosis.cause if explanation.diagnosis else None

    def acts(self, one: Answer) -> bool:
        if isinstance(self.task, AskingInDialect):
            return self.task.reader.acts(one.step, one.text, one.receipt)
        return self.judge(one)[0].outcome == "ok"

    def is_exact(self, one: Answer) -> bool:
        """Whether the released parser of the dialect reads the answer."""
        if not isinstance(self.task, AskingInDialect):
            return False
        receipt = self.task.reader.receipt_and_size(one.step, one.receipt)[1]
        return self.task.reader.is_read(one.text, receipt, "strict")

    def count(self, tried: Sequence[Answer]) -> _Form:
        acting = [one for one in tried if self.acts(one)]
        exact = [one for one in tried if self.is_exact(one)] if acting else []
        # Ends and waits count as the form too, if enough of the other answers act in it.
        ends = [one for one in exact if one not in acting]
        acts = acting + (ends if len(ends) <= _ENDS * len(acting) else [])
        right = sum(map(self.is_right, acts))
        return _Form(self.way, len(acts), sum(one in acts for one in exact), right)


@dataclass(frozen=True, slots=True)
class _Form:
    """How many of the tried answers act in a form, are read by its released parser, are right."""

    way: str
    acts: int
    exact: int
    right: int


def other_unit(
    task: Asking,
    profile: Profile,
    places: Mapping[str, Any],
    kept: Kept,
    *,
    wrong: int,
    judged: int,
) -> Reason | None:
    """Return a reason if most places are right in one other reading, by more than chance.

    `places` is the result of `count_misplaced`; `wrong` and `judged` are numbers of steps.
    """
    if not places:
        return None
    missed, (reading, count) = places["missed"], next(iter(places["readings"].items()))
    cause: Cause = "axes_swapped" if reading == "y before x" else "other_unit"
    chance = (places["by_chance"] or {}).get(cause, _CHANCE)
    bounds = wilson(count, missed)
    if count < max(2, _MOST * missed, _NOTICED * judged) or not bounds or bounds[0] <= 2 * chance:
        return None
    own = _Reading("", task, profile)
    affected = [one for one in kept if own.cause(one) == cause][:_READ_AGAIN]
    how = f"when read as {reading}" if cause == "other_unit" else "with y before x"
    what = f"{count:,} of {plural(wrong, 'wrong answer')} are right {how}"
    if places["by_chance"]:
        what += f" (by chance {100 * chance:.1f} % of those at a wrong place)"
    others = _other_readings(task, profile, units=True) if affected else ()
    forms = [other.count(affected) for other in others]
    sure = [form for form in forms if form.right >= _SURE * len(affected)]
    return Reason("unit", count, wrong, what, _ways(sure))


def other_dialect(
    task: Asking, profile: Profile, outcomes: Mapping[str, int], kept: Kept
) -> Reason | None:
    """Return a reason if most answers are in another form: a dialect, or the task's own.

    Either most of them act there alone, as the released parser reads them or a quarter of them
    rightly; or most are right there, and are wrong here for another reason than their unit. Prose
    is no act, although many readers take it for an end.
    """
    own, answers = _Reading("", task, profile), [*kept]
    tried = answers[:: -(-len(answers) // _READ_AGAIN)] if answers else []
    wrong = [one for one in tried if not own.is_right(one)]
    rights, half = len(tried) - len(wrong), max(1.0, _MOST * len(tried))
    if not tried or rights >= _MOST * len(tried):
        return None
    lost = [one for one in wrong if not own.acts(one)]
    in_unit = [one for one in tried if own.cause(one) not in _READINGS]
    if max(len(lost), len(in_unit)) < half:
        return None
    least = max(2.0, half, _BETTER * rights)
    forms: list[_Form] = []
    for other in _other_readings(task, profile, units=False):
        found = other.count(lost if len(lost) >= half else [])
        if found.acts >= half and (found.exact >= half or found.right >= max(2.0, half / 2)):
            forms.append(found)
            continue
        whole = other.count(in_unit if len(in_unit) >= least else [])
        if whole.right >= least:
            forms.append(whole)
    if not forms:
        return None
    best = max(form.right for form in forms)
    forms = [form for form in forms if form.right >= _ALIKE * best]
    ways, acts = _ways(forms), max(form.acts for form in forms)
    unread, read = outcomes.get("unparsed", 0), outcomes.get("ok", 0)
    here = f" as {task.dialect.name} writes them" if isinstance(task, AskingInDialect) else ""
    if unread >= _MOST * (unread + read):
        what = f"{unread:,} of {plural(unread + read, 'answer')} cannot be read{here}; of "
        what += f"{len(tried)} that were tried {acts} can in another form"
        return Reason("dialect", unread, unread + read, what, ways)
    what = f"of {plural(len(tried), 'answer')} that were tried {rights} are right when read"
    what += f"{here}, and {best} in another form"
    return Reason("dialect", len(tried) - rights, len(tried), what, ways)


def _other_readings(task: Asking, profile: Profile, *, units: bool) -> Iterator[_Reading]:
    own = task.dialect.name if isinstance(task, AskingInDialect) else None
    dropped = {"dialect", "system", "coordinates"}
    kept = {name: value for name, value in task.options.items() if name not in dropped}
    spaces = task.allowed.get("coordinates", ()) if units else ()
    given: list[tuple[str, dict[str, str]]] = []
    if own:
        given.append(("no dialect", {}))
    else:
        unit = task.options.get("coordinates")
        given += [(f"-T coordinates={s}", {"coordinates": s}) for s in spaces if s != unit]
    given += [(f"--dialect {name}", {"dialect": name}) for name in dialects() if name != own]
    for way, options in given:
        try:
            other = get_task(task.name, kept | options)
        except OmnidataError:
            continue
        rules = other.profiles.get(profile.name.partition("+")[0])
        if rules is not None:
            yield _Reading(way, other, rules)


def _ways(forms: Sequence[_Form]) -> str:
    flag = "--dialect "
    ordered = sorted(forms, key=lambda form: (-form.exact, -form.right, -form.acts))
    named = [form.way.removeprefix(flag) for form in ordered if form.way.startswith(flag)]
    ways = [form.way for form in forms if not form.way.startswith(flag)]
    if named:
        more = f" (and {len(named) - _NAMED} more)" if len(named) > _NAMED else ""
        ways.append(flag + " or ".join(named[:_NAMED]) + more)
    return f"Score with {', or '.join(ways)}." if ways else ""

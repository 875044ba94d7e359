"""The one reason for which most of a score is lost or wrong, with the option that fixes it.

A score of 0.0 over answers in another unit says nothing about the model. Such a reason stands in
`results.json` under `headline`, and is shown beside the score.
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
from omnidata.tasks.explaining import mark_of
from omnidata.tasks.profile import Profile
from omnidata.types import Cause, LoadedDataset, Step

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
"""What chance gives, where the data cannot tell: all targets are alike."""
_BETTER: Final = 1.5
"""So many times as many answers are right in the form that was meant."""
_NAMED: Final = 4
PLACED: Final[tuple[Cause, ...]] = ("near_miss", "wrong_element", "other_unit", "axes_swapped")
"""The causes of answers whose place alone is wrong."""
_READINGS: Final = PLACED[2:]

Kind = Literal["unjudged", "skipped", "dialect", "unit"]


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer that was kept.

    Attributes:
        number: of its step.
        step: what was asked.
        text: the answer.
        receipt: what the model was shown.
    """

    number: int
    step: Step
    text: str
    receipt: Mapping[str, Any]


class Kept:
    """At most `TRIED` answers, spread evenly over those that come.

    Args:
        steps: what was asked.
    """

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

    def __iter__(self) -> Iterator[Heard]:
        for number, answer in self._held:
            yield Heard(number, self._steps[number], answer.output or "", answer.receipt)


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for which a score is not to be published.

    Attributes:
        kind: "unjudged" or "skipped" steps, answers in another "dialect" or in another "unit".
        count: so many steps or answers.
        of: of so many.
        what: it, in a sentence.
        fix: what to do; empty where nothing is known to help.
    """

    kind: Kind
    count: int
    of: int
    what: str
    fix: str

    def as_dict(self) -> dict[str, Any]:
        """The reason as a JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


def lines_of(results: Mapping[str, Any]) -> list[str]:
    """The reasons of results in sentences, each with its fix; none where the score stands."""
    return [" ".join(filter(None, (f"{one['what']}.", one["fix"]))) for one in _reasons_of(results)]


def _reasons_of(results: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
    found: Sequence[Mapping[str, str]] = results.get("headline", ())
    return found


# What became of the steps.


def lost_steps(
    source: LoadedDataset | None, steps: Sequence[Step], judged: npt.NDArray[np.bool_]
) -> Iterator[Reason]:
    """Why most rows are no steps, or most steps cannot be judged.

    Args:
        source: the data with their findings; None where nobody has them.
        steps: that were asked about.
        judged: bool (N,), aligned with the steps.
    """
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
    kinds = Counter(one.code for one in findings)
    if not kinds:
        return None
    code = kinds.most_common(1)[0][0]
    return next(one for one in findings if one.code == code)


def _because(why: Finding | None) -> str:
    return f": [{why.code}] {why.what}, as at {why.where}"[:300] if why else ""


def _remedy(why: Finding | None) -> str:
    return f"Fix: {why.remedy}." if why and why.remedy else ""


# What became of the answers.


def count_misplaced(
    task: Asking, profile: Profile, steps: Sequence[Step], why: Mapping[tuple[Cause, str, str], int]
) -> dict[str, Any]:
    """How many answers are at a wrong place, and are right in another reading, also by chance.

    Chance is measured with answers that do not look at the screen but know where things lie: the
    right answers to other steps, in the right unit. Of those whose place is wrong, a share is
    right in another unit.

    Args:
        task: the benchmark with its options.
        profile: that judged.
        steps: what was asked.
        why: how many answers are wrong for each cause, reading and label of the target.

    Returns:
        `missed`, `readings` by reading, and `by_chance` by cause, a share of what is missed; None
        where no right answer is wrong for another step. Empty where no answer is right in another
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
    try:
        right = [(step, own.text) for step in chosen if (own := task.target(step))]
        found = Counter(
            cause
            for shift in _SHIFTS
            if shift < len(right)
            for (step, _), (_, text) in zip(right, right[shift:] + right[:shift], strict=True)
            if (cause := _cause(task, profile, Heard(0, step, text, {}))) in PLACED
        )
    except OmnidataError:  # a plug-in's: chance is not known then
        return None
    if not (wrong := found.total()):
        return None
    return {cause: round(found[cause] / wrong, 4) for cause in _READINGS}


def _cause(task: Asking, profile: Profile, heard: Heard) -> Cause | None:
    verdict = profile.judge(heard.step, heard.text, heard.receipt)
    values = dict(zip(profile.values, verdict.values, strict=True))
    if mark_of(verdict.outcome, values) in ("right", "unjudged"):
        return None
    told = task.explanation(
        heard.step, verdict, heard.text, profile=profile.name, receipt=heard.receipt
    )
    return told.diagnosis.cause if told.diagnosis else None


def _is_right(task: Asking, profile: Profile, heard: Heard) -> bool:
    verdict = profile.judge(heard.step, heard.text, heard.receipt)
    values = dict(zip(profile.values, verdict.values, strict=True))
    return mark_of(verdict.outcome, values) == "right"


def other_unit(
    task: Asking,
    profile: Profile,
    places: Mapping[str, Any],
    kept: Kept,
    *,
    wrong: int,
    judged: int,
) -> Reason | None:
    """That most places are right in one other reading, where chance does not explain it.

    Args:
        task: the benchmark with its options.
        profile: that judged.
        places: what `count_misplaced` gave.
        wrong: how many answers are wrong, for whatever cause.
        judged: how many steps were judged.
        kept: answers of the run.
    """
    if not places:
        return None
    missed, (reading, count) = places["missed"], next(iter(places["readings"].items()))
    cause: Cause = "axes_swapped" if reading == "y before x" else "other_unit"
    chance = (places["by_chance"] or {}).get(cause, _CHANCE)
    bounds = wilson(count, missed)
    if count < max(2, _MOST * missed, _NOTICED * judged) or not bounds or bounds[0] <= 2 * chance:
        return None
    affected = [one for one in kept if _cause(task, profile, one) == cause][:_READ_AGAIN]
    how = f"when read as {reading}" if cause == "other_unit" else "with y before x"
    what = f"{count:,} of {plural(wrong, 'wrong answer')} are right {how}"
    if places["by_chance"]:
        what += f" (by chance {100 * chance:.1f} % of those at a wrong place)"
    forms = [_Form.of(*other, affected) for other in _others(task, profile)] if affected else []
    sure = [form for form in forms if form.right >= _SURE * len(affected)]
    return Reason("unit", count, wrong, what, _ways(sure))


def other_dialect(
    task: Asking, profile: Profile, outcomes: Mapping[str, int], kept: Kept
) -> Reason | None:
    """That most answers are in another form: a dialect, or the task's own.

    Either most of them act there alone, as the released parser reads them or a quarter of them
    rightly; or most are right there, and are not as they were read, for another reason than their
    unit. Prose is no act, although many readers take it for an end.

    Args:
        task: the benchmark with its options.
        profile: that judged.
        outcomes: of all steps.
        kept: answers of the run.
    """
    heard = [*kept]
    tried = heard[:: -(-len(heard) // _READ_AGAIN)] if heard else []
    rights = [_is_right(task, profile, one) for one in tried]
    if not tried or sum(rights) >= _MOST * len(tried):
        return None
    causes = [_cause(task, profile, one) for one in tried]
    named = list(zip(tried, causes, strict=True))
    lost = [
        one
        for one, right in zip(tried, rights, strict=True)
        if not right and not _acts(task, profile, one)
    ]
    others = [one for one, cause in named if cause not in _READINGS]
    half = max(1.0, _MOST * len(tried))
    least = max(2.0, half, _BETTER * sum(rights))
    forms: list[_Form] = []
    if max(len(lost), len(others)) < half:
        return None
    for way, other, rules in _others(task, profile, units=False):
        found = _Form.of(way, other, rules, lost if len(lost) >= half else [])
        if found.acts >= half and (found.exact >= half or found.right >= max(2.0, half / 2)):
            forms.append(found)
        elif len(others) >= least:
            whole = _Form.of(way, other, rules, others)
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
    what = f"of {plural(len(tried), 'answer')} that were tried {sum(rights)} are right when read"
    what += f"{here}, and {best} in another form"
    return Reason("dialect", len(tried) - sum(rights), len(tried), what, ways)


@dataclass(frozen=True, slots=True)
class _Form:
    way: str
    acts: int
    exact: int
    right: int

    @classmethod
    def of(cls, way: str, task: Asking, profile: Profile, tried: Sequence[Heard]) -> _Form:
        acting = [one for one in tried if _acts(task, profile, one)]
        if not acting or not isinstance(task, AskingInDialect):
            return cls(way, len(acting), 0, sum(_is_right(task, profile, one) for one in acting))
        exact = [
            one
            for one in tried
            if task.is_read(one.text, task.receipt_and_size(one.step, one.receipt)[1], "strict")
        ]
        # Ends and waits are said in the form too, where enough of the others act in it.
        said = [one for one in exact if one not in acting]
        acting += said if len(said) <= _ENDS * len(acting) else []
        right = sum(_is_right(task, profile, one) for one in acting)
        return cls(way, len(acting), sum(one in acting for one in exact), right)


def _acts(task: Asking, profile: Profile, heard: Heard) -> bool:
    if isinstance(task, AskingInDialect):
        return task.acts(heard.step, heard.text, heard.receipt)
    return profile.judge(heard.step, heard.text, heard.receipt).outcome == "ok"


def _others(
    task: Asking, profile: Profile, *, units: bool = True
) -> Iterator[tuple[str, Asking, Profile]]:
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
            yield way, other, rules


def _ways(forms: Sequence[_Form]) -> str:
    flag = "--dialect "
    ordered = sorted(forms, key=lambda form: (-form.exact, -form.right, -form.acts))
    named = [form.way.removeprefix(flag) for form in ordered if form.way.startswith(flag)]
    ways = [form.way for form in forms if not form.way.startswith(flag)]
    if named:
        more = f" (and {len(named) - _NAMED} more)" if len(named) > _NAMED else ""
        ways.append(flag + " or ".join(named[:_NAMED]) + more)
    return f"Score with {', or '.join(ways)}." if ways else ""

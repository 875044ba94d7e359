"""Explanations of verdicts, shared by several benchmarks.

A profile judges an answer right or wrong. An explanation follows from the verdict and never
contradicts it. Positions are in pixels of the picture that they are drawn on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from omnidata.actions import (
    Action,
    Point,
    Region,
)
from omnidata.tasks.coordinates import in_pixels, on_screen
from omnidata.tasks.diagnosis import REACH, bare_diagnosis, diagnose
from omnidata.tasks.marks import mark_of
from omnidata.types import (
    NOTHING,
    READ,
    UNREAD,
    Cause,
    Diagnosis,
    Explanation,
    Mark,
    Outcome,
    Overlays,
    Step,
    Verdict,
)

if TYPE_CHECKING:
    from omnidata.tasks.profile import Profile

SCREENSHOT: Final = "screenshot"
"""The role of the picture that actions are drawn on."""

_BRIEF: Final = 40
_UNANSWERED: Final[Mapping[Outcome, str]] = {
    "truncated": "the answer was cut off before its end, which never counts as right",
    "refused": "the model refused to answer",
    "api_error": "the request failed without an answer",
    "media_error": "a medium of the step could not be sent",
    "missing": "there is no answer to this step",
}
_UNREAD_CAUSES: Final[Mapping[Outcome, Cause]] = {
    "unparsed": "format",
    "truncated": "truncated",
    "refused": "refused",
    "api_error": "no_answer",
    "media_error": "no_answer",
    "missing": "no_answer",
}


class _Lazy(Explanation):
    """An explanation that computes its members on first access, with the methods of `_Members`.

    Scoring reads the label and the diagnosis of every wrong answer, but neither its sentence nor
    its pictures.
    """

    __slots__ = ("_members",)
    _members: _Members | None

    def __init__(self, members: _Members | None = None, **known: object) -> None:
        object.__setattr__(self, "_members", members)
        for name, value in known.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:  # called for what is not there yet
        members = object.__getattribute__(self, "_members")  # a copy has all but this
        if name not in _NAMES:
            raise AttributeError(name)
        value = getattr(members, name)()
        object.__setattr__(self, name, value)
        return value


_NAMES: Final = frozenset(one.name for one in fields(Explanation))


class _Members(msgspec.Struct):
    """Computes the members of an explanation: a method, or a known value, for each.

    Subclasses explain, label and diagnose a parsed answer; all else follows from the verdict.
    """

    verdict: Verdict | None
    profile: Profile

    @property
    def has_labels(self) -> bool:
        raise NotImplementedError

    def explain_parsed(self, parsed: Mapping[str, Any], right: bool) -> str:
        raise NotImplementedError

    def label_parsed(self, parsed: Mapping[str, Any]) -> str:
        raise NotImplementedError

    def diagnose_parsed(self, parsed: Mapping[str, Any]) -> Diagnosis:
        raise NotImplementedError

    def mark(self) -> Mark | None:
        verdict = self.verdict
        if verdict is None:
            return None
        return _cached_mark(verdict.outcome, tuple(self.profile.values), verdict.values)

    def diagnosis(self) -> Diagnosis | None:
        verdict = self.verdict
        if verdict is None or self.mark() in ("right", "unjudged"):
            return None
        cause = _UNREAD_CAUSES.get(verdict.outcome)
        return bare_diagnosis(cause) if cause else self.diagnose_parsed(verdict.parsed or {})

    def sentence(self) -> str:
        verdict, mark = self.verdict, self.mark()
        if verdict is None:
            return ""
        because = f": {verdict.reason}" if verdict.reason else ""
        if mark == "unjudged":
            return f"the row cannot be judged{because}"
        if mark == "none":
            return _UNANSWERED.get(verdict.outcome, "the step has no answer")
        if verdict.outcome == "unparsed":
            return f"no answer could be parsed{because}"
        right = mark == "right"
        return self.explain_parsed(verdict.parsed or {}, right) + ("" if right else because)

    def answer_label(self) -> str:
        verdict = self.verdict
        if verdict is None or not self.has_labels:
            return ""
        if verdict.outcome not in ("ok", "unparsed"):
            return NOTHING
        if verdict.parsed is None:
            return UNREAD if verdict.outcome == "unparsed" else READ
        return self.label_parsed(verdict.parsed) or UNREAD


@lru_cache(maxsize=1024)  # there are few different verdicts
def _cached_mark(outcome: Outcome, names: tuple[str, ...], values: tuple[object, ...]) -> Mark:
    return mark_of(outcome, dict(zip(names, values, strict=True)))


class _FromCallables(_Members):
    sentence_of: Callable[[Mapping[str, Any], bool], str]
    label_of: Callable[[Mapping[str, Any]], str] | None
    diagnosis_of: Callable[[Mapping[str, Any]], Diagnosis]
    overlays: Callable[[], Mapping[str, Overlays]]

    @property
    def has_labels(self) -> bool:
        return self.label_of is not None

    def explain_parsed(self, parsed: Mapping[str, Any], right: bool) -> str:
        return self.sentence_of(parsed, right)

    def label_parsed(self, parsed: Mapping[str, Any]) -> str:
        return self.label_of(parsed) if self.label_of else ""

    def diagnose_parsed(self, parsed: Mapping[str, Any]) -> Diagnosis:
        return self.diagnosis_of(parsed)


def explain(
    verdict: Verdict | None,
    profile: Profile,
    sentence: Callable[[Mapping[str, Any], bool], str],
    *,
    target_label: str = "",
    target_labels: tuple[str, ...] = (),
    answer_label: Callable[[Mapping[str, Any]], str] | None = None,
    overlays: Callable[[], Mapping[str, Overlays]],
    noun: str = "primitive",
    frames: str = "target",
    diagnosis: Callable[[Mapping[str, Any]], Diagnosis] = lambda parsed: Diagnosis("rule"),
) -> Explanation:
    """Return an explanation with the parts that all benchmarks have in common.

    Callables are called once, on first access.

    Args:
        verdict: on the answer, if any.
        profile: whose it is.
        sentence: returns why a judged answer is right or wrong, given the parsed answer and
            whether it is right.
        target_label: as in `Explanation`.
        target_labels: as in `Explanation`.
        answer_label: returns the label of a parsed answer; None for benchmarks without labels.
        overlays: drawings by role of the picture.
        noun: the kind of label.
        frames: boxes drawn on pictures.
        diagnosis: returns the diagnosis of a parsed answer that is not right.
    """
    return _Lazy(
        _FromCallables(verdict, profile, sentence, answer_label, diagnosis, overlays),
        target_label=target_label,
        target_labels=target_labels,
        noun=noun,
        frames=frames,
    )


def explain_values(verdict: Verdict, profile: Profile, *, right: bool) -> str:
    """Return the sentence for a verdict that has values only."""
    if right:
        return "the answer is right"
    values = zip(profile.values, verdict.values, strict=True)
    wrong = [name for name, value in values if value is False or value == 0]
    return f"the profile rejects {', '.join(wrong)}" if wrong else "the answer is not fully right"


# Answers that are actions like the steps' own.


def explain_by_action(
    step: Step,
    verdict: Verdict | None,
    profile: Profile,
    said: Action | None,
    *,
    receipt: Mapping[str, Any] | None,
    sentence: Callable[[Action, Action, Overlays, bool], str],
    reach: float = REACH,
    rules_known: bool = True,
) -> Explanation:
    """Explain an answer that is an action by comparing it with the step's target.

    Args:
        step: the step; its action is the target.
        verdict: on the answer.
        profile: whose verdict it is.
        said: the answer with its original coordinates; None if it is not an action.
        receipt: of the answer.
        sentence: returns the reason, given target, answer, overlays and whether it is right.
        reach: how far from a target point an answer may be, in thousandths of the screen.
        rules_known: as in `diagnose`.
    """
    members = _FromAction(
        verdict, profile, step, step.action, said, receipt, sentence, reach, rules_known
    )
    label = step.action.label if step.action else ""
    return _Lazy(members, target_label=label)


class _FromAction(_Members):
    step: Step
    wanted: Action | None
    said: Action | None
    receipt: Mapping[str, Any] | None
    sentence_of: Callable[[Action, Action, Overlays, bool], str]
    reach: float
    rules_known: bool

    def noun(self) -> str:
        return "primitive"

    def frames(self) -> str:
        return "target"

    def target_labels(self) -> tuple[str, ...]:
        wanted = self.wanted
        return tuple(one.label for one in (wanted, *wanted.then)) if wanted else ()

    def overlays(self) -> Mapping[str, Overlays]:
        return {SCREENSHOT: self._places()}

    def _places(self) -> Overlays:
        screen, said = self.step.screen, self.said
        targets = (self.wanted.start, self.wanted.end) if self.wanted else ((), ())
        answers = [
            on_screen(self.step, regions[0], self.receipt)
            if regions and isinstance(regions[0], Point)
            else None
            for regions in ((said.start, said.end) if said else ((), ()))
        ]
        target, target_end = (
            tuple(in_pixels(region, screen) for region in regions) for regions in targets
        )
        return Overlays(target, target_end, *answers)

    @property
    def has_labels(self) -> bool:
        return self.wanted is not None

    def explain_parsed(self, parsed: Mapping[str, Any], right: bool) -> str:
        if self.wanted is None or self.said is None:
            assert self.verdict
            return explain_values(self.verdict, self.profile, right=right)
        return self.sentence_of(self.wanted, self.said, self._places(), right)

    def label_parsed(self, parsed: Mapping[str, Any]) -> str:
        if self.said:
            return self.said.label
        return UNREAD if self.verdict and self.verdict.outcome == "unparsed" else _brief(parsed)

    def diagnose_parsed(self, parsed: Mapping[str, Any]) -> Diagnosis:
        assert self.verdict
        names, values = self.profile.values, self.verdict.values
        same_type = values[names.index("type_match")] if "type_match" in names else None
        wanted, said = self.wanted, self.said
        return diagnose(
            self.step,
            (wanted, *wanted.then) if wanted else (),
            (said, *said.then) if said else (),
            receipt=self.receipt,
            reach=self.reach,
            same_type=bool(same_type),
            # A profile with a value for the type compares types wherever the places are.
            rules_known=self.rules_known or ("type_match" in names and not same_type),
        )


def _brief(parsed: Mapping[str, Any]) -> str:
    kind = parsed.get("kind")
    if not isinstance(kind, str):
        values = list(parsed.values())
        kind = str(values[0]) if len(values) == 1 else json.dumps(parsed, ensure_ascii=False)
    return kind if len(kind) <= _BRIEF else kind[: _BRIEF - 1] + "…"


# Turns in which several things are done: what they are, and where.


@dataclass(frozen=True, slots=True)
class Turn:
    """The actions of a turn.

    Attributes:
        kinds: names of the actions, in order.
        starts: their positions in pixels of the screen, without ends of drags.
        ends: the ends of drags.
    """

    kinds: tuple[str, ...] = ()
    starts: tuple[Region, ...] = ()
    ends: tuple[Region, ...] = ()

    @property
    def label(self) -> str:
        """The first action that is not a pointer move; empty if there is none."""
        more = (kind for kind in self.kinds if kind not in ("move", "moveTo"))
        return next(more, self.kinds[0] if self.kinds else "")


def overlays_of(target: Turn | None, said: Turn | None) -> Overlays:
    """Return the overlays of a turn and an answer; None marks an unreadable one."""
    start, end = (
        next((region for region in regions if isinstance(region, Point)), None)
        for regions in ((said.starts, said.ends) if said else ((), ()))
    )
    return Overlays(target.starts if target else (), target.ends if target else (), start, end)

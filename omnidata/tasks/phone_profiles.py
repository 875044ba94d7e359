"""Profiles for phones: an answer is read as a move and held against the expert's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from omnidata.actions import Point, Screen, Space, convert
from omnidata.metrics import agentcpm_match, aitw_match, aitz_match
from omnidata.metrics.agentcpm_answer import Reading
from omnidata.metrics.omnigui_answer import Unread
from omnidata.metrics.phone_answer import Answer, Read, parse
from omnidata.phone import Kind, Move, Pair, Truth
from omnidata.tasks.episode_profiles import EpisodeProfile
from omnidata.tasks.phone_target import Body
from omnidata.tasks.resizing import Resizing, resizing
from omnidata.types import Outcome, Step, Verdict

TruthOf = Callable[[Mapping[str, Any], Screen], Truth | None]
Rule = Callable[[Truth, Move, Screen], tuple[bool, bool] | None]
"""Type match and exact match; None for a step that the rule's source leaves out."""

_UNIT: Screen = (1, 1)


def _unsized(
    rule: Callable[[Truth, Move], tuple[bool, bool] | None],
) -> Rule:
    """A rule that needs no size of the screen."""
    return lambda truth, said, screen: rule(truth, said)


RULES: Mapping[str, Rule] = {
    "aitw": _unsized(aitw_match.released),
    "aitw-fixed": _unsized(aitw_match.fixed),
    "agentcpm": _unsized(agentcpm_match.released),
    "agentcpm-fixed": _unsized(agentcpm_match.fixed),
    "agentcpm-ac": _unsized(agentcpm_match.released_androidcontrol),
    "agentcpm-ac-fixed": _unsized(agentcpm_match.fixed_androidcontrol),
    "aitz": aitz_match.released,
    "aitz-fixed": aitz_match.fixed,
}
"""The evaluators, each with the rule that it has and with what is broken in it mended."""

_READ_AS_RELEASED = ("agentcpm", "agentcpm-ac")


class PhoneProfile(EpisodeProfile):
    """One of `RULES` over the steps of a phone dataset.

    Goal progress is the share of an episode's steps before the first wrong one, but for Android in
    the Wild, whose partial match is the share of all right ones.

    Args:
        name: of the rule.
        truth: what a row says was done, and what was there.
        read: reads an answer in the form that the task's prompt asks for.
        body: writes a move in that form; a `ValueError` for what has none.
        by: the axes of the table.
        space: the unit of coordinates that the prompt asks for.
    """

    def __init__(
        self,
        name: str,
        truth: TruthOf,
        read: Read,
        body: Body,
        by: Mapping[str, Sequence[str]],
        space: Space,
    ) -> None:
        """Take what differs between datasets."""
        self._space, self._body = space, body
        self.name = name
        self.by = by
        self.goal_progress: Literal["GP_ratio", "GP_prefix"] = (
            "GP_ratio" if name.startswith("aitw") else "GP_prefix"
        )
        self._rule = RULES[name]
        self._truth = truth
        self._read = read
        self._reading: Reading = "released" if name in _READ_AS_RELEASED else "meant"

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and hold it against the step's truth.

        Pixels are those of the screenshot as the model was shown it, which the receipt tells.
        """
        answer = parse(text, self._read, reading=self._reading)
        if isinstance(answer, Unread):
            return Verdict(
                "unparsed", self._values(step, None, as_prompted=False), None, answer.reason
            )
        move = relative(answer.move, step, receipt)
        values = self._values(step, move, as_prompted=answer.as_prompted)
        return Verdict("ok", values, self._parsed(answer))

    def _parsed(self, answer: Answer) -> dict[str, Any]:
        """The move as the prompt asks for it, where it has such a form, in its unit."""
        move = answer.move
        if move.space == self._space:
            lift = move.lift if move.kind is Kind.SWIPE else None
            with suppress(ValueError):
                return self._body(move, [list(pair) for pair in (move.touch, lift) if pair])
        return {"form": answer.form, **move.as_dict()}

    def failed(self, step: Step, outcome: Outcome) -> Verdict:
        """The verdict on a step without an answer: wrong, with the reason as its outcome."""
        return Verdict(outcome, self._values(step, None, as_prompted=False))

    def _values(
        self, step: Step, said: Move | None, *, as_prompted: bool
    ) -> tuple[bool | None, bool | None, bool]:
        truth = self._truth(step.source, step.screen)
        unplaced = self._space == "px" and min(step.screen) < 1
        if truth is None or (unplaced and truth.move.touch):
            return None, None, as_prompted
        # What no answer can be held against is left out for all models alike: the expert's own
        # move tells whether the rule's source has such a step.
        found = self._rule(truth, said or truth.move, step.screen)
        if found is None:
            return None, None, as_prompted
        return (*found, as_prompted) if said is not None else (False, False, as_prompted)

    def _stated_length(self, step: Step) -> int | None:
        """As the row states it; an AndroidControl record has as many steps as actions."""
        value = step.source.get("episode_length")
        if isinstance(value, list):
            value = value[0] if value else None
        return value if type(value) is int else None


def relative(move: Move, step: Step, receipt: Mapping[str, Any] | None) -> Move:
    """A move with its places from 0 to 1 of the screen.

    Args:
        move: as a model wrote it.
        step: what it was asked about.
        receipt: of the answer.

    Raises:
        PredictionError: the receipt is none that omnidata writes.
    """
    resized = resizing(receipt, where=step.sample_id) if move.space == "px" else None

    def scaled(pair: Pair | None) -> Pair | None:
        return _scaled(pair, move.space, step.screen, resized) if pair else None

    low = scaled(move.box[:2]) if move.box else None
    high = scaled(move.box[2:]) if move.box else None
    return replace(
        move,
        touch=scaled(move.touch),
        lift=scaled(move.lift),
        box=(*low, *high) if low and high else None,
        space="rel",
    )


def _scaled(pair: Pair, space: Space, screen: Screen, resized: Resizing | None) -> Pair | None:
    if space == "norm1000":
        return pair[0] / 1000, pair[1] / 1000
    if space == "px" and min(screen) < 1:
        return None
    if resized:
        pair = resized.to_screen(pair)
    found = convert(Point(pair[0], pair[1], space), "rel", screen if space == "px" else _UNIT)
    return found.x, found.y

"""GUI-R1's own rule for steps on phones, with its three figures.

Source: ritzz-ai/GUI-R1 at d43eea2, `guir1/eval/eval_omni.py` and `guir1/inference/*.py`.

* TM, its Type: the action has the right name. It is over all steps.
* GR: of a click or long press, the place is less than 0.14 of the screen away.
* EM, its Step: GR, and of a text, app or scroll the token F1 of the text is at least 0.5. Other
  steps are in neither. Whether the type is right does not matter to either.

An answer without a place is at (0, 0), and one without a text says "no input text". In the dialect
`gui-r1` the place and the text count beside any action, as in the release: `complete` with the
right place is a hit. A kind of action with no hit at all is in none of the released totals:
`released` in the results has those. Directions are compared by their meaning, where the release
compares words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from omnidata.actions import Action, Pair, Point, Space, centre, finger_way
from omnidata.dialects import UnreadError
from omnidata.dialects.r1_lists import ReleasedFields, read_fields
from omnidata.metrics.texts import token_f1
from omnidata.tasks.benchmark import ParsedAnswer, Values
from omnidata.tasks.coordinates import sent_size
from omnidata.tasks.phones.actions import Truth, direction_of, kind_of, touch_of
from omnidata.tasks.phones.rules import Evaluator, PhoneRule, TruthOf
from omnidata.tasks.totals import Column, PartTotals
from omnidata.types import Step, Verdict, VerdictColumns

REACH: Final = 0.14
_F1: Final = 0.5
_NOTHING: Final = "no input text"
_NO_PLACE: Final[Pair] = (0.0, 0.0)
_NO_ANSWER: Final = Action("none")
_PLACED: Final = ("tap", "long_press")
_WORDY: Final = ("type", "open_app", "swipe")


def rule(truth: Truth, said: Action) -> tuple[bool, bool]:
    """Return whether type and place, or text, are right; of other actions twice the type.

    Examples:
        >>> expert = Truth(Action("type", text="Shanghai shopping mall"))
        >>> rule(expert, Action("open_app", app="shopping mall"))
        (False, True)
    """
    action = truth.action
    same = kind_of(action) == kind_of(said)
    if action.kind in _PLACED:
        x, y = touch_of(action) or _NO_PLACE
        across, down = touch_of(said) or _NO_PLACE
        return same, (x - across) ** 2 + (y - down) ** 2 < REACH**2
    if action.kind in _WORDY:
        return same, _is_hit(_text(said) or _NOTHING, action)
    return same, same


def _text(action: Action) -> str | None:
    text = {"type": action.text, "open_app": action.app, "swipe": direction_of(action)}
    return text.get(action.kind)


def _is_hit(said: str, wanted: Action) -> bool:
    """An empty expert text never matches."""
    text = _text(wanted)
    return token_f1(said, _NOTHING if text is None else text) >= _F1


class GuiR1Reader:
    """Takes the place and the text of an answer in GUI-R1's dialect, whichever its action is.

    What the action itself holds counts first; the released parser finds the rest.
    """

    dialect = "gui-r1"

    def __init__(self, truth: Callable[[Step], Truth | None]) -> None:
        self._truth = truth

    def judge(
        self,
        step: Step,
        text: str,
        action: Action | None,
        verdict: Verdict,
        receipt: Mapping[str, Any] | None,
    ) -> Verdict:
        truth = self._truth(step)
        if truth is None or verdict.values[0] is None:
            return verdict
        sent, kind = sent_size(receipt, where=step.sample_id), truth.action.kind
        try:
            fields = read_fields(text)
        except UnreadError:
            fields = ReleasedFields()
        same, hit, grounded = verdict.values
        if kind in _PLACED and sent:
            start = action.start[0] if action and action.start else Point(*fields.point, "px")
            point = centre(start)
            place = Point(point.x / sent.size[0], point.y / sent.size[1], "rel")
            _, hit = rule(truth, Action("tap", (place,)))
            grounded = hit
        elif kind in _WORDY:
            words = _words(action) if action else None
            hit = _is_hit(words or fields.text, truth.action)
        values = (same or _is_bare(action, truth.action), hit, grounded)
        return Verdict(verdict.outcome, values, verdict.parsed, verdict.reason)


def _is_bare(action: Action | None, wanted: Action) -> bool:
    if action is None or action.kind not in ("tap", "long_press", "scroll"):
        return False
    bare = not action.start if action.kind != "scroll" else finger_way(action) is None
    named = replace(action, kind="swipe") if action.kind == "scroll" else action
    return bare and action.button == "left" and kind_of(named) == kind_of(wanted)


def _words(action: Action) -> str | None:
    if action.kind in ("scroll", "swipe"):
        return finger_way(action)
    return action.app if action.kind == "open_app" else action.text


class GuiR1Totals(PartTotals):
    """The three figures, each over the steps that it is about."""

    def __init__(
        self, by: Mapping[str, Sequence[str]], truth: Callable[[Step], Truth | None]
    ) -> None:
        super().__init__(
            [
                Column("TM", "type_match", meaning="type match"),
                Column("EM", "exact_match", meaning="exact match"),
                Column(
                    "GR",
                    "grounding",
                    meaning="grounding: right places, of the steps that have one",
                ),
            ],
            by=by,
        )
        self._truth = truth

    @property
    def step_metric(self) -> tuple[str, str]:
        """The release's success rate of steps."""
        return "EM", "exact_match"

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the table of `PartTotals`, and as `released` the totals as the script prints them.

        There a kind of action, or of its places and texts, that has no hit is in no total.
        """
        found = super().total(steps, rows)
        kinds = np.array([self._kind_of(step) for step in steps], dtype=object)
        released: dict[str, float | None] = {}
        for name, value in zip(self.columns, self.values, strict=True):
            column = rows.values[value]
            sums: dict[str, list[float]] = defaultdict(list)
            for kind, hit in zip(kinds[~np.isnan(column)], column[~np.isnan(column)], strict=True):
                sums[kind].append(float(hit))
            kept = [hit for hits in sums.values() if any(hits) for hit in hits]
            released[name] = sum(kept) / len(kept) if kept else None
        return {**found, "released": released}

    def _kind_of(self, step: Step) -> str:
        truth = self._truth(step)
        return "" if truth is None else " ".join(map(str, kind_of(truth.action)))


class GuiR1Rule(PhoneRule):
    """GUI-R1's rule; an unreadable answer is at (0, 0) and says "no input text"."""

    def __init__(
        self,
        name: str,
        evaluator: Evaluator,
        truth: TruthOf,
        by: Mapping[str, Sequence[str]],
        space: Space,
    ) -> None:
        super().__init__(name, evaluator, truth, by, space)
        self.totals = GuiR1Totals(by, self.truth_of)
        self.answer_reader = GuiR1Reader(self.truth_of)

    def judge(self, step: Step, parsed: ParsedAnswer[Action] | None) -> Values:
        """Return whether the type, the place or text, and the place are right."""
        same, hit, _ = super().judge(step, parsed)
        truth = self.truth_of(step)
        if parsed is None and truth is not None and same is not None:
            same, hit = rule(truth, _NO_ANSWER)
        return self._in_parts(same, hit, truth)

    def without_answer(self, step: Step) -> Values:
        """Return the values of a step whose request failed, which is never right."""
        same, hit, _ = super().judge(step, None)
        return self._in_parts(same, hit, self.truth_of(step))

    def _in_parts(self, same: Any, hit: Any, truth: Truth | None) -> Values:
        kind = truth.action.kind if truth else ""
        placed = hit if kind in _PLACED else None
        return same, hit if kind in (*_PLACED, *_WORDY) else None, placed


GUI_R1: Final = Evaluator(
    rule,
    140,
    source="GUI-R1 (Luo et al., 2025), eval_omni.py: places and texts count whatever the type is",
    leaves_out="EM and GR: steps without a place or a text",
)
"""Its rule is a `GuiR1Rule`."""

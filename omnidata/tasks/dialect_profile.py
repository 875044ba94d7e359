"""Profiles of a benchmark that is asked in a dialect: its rules, with counts of what was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import structs

from omnidata.dialects import Rules
from omnidata.tasks.benchmark import ParsedAnswer, Receipt
from omnidata.tasks.dialect_answers import DialectAnswer
from omnidata.tasks.profile import Profile
from omnidata.types import Outcome, Step, Verdict, VerdictColumns

if TYPE_CHECKING:
    from omnidata.tasks.asking_in_dialect import AskingInDialect

STRICT: Final = "+strict"
"""Suffix of profiles that read answers as the dialect's released parser does."""
COUNTS: Final = ("read", "read_strict", "expressed", "expressible", "left_out")
"""Values of a verdict beside the profile's own: whether the answer was read, also as the
released parser reads, whether the task could express what was read, whether the dialect can say
what is right; and how many actions the task left out, as it takes one a step."""
UNEXPRESSED: Final = "unexpressed"
"""The key of `Verdict.parsed` for an action that the benchmark has no words for."""
_UNCOUNTED: Final = (None,) * len(COUNTS)
"""The counts of a step that is asked in the task's own words."""


def rules_of(profile: str) -> Rules:
    """Return how a profile reads answers, by its name."""
    return "strict" if profile.endswith(STRICT) else "lenient"


class DialectProfile(Profile):
    """A profile of the benchmark, over answers in the dialect.

    Args:
        asking: reads answers.
        own: judges what was read.
        rules: of the reader.
    """

    def __init__(self, asking: AskingInDialect, own: Profile, rules: Rules) -> None:
        super().__init__(asking.benchmark, own.rule)
        self._asking, self._own, self._rules = asking, own, rules
        self.values = (*own.values, *COUNTS)
        if rules == "strict":
            self.name = own.name + STRICT
            read = f"answers read as {asking.dialect.source}"
            self.source = "; ".join(filter(None, (own.source, read)))

    def judge_text(self, step: Step, text: str, receipt: Receipt) -> Verdict:
        """Read and judge a text, and count what was read."""
        asking = self._asking
        if asking.in_own_words(step):
            return _count_nothing(self._own.judge_text(step, text, receipt))
        known, fed = asking.reader.receipt_and_size(step, receipt)
        found = asking.reader.adopt(step, text, known, fed, self._rules)
        verdict = self._judge_answer(step, found, receipt)
        reader = self.answer_reader
        if reader and reader.dialect == asking.dialect.name:
            action = found.read.actions[0] if found.read else None
            verdict = reader.judge(step, text, action, verdict, known)
        is_read = found.read is not None
        if self._rules == "strict":
            both = asking.reader.is_read(text, fed, "lenient"), is_read
        else:
            both = is_read, asking.reader.is_read(text, fed, "strict")
        counts = (*both, found.adopted is not None, asking.can_express(step), found.left_out)
        return structs.replace(verdict, values=(*verdict.values, *counts))

    def _judge_answer(self, step: Step, found: DialectAnswer, receipt: Receipt) -> Verdict:
        if found.adopted is not None:
            return self._own.judge_parsed(step, found.adopted)
        bare = self._own.judge(step, "", receipt)
        if found.read is None:
            return Verdict("unparsed", bare.values, None, found.reason)
        return Verdict("ok", bare.values, {UNEXPRESSED: found.read.actions[0].label})

    def judge_parsed(
        self, step: Step, parsed: ParsedAnswer[Any] | None, reason: str = ""
    ) -> Verdict:
        """Judge an answer that was read; nothing is counted."""
        return _count_nothing(self._own.judge_parsed(step, parsed, reason))

    def without_answer(self, step: Step, outcome: Outcome) -> Verdict:
        """Return the verdict on a step without an answer; the dialect may still express one."""
        bare = self._own.without_answer(step, outcome)
        counts: tuple[bool | None, ...] = _UNCOUNTED
        if not self._asking.in_own_words(step):
            counts = (None, None, None, self._asking.can_express(step), None)
        return Verdict(outcome, (*bare.values, *counts), bare.parsed, bare.reason)

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the benchmark's table, and under `dialect` the sums of the counts."""
        own = {name: rows.values[name] for name in self._own.values}
        found = self._own.total(steps, replace(rows, values=own))
        counts = {name: rows.values[name] for name in COUNTS}
        sums = {name: int(np.nansum(counts[name])) for name in COUNTS[:3]}
        own_words = sum(map(self._asking.in_own_words, steps))
        return {
            **found,
            "dialect": {
                "name": self._asking.dialect.name,
                "rules": self._rules,
                "answers": int((~np.isnan(counts["read"])).sum()),
                **sums,
                "several": int((np.nan_to_num(counts["left_out"]) > 0).sum()),
                "steps": len(steps) - own_words,
                "expressible": int(np.nansum(counts["expressible"])),
                **({"in_own_words": own_words} if own_words else {}),
            },
        }


def _count_nothing(verdict: Verdict) -> Verdict:
    return structs.replace(verdict, values=(*verdict.values, *_UNCOUNTED))

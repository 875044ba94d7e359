"""A profile: a rule of a benchmark with the reader that it judges by, `--profile NAME`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from omnidata.dialects import UnreadError
from omnidata.tasks.benchmark import Benchmark, Parse, ParsedAnswer, Receipt, Rule
from omnidata.tasks.totals import EpisodeTotals
from omnidata.types import Delivery, Outcome, Step, Verdict, VerdictColumns

if TYPE_CHECKING:
    from omnidata.metrics.paired import Measures

LONGEST: Final = 1 << 20
"""Characters of an answer that are read: 131,072 tokens, above the most that models write (128,000
of OpenAI's and Anthropic's in 2026), of eight characters each, twice those of English prose. The
whole answer is recorded; the verdict says where less was read."""


class Profile:
    """A rule with the reader that it judges by: `--profile NAME`.

    Args:
        benchmark: reads answers for rules without a reader of their own.
        rule: judges what was read.
    """

    def __init__(self, benchmark: Benchmark, rule: Rule[Any]) -> None:
        self.rule = rule
        self.name = rule.name
        self.source, self.leaves_out, self.reach = rule.source, rule.leaves_out, rule.reach
        self._totals = rule.totals
        self.values, self.columns = rule.totals.values, rule.totals.columns
        self.lower_is_better = rule.totals.lower_is_better
        self.by, self.legend = rule.totals.by, rule.totals.legend
        self.metrics: Mapping[str, str] = getattr(rule.totals, "metrics", {})
        self.answer_reader = rule.answer_reader
        self._parse = rule.parse or benchmark.parse
        self._latest: tuple[Step, str, Receipt, ParsedAnswer[Any]] | None = None

    @cached_property
    def shares(self) -> Collection[str]:
        """The values in [0, 1] that columns average; empty for totals of another kind."""
        return self._totals.shares

    @property
    def step_metric(self) -> tuple[str, str]:
        """The metric for the share of right steps, and the value that marks a right step."""
        return self._totals.step_metric

    def metric_of(self, name: str) -> str:
        """Return the metric of `omnidata.metrics.episodes` for a column; else its name."""
        found = self._totals
        return found.metric_of(name) if isinstance(found, EpisodeTotals) else name

    def judge(
        self, step: Step, text: str, receipt: Receipt = None, delivery: Delivery = "ok"
    ) -> Verdict:
        """Read one answer and judge it; a request that failed is judged as one without an answer.

        Args:
            step: of the question.
            text: the untrusted answer; empty without one.
            receipt: of the answer.
            delivery: how the request ended; "ok" for a whole answer.
        """
        if delivery != "ok":
            return self.without_answer(step, delivery)
        if len(text) <= LONGEST:
            return self.judge_text(step, text, receipt)
        found = self.judge_text(step, text[:LONGEST], receipt)
        note = f"only the first {LONGEST:,} of {len(text):,} characters were read"
        return msgspec.structs.replace(found, reason="; ".join(filter(None, (found.reason, note))))

    def judge_text(self, step: Step, text: str, receipt: Receipt) -> Verdict:
        """Read and judge a text of at most `LONGEST` characters."""
        try:
            parsed = read_answer(self._parse, text, step, receipt)
        except UnreadError as error:
            return self.judge_parsed(step, None, str(error))
        self._latest = step, text, receipt, parsed
        return self.judge_parsed(step, parsed)

    def read(self, step: Step, text: str, receipt: Receipt) -> ParsedAnswer[Any]:
        """Read a text of at most `LONGEST` characters.

        The answer that was judged last is not read again, since its explanation asks for it.

        Raises:
            UnreadError: the text is no answer.
        """
        latest = self._latest
        if latest and latest[0] is step and latest[1] is text and latest[2] is receipt:
            return latest[3]
        return read_answer(self._parse, text, step, receipt)

    def judge_parsed(
        self, step: Step, parsed: ParsedAnswer[Any] | None, reason: str = ""
    ) -> Verdict:
        """Judge an answer that was read.

        Args:
            step: of the question.
            parsed: the answer; None if it could not be read.
            reason: why it could not be read.
        """
        found = self.rule.judge(step, parsed)
        if not isinstance(found, tuple):
            if isinstance(found, Verdict):
                return found
            raise TypeError(f"the rule {self.name} returned {found!r:.80}: expected {_VALUES}")
        if parsed is None:
            return Verdict("unparsed", found, None, reason)
        return Verdict("ok", found, parsed.record, parsed.note)

    def without_answer(self, step: Step, outcome: Outcome) -> Verdict:
        """Return the verdict on a step without an answer: that on an empty text."""
        if self.rule.without_answer:
            return Verdict(outcome, self.rule.without_answer(step))
        return Verdict(outcome, self.judge(step, "").values)

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the table of verdicts; where a column is missing or NaN, it is None."""
        found = self._totals.total(steps, rows)
        groups = (table for axis in found["by"].values() for table in axis.values())
        for table in (found["overall"], found["answered"], found["ci95"], *groups):
            for name in self.columns:
                value = table.setdefault(name, None)
                if value != value:
                    table[name] = None
        return found

    def measures(self, steps: Sequence[Step], a: VerdictColumns, b: VerdictColumns) -> Measures:
        """Return the sums behind the metrics of two runs."""
        return self._totals.measures(steps, a, b)


_VALUES: Final = "a tuple of values, or a Verdict"
_ANSWER: Final = "a ParsedAnswer, or an UnreadError for a text that is no answer"


def read_answer(parse: Parse[Any], text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Any]:
    """Read an answer.

    Raises:
        UnreadError: the text is no answer.
        TypeError: the reader returned something else.
    """
    try:
        found = parse(text, step, receipt)
    except RecursionError:
        raise UnreadError("the answer is nested too deeply") from None
    if not isinstance(found, ParsedAnswer):
        raise TypeError(f"`parse` returned {found!r:.80}: expected {_ANSWER}")
    return found

"""Asking under common options, which change prompts, and in a dialect, which also reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from omnidata.dialects import Dialect, Rules, UnreadError
from omnidata.tasks.asking import Asking
from omnidata.tasks.benchmark import ParsedAnswer
from omnidata.tasks.common_options import UnderOptions
from omnidata.tasks.dialect_option import STRICT, InDialect
from omnidata.types import Step, Task


class AskingUnderOptions(UnderOptions, Asking):
    """A benchmark that is asked under common options.

    Args:
        asking: the benchmark as it is asked.
        given: common options, without those that have their default.
    """

    def __init__(self, asking: Asking, given: Mapping[str, str]) -> None:
        Asking.__init__(self, asking.benchmark)
        self.history_window = asking.history_window
        self.task, self.given = cast("Task", asking), given


class AskingInDialect(InDialect, Asking):
    """A benchmark that is asked in a dialect.

    Args:
        asking: the benchmark, under common options where there are any.
        dialect: the dialect.
        system: a file whose text stands in place of the dialect's own words; empty for none.
        words: its text; the file is opened, once it is needed, if None.

    Raises:
        UsageError: as `InDialect`.
    """

    def __init__(
        self, asking: Asking, dialect: Dialect, system: str = "", words: str | None = None
    ) -> None:
        Asking.__init__(self, asking.benchmark)
        self.history_window = asking.history_window
        InDialect.__init__(self, cast("Task", asking), dialect, system, words)

    def parse(
        self, text: str, step: Step, receipt: Mapping[str, Any] | None = None, *, profile: str = ""
    ) -> ParsedAnswer[Any]:
        """Read an answer in the dialect, as `Asking.parse`.

        Raises:
            UnreadError: the text is no answer in the dialect, or the benchmark has no words for it.
        """
        if self.in_own_words(step):
            own = profile.removesuffix(STRICT)
            return Asking.parse(self, text, step, receipt, profile=own)
        rules: Rules = "strict" if profile.endswith(STRICT) else "lenient"
        known, fed = self.receipt_and_size(step, receipt)
        found = self.interpret(step, text, known, fed, rules)
        if found.adopted is None:
            raise UnreadError(found.reason)
        return cast("ParsedAnswer[Any]", found.adopted)

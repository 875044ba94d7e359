"""How much of an answer is read: a model that repeats itself without end says nothing more.

What came is recorded whole. Readers take time linear in what they are given, and are given no more
than the longest answer that a model writes on purpose; the verdict says where that was less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final, TypeVar, cast

import msgspec

from omnidata.types import Step, Verdict

LONGEST: Final = 1 << 20
"""Characters of an answer that are read: 131,072 tokens, above the most that models write (128,000
of OpenAI's and Anthropic's in 2026), of eight characters each, twice those of English prose."""

Method = TypeVar("Method", bound=Callable[..., Any])


def judge_beginning(judge: Method) -> Method:
    """A profile's method `judge` that reads no more than the beginning of an answer, and says so.

    Args:
        judge: the method.
    """

    @wraps(judge)
    def call(self: Any, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        found: Verdict
        if len(text) <= LONGEST:
            found = judge(self, step, text, receipt)
            return found
        found = judge(self, step, text[:LONGEST], receipt)
        note = f"only the first {LONGEST:,} of {len(text):,} characters were read"
        return msgspec.structs.replace(found, reason="; ".join(filter(None, (found.reason, note))))

    return cast("Method", call)


def read_beginning(read: Method) -> Method:
    """A benchmark's method `read` that reads no more than the beginning of an answer.

    Args:
        read: the method.
    """

    @wraps(read)
    def call(self: Any, text: str, receipt: Mapping[str, Any] | None = None) -> Any:
        return read(self, text[:LONGEST], receipt)

    return cast("Method", call)

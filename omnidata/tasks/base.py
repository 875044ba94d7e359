"""What every task has unless it says otherwise: the start of a benchmark of your own."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.actions import Action, Screen, Space
from omnidata.errors import UsageError
from omnidata.tasks.explaining import Reader, Rule, acted, by_action, read_again
from omnidata.types import (
    Conversation,
    Explanation,
    Message,
    Part,
    Profile,
    Source,
    Step,
    Target,
    Verdict,
)

# Options given as `key=value`, checked against what exists.


def resolve(
    given: Mapping[str, str], allowed: Mapping[str, Sequence[str]], flag: str
) -> dict[str, str]:
    """The options in force: what was given, else each option's first value.

    Args:
        given: as the user wrote them.
        allowed: option -> its values, the default first; a single value "" allows any text.
        flag: how the options are given, for the message.

    Raises:
        UsageError: an option or a value that does not exist.

    Examples:
        >>> resolve({"history": "none"}, {"history": ("gold", "none"), "voice": ("",)}, "-T")
        {'history': 'none', 'voice': ''}
    """
    for name, value in given.items():
        if name not in allowed:
            raise UsageError(
                f'there is no option "{name}"',
                where=f"{flag} {name}={value}",
                expected=f"one of {', '.join(allowed) or '(no options)'}",
            )
        values = allowed[name]
        if values != ("",) and value not in values:
            raise UsageError(
                f'"{value}" is no value of "{name}"',
                where=f"{flag} {name}={value}",
                expected=f"one of {', '.join(values)}",
            )
    return {name: given.get(name, values[0]) for name, values in allowed.items()}


def parse(pairs: Sequence[str], flag: str) -> dict[str, str]:
    """`["a=1", "b=2"]` as a mapping.

    Raises:
        UsageError: an item without "=", or a key given twice.
    """
    options: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key or key in options:
            raise UsageError(
                "an option is given twice" if key in options else "an option has no value",
                where=f"{flag} {pair}",
                expected=f"{flag} key=value, each key once",
            )
        options[key] = value
    return options


class Benchmark(ABC):
    """A task with the defaults; a new one defines `question`, `profiles`, `load` and `answer`.

    The prompt is one user message: the step's media in their order, then the question. Of its
    baselines there is `oracle`, which gives the right answers.

    Attributes:
        question: the prompt's text; `{instruction}` stands for the step's.
        profiles: by name, the default first.
        allowed: the task's options and their values, the default first; "" stands for any text.

    Args:
        name: as in `omnidata evaluate NAME`.
        options: as given with `-T key=value`.

    Raises:
        UsageError: an option has an unknown name or value.
    """

    question: str
    profiles: Mapping[str, Profile]
    allowed: Mapping[str, Sequence[str]] = {}
    baselines: Sequence[str] = ("oracle",)
    needs_predictions = False

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        """Check the options."""
        self.name = name
        self.options = resolve(options, self.allowed, "-T")

    @property
    def default_profile(self) -> str:
        """The first of the profiles."""
        return next(iter(self.profiles))

    @property
    def prompt_hash(self) -> str:
        """SHA-256 of the question and the options.

        A task with a prompt of its own puts all of the prompt's texts into `question`, or says here
        what else its prompt depends on: runs with other prompts must have other hashes.
        """
        text = json.dumps([self.name, self.question, self.options], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @abstractmethod
    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> Source:
        """Read the dataset's annotations.

        Args:
            data: as the user named it.
            check_media: look whether the media exist.
            strict: make the first finding an error.

        Raises:
            DataError: nothing readable as this benchmark is there.
        """

    @abstractmethod
    def answer(self, step: Step) -> str | None:
        """The right answer, in the form that the question asks for; None = there is none."""

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """The conversation for one step."""
        shown = [Part(ref.kind, media=ref, role=role) for role, ref in step.media.items() if ref]
        asked = self.question.replace("{instruction}", step.instruction)
        return (Message("user", (*shown, Part("text", asked))),)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """The right answer, for training data and `oracle`."""
        text = self.answer(step)
        return None if text is None else Target(text, text)

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """The right answers.

        Raises:
            UsageError: another baseline, or an option.
        """
        if name != "oracle" or options:
            raise UsageError(
                f'there is no baseline "{name}" with such options',
                where=f"--model baseline:{name}",
                expected="baseline:oracle, without -M",
            )
        return lambda step: self.answer(step) or ""

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """Nothing: no prompt shows the model's own earlier answers."""
        return None

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Why a verdict is what it is, told by the step's action, `read`, and the values."""
        return explain(self, self.profiles[profile], step, verdict, receipt=receipt)


def explain(
    reader: Reader,
    profile: Profile,
    step: Step,
    verdict: Verdict | None,
    *,
    receipt: Mapping[str, Any] | None,
) -> Explanation:
    """The explanation of a benchmark that has none of its own.

    Args:
        reader: reads what the profile read in an answer, as JSON or code, as an action.
        profile: whose verdict it is.
        step: the step.
        verdict: on an answer to it; None tells of the step alone.
        receipt: of the answer.
    """
    return by_action(
        step,
        verdict,
        profile,
        read_again(reader, verdict),
        receipt=receipt,
        cause=lambda wanted, said, places, right: acted(
            step, wanted, said, places, right=right, rule=Rule()
        ),
    )

"""What tasks on phones share: options, profiles, prompt, targets, baselines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from omnidata.actions import Action, Screen, Space
from omnidata.metrics.omnigui_answer import Unread
from omnidata.metrics.phone_answer import parse
from omnidata.phone import Move, Pair, Truth, nearest
from omnidata.tasks import phone_target
from omnidata.tasks.options import resolve
from omnidata.tasks.phone_profiles import PhoneProfile
from omnidata.tasks.phone_prompt import HISTORY, SPACES, Prompt, Wording
from omnidata.types import Conversation, Profile, Source, Step, Target


class PhoneTask(ABC):
    """What does the agent do next, given the screen?

    Attributes:
        rules: names of the profiles, the default first.
        by: the axes of their tables.
        wording: what the dataset puts into the prompt.

    Args:
        options: as given with `-T key=value`.

    Raises:
        UsageError: an option has an unknown name or value.
    """

    name: ClassVar[str]
    rules: ClassVar[Sequence[str]]
    by: ClassVar[Mapping[str, Sequence[str]]]
    wording: ClassVar[Wording]
    allowed: Mapping[str, Sequence[str]] = {"history": HISTORY, "coordinates": SPACES}
    baselines: Sequence[str] = phone_target.BASELINES

    def __init__(self, options: Mapping[str, str]) -> None:
        """Check the options and prepare prompt and profiles."""
        self.options: Mapping[str, str] = resolve(options, self.allowed, "-T")
        self._prompt = Prompt(self.wording, self.options)
        self.prompt_hash = self._prompt.hash
        self._space: Space = self._prompt.space
        self.profiles: Mapping[str, Profile] = {
            name: PhoneProfile(
                name, self.truth, self.read_prompted, self.body, self.by, self._space
            )
            for name in self.rules
        }

    @property
    def default_profile(self) -> str:
        """The first of the rules."""
        return self.rules[0]

    @abstractmethod
    def truth(self, row: Mapping[str, Any], screen: Screen) -> Truth | None:
        """What a step's row says was done, and what was there; None where that cannot be read."""

    @abstractmethod
    def read_prompted(self, body: Mapping[str, Any]) -> tuple[Move, bool]:
        """An answer in the prompt's form: the move, and whether it obeys it to the letter."""

    @abstractmethod
    def body(self, move: Move, places: Sequence[Any]) -> dict[str, Any]:
        """A move in the prompt's form; a `ValueError` for what has none."""

    @abstractmethod
    def places(self, move: Move) -> Sequence[Pair]:
        """The places that the answer of a move has, from 0 to 1."""

    @abstractmethod
    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> Source:
        """Read the dataset's annotations."""

    def goal(self, step: Step) -> str:
        """What the model is told to do."""
        return step.instruction

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """The conversation for one step; `predicted` is used with `history=predicted` only."""
        return self._prompt.conversation(step, self.goal(step), predicted)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """The expert's move as compact JSON; None where the source has no usable one."""
        truth = self.truth(step.source, step.screen)
        if truth is None:
            return None
        return phone_target.target(
            truth.move,
            step.screen,
            self.body,
            self.places,
            space=space or self._space,
            size=size or step.screen,
        )

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """The rule of that name: a step's answer; see `phone_target.BASELINES`."""
        phone_target.check(self.name, name, options)
        if name == "oracle":
            return self._oracle
        truths = (self.truth(step.source, step.screen) for step in steps)
        move = phone_target.blind(name, (truth.move for truth in truths if truth))
        return lambda step: phone_target.written(move, step, self.body, self.places, self._space)

    def _oracle(self, step: Step) -> str:
        """The target; an empty text where there is none, which the profiles leave out."""
        found = self.target(step)
        return found.text if found else ""

    @property
    def needs_predictions(self) -> bool:
        """Whether a step's prompt shows the model's own earlier answers."""
        return self.options["history"] == "predicted"

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """A model's text as an action, for histories of predictions; None if it is none."""
        answer = parse(text, self.read_prompted)
        return None if isinstance(answer, Unread) else self.past(answer.move)

    def past(self, move: Move) -> Action | None:
        """A move as histories show it."""
        return nearest(move)

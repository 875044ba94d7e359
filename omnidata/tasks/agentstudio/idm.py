"""IDM-Single and IDM-Multiple: the actions between screenshots (AgentStudio, section 5.2, D)."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, TypedDict

import msgspec

from omnidata.actions import Screen, Space
from omnidata.dialects import UnreadError
from omnidata.metrics.edit_distance import edit_distance
from omnidata.tasks.agentstudio.answers import (
    Letters,
    Reading,
    read_letter,
    read_letters,
    released_letter,
    released_letters,
)
from omnidata.tasks.agentstudio.base import (
    FRAMES,
    AgentStudio,
    AgentStudioRule,
    action_frames,
    make_card,
)
from omnidata.tasks.agentstudio.files import Row
from omnidata.tasks.agentstudio.messages import fill_prompt, image_messages, text_message
from omnidata.tasks.agentstudio.rows import AXES, actions_in_window, window
from omnidata.tasks.agentstudio.rules import judge_letters, letters_of
from omnidata.tasks.benchmark import History, ParsedAnswer, Receipt, Values
from omnidata.tasks.explaining import explain
from omnidata.tasks.profile import Profile
from omnidata.tasks.totals import Column, RowTotals
from omnidata.types import Conversation, Diagnosis, Explanation, Step, Target, Verdict

# Reading and judging an answer.

Operations = Callable[[Row], Sequence[str]]
"""Returns the recorded actions that a row asks for, in order."""
Read = Callable[[str], Letters | str | None]


def parse_letters(text: str, step: Step, receipt: Receipt, *, read: Read) -> ParsedAnswer[Letters]:
    """Read the letters of an answer.

    Raises:
        UnreadError: there are none.
    """
    letters = tuple(read(text) or ())
    if not letters:
        raise UnreadError("unread")
    return ParsedAnswer(letters, {"letters": list(letters)})


class SameLetters(AgentStudioRule[Letters]):
    """Compares the letters with those of the recorded actions, in order.

    Args:
        reading: whose rule.
        operations: returns the recorded actions.
        totals: of the benchmark, with the edit distance or without.
    """

    def __init__(self, reading: Reading, operations: Operations, totals: RowTotals) -> None:
        super().__init__(reading)
        self.totals = totals
        self._operations = operations

    def judge(self, step: Step, parsed: ParsedAnswer[Letters] | None) -> Values | Verdict:
        """Compare the letters with those of the row, which is at fault if it has none."""
        row, letters = step.source, parsed.value if parsed else ()
        found = judge_letters(letters, self._operations(row), row["action_space"])
        values = (found.correct, found.distance)[: len(self.totals.values)]
        if found.correct is not None:
            return values
        record = parsed.record if parsed else None
        return Verdict("ok" if parsed else "unparsed", values, record, found.fault)


# The prompt and the target.


class _Record(TypedDict):
    letters: Annotated[list[str], msgspec.Meta(min_length=1)]


class _Idm(AgentStudio):
    readers: ClassVar[tuple[Read, Read]]  # the paper's and the release's
    totals: ClassVar[RowTotals]
    separator: ClassVar[str]  # of letters in the right answer

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        paper = SameLetters("paper", self.operations, self.totals)
        release = SameLetters("release", self.operations, self.totals)
        release.parse = partial(parse_letters, read=self.readers[1])
        self.rules = (paper, release)

    @staticmethod
    @abstractmethod
    def operations(row: Row) -> Sequence[str]:
        """Return the recorded actions that a row asks for, in order."""

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Letters]:
        return parse_letters(text, step, receipt, read=self.readers[0])

    def letters(self, step: Step) -> Letters:
        """Return the right letters; empty if the row has none."""
        row = step.source
        return letters_of(self.operations(row), row["action_space"]) or ()

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        letters = self.letters(step)
        text = self.separator.join(("Answer:", *letters))
        return Target(text, text) if letters else None

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """`majority` answers with the most frequent letters of the row's action space.

        The same letter means different actions in other action spaces.
        """

        def answer(step: Step) -> str:
            return "Answer: " + "\n".join(self.letters(step))

        if name == "oracle":
            return answer
        counts: dict[str, Counter[str]] = {}
        for step in steps:
            counts.setdefault(_space(step), Counter())[answer(step)] += 1
        usual = {space: answers.most_common(1)[0][0] for space, answers in counts.items()}
        return lambda step: usual[_space(step)]

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        parsed: ParsedAnswer[Letters] | None,
        profile: Profile,
        receipt: Receipt,
    ) -> Explanation:
        row, given = step.source, parsed.value if parsed else ()
        is_single = self.task == "idm-single"
        operations = tuple(map(str, self.operations(row)))

        def sentence(record: Mapping[str, Any], right: bool) -> str:
            wanted = self.letters(step)
            answer = f"the answer is {_format_letters(step, given)}"
            if given == wanted:
                return f"{answer}, as recorded"
            answer += f", the recorded action is {_format_letters(step, wanted)}"
            if is_single:
                return answer
            distance = edit_distance(given, wanted)
            return f"{answer}: {distance} edit{'s' * (distance != 1)} apart"

        def label(record: Mapping[str, Any]) -> str:
            return _operation(step, given[0]) if given else ""

        return explain(
            verdict,
            profile,
            sentence,
            target_label=operations[0] if is_single else "",
            target_labels=() if is_single else operations,
            answer_label=label if is_single else None,
            overlays=lambda: action_frames(step, {"before": row} if is_single else None),
            noun="operation",
            diagnosis=lambda record: Diagnosis("wrong_type"),
            frames=FRAMES,
        )


class IdmSingle(_Idm):
    """IDM-Single: the letter of the action between two screenshots (Appendix D.2).

    Args:
        name: "idm-single".
        options: there are none.
    """

    task = "idm-single"
    templates = ("idm_single",)
    card = make_card(
        task, "IDM-Single", "name the action between two screenshots", answer_type=_Record
    )
    readers = (read_letter, released_letter)
    totals = RowTotals(by=AXES)
    separator = " "

    @staticmethod
    def operations(row: Row) -> Sequence[str]:
        return [row["operation"]]

    def prompt(self, step: Step, history: History) -> Conversation:
        question = text_message(fill_prompt("idm_single", choices=_choices(step)))
        return (*image_messages(step, "before", "after"), question)


class IdmMultiple(_Idm):
    """IDM-Multiple: the letters of up to five actions, and their edit distance (Appendix D.3).

    The option `gemini_limit` adds a sentence, as the release does for Gemini models, that keeps
    them from endless answers.

    Args:
        name: "idm-multiple".
        options: as in `allowed`; unknown ones are a `UsageError`.
    """

    task = "idm-multiple"
    templates = ("idm_multiple", "gemini_limit")
    card = make_card(
        task,
        "IDM-Multiple",
        "name the actions between the screenshots of a sequence",
        answer_type=_Record,
    )
    allowed: Mapping[str, Sequence[str]] = {"gemini_limit": ("off", "on")}
    readers = (read_letters, released_letters)
    totals = RowTotals(
        [
            Column("accuracy", "score"),
            Column("edit_distance", unit="number", lower_is_better=True),
        ],
        by=AXES,
    )
    separator = "\n"

    @staticmethod
    def operations(row: Row) -> Sequence[str]:
        return [action["operation"] for action in actions_in_window("idm-multiple", row)]

    def prompt(self, step: Step, history: History) -> Conversation:
        kept = window("idm-multiple", step.source["actions"])
        shown = (f"observation_{number}" for number in range(kept.start, kept.stop + 1))
        question = text_message(fill_prompt("idm_multiple", choices=_choices(step)))
        is_limited = self.options["gemini_limit"] == "on"
        limit = (text_message(fill_prompt("gemini_limit")),) if is_limited else ()
        return (*image_messages(step, *shown), question, *limit)


def _space(step: Step) -> str:
    return " ".join(map(str, step.source["action_space"]))


def _choices(step: Step) -> str:
    space = step.source["action_space"]
    return "\n".join(f"{chr(ord('A') + number)}. {name}" for number, name in enumerate(space))


def _format_letters(step: Step, letters: Letters) -> str:
    return ", ".join(f"{letter} ({_operation(step, letter)})" for letter in letters) or "nothing"


def _operation(step: Step, letter: str) -> str:
    space = step.source["action_space"]
    place = ord(letter) - ord("A") if len(letter) == 1 else -1
    return str(space[place]) if 0 <= place < len(space) else letter

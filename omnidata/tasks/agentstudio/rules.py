"""The rules of AgentStudio's benchmarks.

CriticBench (section 5.3, appendix E): the *release* searches the right word, `True` or `False`,
anywhere in the response, so a response with both is always right. It stores no prediction: a wrong
response counts as the opposite of the truth. The *paper* reads the last `Answer: True` or `Answer:
False`, in any case and in bold. A response without one is unread and counted separately.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from omnidata.metrics.edit_distance import edit_distance
from omnidata.tasks.agentstudio.answers import (
    DRESS,
    Letters,
    Reading,
    read_letter,
    read_letters,
    released_letter,
    released_letters,
)
from omnidata.tasks.points import answers

_TRUTH = re.compile(
    rf"[\s{re.escape(DRESS)}]*+(true|false)(?![^\W_])"
    r"(?![\s*_`\"'”’]*+(?:or\b|[/|])[\s*_`\"'“‘]*+(?:true|false))",
    re.IGNORECASE,
)


def released_score(success: bool, text: str | None) -> bool | None:
    """Return whether the right word occurs in the response, in exactly that case.

    Args:
        success: whether the trajectory succeeded.
        text: the response; None if there is none.

    Returns:
        The verdict; None if the release raises an error, as without a response.

    Examples:
        >>> released_score(True, "not True, so Answer: False"), released_score(True, "Answer: true")
        (True, False)
    """
    return None if text is None else ("True" if success else "False") in text


def read_success(text: str | None) -> bool | None:
    r"""Return the truth value of the last `Answer:` that has one; None = unread.

    Examples:
        >>> read_success("Answer: True. No:\n**Answer:** FALSE\nAnswer: see above")
        False
        >>> read_success("True") or read_success("Answer: Truecaller")
        >>> read_success("Answer: True or False")
    """
    for answer in answers(text or ""):
        if found := _TRUTH.match(answer):
            return found[1].lower() == "true"
    return None


# IDMBench: letters against the actions that were made (AgentStudio, section 5.2, appendix D).
#
# A row whose own answer cannot be written as letters is not judged: the verdict names the fault.
# The released evaluator raises there.

Fault = Literal["", "unread", "operation-unknown", "window-empty"]


class LettersVerdict(NamedTuple):
    """The verdict on one response.

    Attributes:
        correct: whether the letters equal the reference; None if the row cannot be judged.
        distance: edits from the letters to the reference; None if the row cannot be judged.
        parsed: the letters read; () = none.
        reference: the row's letters; () for a fault of the row.
        fault: "unread" (no letters: wrong, and as many edits as the reference has letters),
            "operation-unknown" and "window-empty" (faults of the row); empty otherwise.
    """

    correct: bool | None
    distance: int | None
    parsed: Letters
    reference: Letters
    fault: Fault = ""


def judge_single(
    operation: str, action_space: Sequence[str], text: str | None, *, reading: Reading
) -> LettersVerdict:
    """Judge IDM-Single: one letter for the action between two screenshots.

    Args:
        operation: the recorded action.
        action_space: the choices, in the order of their letters.
        text: the response; None if there is none.
        reading: "release" uses `released_letter`, "paper" uses `read_letter`.

    Examples:
        >>> space = ["CLICK", "SELECT", "TYPE"]
        >>> judge_single("CLICK", space, "**Answer:** A", reading="paper").correct
        True
        >>> judge_single("TYPE", space, "Answer: Click", reading="release")
        LettersVerdict(correct=True, distance=0, parsed=('C',), reference=('C',), fault='')
        >>> judge_single("HOVER", space, "Answer: A", reading="paper").fault
        'operation-unknown'
    """
    letter = (released_letter if reading == "release" else read_letter)(text)
    return judge_letters(() if letter is None else (letter,), [operation], action_space)


def judge_multiple(
    operations: Sequence[str], action_space: Sequence[str], text: str | None, *, reading: Reading
) -> LettersVerdict:
    """Judge IDM-Multiple: the letters of all actions of a window, in order.

    Args:
        operations: the actions that the prompt asks for; none is a fault of the row.
        action_space: the choices, in the order of their letters.
        text: the response; None if there is none.
        reading: "release" uses `released_letters`, "paper" uses `read_letters`.

    Examples:
        >>> space = ["CLICK", "SELECT", "TYPE"]
        >>> judge_multiple(["CLICK", "TYPE"], space, "Answer: A, C", reading="paper")
        LettersVerdict(correct=True, distance=0, parsed=('A', 'C'), reference=('A', 'C'), fault='')
        >>> judge_multiple(["CLICK", "TYPE"], space, "Answer: A, C", reading="release").distance
        1
    """
    letters = (released_letters if reading == "release" else read_letters)(text)
    return judge_letters(letters or (), operations, action_space)


def judge_letters(
    letters: Letters, operations: Sequence[str], action_space: Sequence[str]
) -> LettersVerdict:
    """Judge letters that were read.

    Args:
        letters: of the answer; () if none could be read.
        operations: the recorded actions; none is a fault of the row.
        action_space: the choices, in the order of their letters.
    """
    if not operations:
        return LettersVerdict(None, None, letters, (), "window-empty")
    reference = letters_of(operations, action_space)
    if reference is None:
        return LettersVerdict(None, None, letters, (), "operation-unknown")
    distance = edit_distance(letters, reference)
    return LettersVerdict(distance == 0, distance, letters, reference, "" if letters else "unread")


def letters_of(operations: Sequence[str], action_space: Sequence[str]) -> Letters | None:
    """Return the letters of operations; None if the action space lacks one of them.

    Examples:
        >>> letters_of(["TYPE", "CLICK"], ["CLICK", "SELECT", "TYPE"])
        ('C', 'A')
    """
    known = {name: chr(ord("A") + place) for place, name in reversed([*enumerate(action_space)])}
    if not all(operation in known for operation in operations):
        return None
    return tuple(known[operation] for operation in operations)

"""CriticBench: verdicts on success, and what they count (AgentStudio, section 5.3, appendix E).

The *release* asks whether the right word, `True` or `False`, occurs anywhere in the response; a
response with both is always right. It stores no prediction: what is wrong counts as the opposite of
the truth. The *paper* takes the answer from the response: the last `Answer: True` or `Answer:
False`, whatever the case and the bold type. A response without one is unread, predicts nothing, and
is counted apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from omnidata.metrics.edit_distance import edit_distance
from omnidata.tasks.agentstudio.answers import (
    DRESS,
    Letters,
    answers,
    read_letter,
    read_letters,
    released_letter,
    released_letters,
)

_TRUTH = re.compile(
    rf"[\s{re.escape(DRESS)}]*+(true|false)(?![^\W_])"
    r"(?![\s*_`\"'”’]*+(?:or\b|[/|])[\s*_`\"'“‘]*+(?:true|false))",
    re.IGNORECASE,
)


def released_score(success: bool, text: str | None) -> bool | None:
    """Whether the right word occurs in the response, case and all.

    Args:
        success: the trajectory succeeded.
        text: the response; None = there is none, and the released evaluator raises.

    Returns:
        The verdict; None where the release raises.

    Examples:
        >>> released_score(True, "not True, so Answer: False"), released_score(True, "Answer: true")
        (True, False)
    """
    return None if text is None else ("True" if success else "False") in text


def read_success(text: str | None) -> bool | None:
    r"""What the last `Answer:` with a truth value says; None = unread.

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

Reading = Literal["release", "paper"]
Fault = Literal["", "unread", "operation-unknown", "window-empty"]


class LettersVerdict(NamedTuple):
    """The verdict on one response.

    Attributes:
        correct: the letters are the reference; None = the row cannot be judged.
        distance: edits from the letters to the reference; None = the row cannot be judged.
        parsed: the letters read; () = none.
        reference: the row's letters; () where `fault` names the row.
        fault: "unread" (no letters: wrong, and as many edits as the reference has letters),
            "operation-unknown" and "window-empty" (the row is at fault); empty otherwise.
    """

    correct: bool | None
    distance: int | None
    parsed: Letters
    reference: Letters
    fault: Fault = ""


def judge_single(
    operation: str, action_space: Sequence[str], text: str | None, *, reading: Reading
) -> LettersVerdict:
    """IDM-Single: one letter for the action between two screenshots.

    Args:
        operation: the action that was made.
        action_space: the choices, in the order of their letters.
        text: the response; None = there is none.
        reading: "release" takes its pattern's letter as written, "paper" reads with care.

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
    return _judge([operation], action_space, () if letter is None else (letter,))


def judge_multiple(
    operations: Sequence[str], action_space: Sequence[str], text: str | None, *, reading: Reading
) -> LettersVerdict:
    """IDM-Multiple: the letters of all actions of a window, in order.

    Args:
        operations: the actions that the prompt asks for; none is a fault of the row.
        action_space: the choices, in the order of their letters.
        text: the response; None = there is none.
        reading: "release" takes its pattern's letters as written, "paper" reads with care.

    Examples:
        >>> space = ["CLICK", "SELECT", "TYPE"]
        >>> judge_multiple(["CLICK", "TYPE"], space, "Answer: A, C", reading="paper")
        LettersVerdict(correct=True, distance=0, parsed=('A', 'C'), reference=('A', 'C'), fault='')
        >>> judge_multiple(["CLICK", "TYPE"], space, "Answer: A, C", reading="release").distance
        1
    """
    letters = (released_letters if reading == "release" else read_letters)(text)
    return _judge(operations, action_space, letters or ())


def _judge(operations: Sequence[str], space: Sequence[str], letters: Letters) -> LettersVerdict:
    if not operations:
        return LettersVerdict(None, None, letters, (), "window-empty")
    reference = letters_of(operations, space)
    if reference is None:
        return LettersVerdict(None, None, letters, (), "operation-unknown")
    distance = edit_distance(letters, reference)
    return LettersVerdict(distance == 0, distance, letters, reference, "" if letters else "unread")


def letters_of(operations: Sequence[str], action_space: Sequence[str]) -> Letters | None:
    """The letters that stand for operations; None = one of them is not in the action space.

    Examples:
        >>> letters_of(["TYPE", "CLICK"], ["CLICK", "SELECT", "TYPE"])
        ('C', 'A')
    """
    known = {name: chr(ord("A") + place) for place, name in reversed([*enumerate(action_space)])}
    if not all(operation in known for operation in operations):
        return None
    return tuple(known[operation] for operation in operations)

"""`result.txt`: what OSWorld's evaluation said of a rollout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omnidata.errors import MediaError, MissingMediaError
from omnidata.loaders.osworld_tree import RESULT, Rollout
from omnidata.loaders.place import Note, Place, short
from omnidata.media import Budget

_BUDGET: Final = Budget(max_bytes=4096)
_WORDS: Final = {"True": 1.0, "False": 0.0}
_EXPECTED: Final = "a number from 0 to 1, True or False"


@dataclass(frozen=True, slots=True)
class Result:
    """The score of a rollout.

    Attributes:
        score: 0 to 1; None where there is none, or none that can be used.
        text: what the file holds, stripped; None where there is no file that can be read.
    """

    score: float | None = None
    text: str | None = None

    @property
    def outcome(self) -> str:
        """The score as a word: "success", "partial", "failure", or "unfinished"."""
        if self.score is None:
            return "unfinished"
        return "success" if self.score == 1 else "partial" if self.score else "failure"


def read_score(text: str) -> float:
    """A score as it is written: a number, or else True or False to the letter.

    The release scores what is no number by the truth of its text, so that "False" counts as 1; here
    it is 0. Nothing is evaluated.

    Raises:
        ValueError: it is none of these, or not from 0 to 1.

    Examples:
        >>> read_score("0.25"), read_score("False"), read_score("True")
        (0.25, 0.0, 1.0)
    """
    if text in _WORDS:
        return _WORDS[text]
    try:
        score = float(text if text.isascii() and "_" not in text else "")
    except ValueError:
        raise ValueError("it is no score") from None
    if not 0 <= score <= 1:  # NaN too
        raise ValueError("the score is not from 0 to 1")
    return abs(score)  # -0.0


def read_result(rollout: Rollout, note: Note) -> Result:
    """The result of a rollout, with a finding where the file cannot be used.

    Args:
        rollout: the folder.
        note: takes the findings.
    """
    place = Place(rollout.name(RESULT), note)
    try:
        text = rollout.text(RESULT, budget=_BUDGET).decode("utf-8").strip()
    except MissingMediaError:
        return Result()
    except (MediaError, OSError, UnicodeDecodeError) as error:
        what = error.what if isinstance(error, MediaError) else "it cannot be read as text"
        _refuse(place, what)
        return Result()
    try:
        return Result(read_score(text), text)
    except ValueError as error:
        _refuse(place, f"{error}: {short(text)}")
        return Result(None, text)


def _refuse(place: Place, what: str) -> None:
    place.refuse(
        "result-broken", what, _EXPECTED, "mend the file; the example counts as unfinished"
    )

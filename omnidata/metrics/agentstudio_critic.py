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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from omnidata.metrics.agentstudio_answer import DRESS, answers

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

RATES = ("accuracy", "precision", "recall", "f1")

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


class Confusion(NamedTuple):
    """Responses counted by truth and prediction; success is the positive class.

    Attributes:
        tp, fp, fn, tn: right and wrong predictions of success and failure.
        unread_positive, unread_negative: responses that predict nothing, by truth.
    """

    tp: int
    fp: int
    fn: int
    tn: int
    unread_positive: int = 0
    unread_negative: int = 0

    @classmethod
    def of(cls, success: Sequence[bool], said: Sequence[bool | None]) -> Confusion:
        """Count predictions; None = unread.

        Examples:
            >>> Confusion.of([True, True, False], [True, None, True])
            Confusion(tp=1, fp=1, fn=0, tn=0, unread_positive=1, unread_negative=0)
        """
        cells = np.zeros(len(cls._fields), dtype=np.int64)
        for truth, answer in zip(success, said, strict=True):
            cells[_CELL[bool(truth), answer]] += 1
        return cls(*cells.tolist())

    @classmethod
    def of_scores(cls, success: Sequence[bool], scores: Sequence[bool]) -> Confusion:
        """Count as released, from truth and verdict: what is wrong is the opposite prediction.

        Examples:
            >>> Confusion.of_scores([True, True, False], [True, False, False])
            Confusion(tp=1, fp=1, fn=1, tn=0, unread_positive=0, unread_negative=0)
        """
        said = [bool(truth) == bool(score) for truth, score in zip(success, scores, strict=True)]
        return cls.of(success, said)


_CELL: dict[tuple[bool, bool | None], int] = {
    (True, True): 0,
    (False, True): 1,
    (True, False): 2,
    (False, False): 3,
    (True, None): 4,
    (False, None): 5,
}


def rates(cells: npt.NDArray[Any]) -> Floats:
    """Accuracy, precision, recall and F1 of success, as scikit-learn defines them.

    An unread response is a third class: it is wrong, it lowers recall where the truth is success,
    and it leaves precision alone.

    Args:
        cells: (..., 6) counts in the order of `Confusion`.

    Returns:
        float64 (..., 4) fractions in the order of `RATES`; NaN where nothing is divided by nothing.

    Examples:
        >>> rates(np.array(Confusion(tp=1, fp=1, fn=0, tn=1, unread_positive=1))).round(3)
        array([0.5, 0.5, 0.5, 0.5])
    """
    tp, fp, fn, tn, lost, dropped = np.moveaxis(np.asarray(cells, dtype=np.float64), -1, 0)
    above = np.stack([tp + tn, tp, tp, 2 * tp], axis=-1)
    below = np.stack(
        [tp + fp + fn + tn + lost + dropped, tp + fp, tp + fn + lost, 2 * tp + fp + fn + lost],
        axis=-1,
    )
    found = np.full_like(above, np.nan)
    np.divide(above, below, out=found, where=below > 0)
    return found

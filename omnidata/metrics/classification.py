"""Accuracy, precision, recall and F1 of answers to a yes-or-no question.

AgentStudio's CriticBench (section 5.3) asks whether a trajectory succeeded; success is the positive
class. Unreadable responses are a third class and counted separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from omnidata.metrics.intervals import Floats

RATES = ("accuracy", "precision", "recall", "f1")


class Confusion(NamedTuple):
    """Responses counted by truth and prediction; success is the positive class.

    Attributes:
        tp, fp, fn, tn: right and wrong predictions of success and failure.
        unread_positive, unread_negative: responses without a prediction, by truth.
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
        """Count as the release does: a wrong response counts as the opposite prediction.

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
    """Return accuracy, precision, recall and F1 of success, as scikit-learn defines them.

    An unread response is a third class: it is wrong, lowers recall if the truth is success, and
    does not change precision.

    Args:
        cells: (..., 6) counts in the order of `Confusion`.

    Returns:
        float64 (..., 4) fractions in the order of `RATES`; NaN if zero is divided by zero.

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

"""Profiles of questions that are answered by yes or no: rates of the confusion of both."""

from __future__ import annotations

from abc import abstractmethod

from omnidata.tasks.profiles import RowProfile
from omnidata.tasks.totals import YesNoTotals
from omnidata.types import Step


class YesNoProfile(YesNoTotals, RowProfile):
    """Accuracy, precision, recall and F1 of yes; a profile adds what is true, and how it judges."""

    def __init__(self) -> None:
        """Take what is true from the method `truth`."""

    @abstractmethod
    def truth(self, step: Step) -> bool:
        """Return whether yes is right; meaningless for a row that cannot be judged."""

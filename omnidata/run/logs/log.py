"""A log of another harness, and its samples."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from omnidata.jsontext import as_name
from omnidata.loaders.row_files import Line
from omnidata.predictions import Prediction
from omnidata.run.bad_lines import BadLines, answer_rows, row_of, sift
from omnidata.tasks.asking import Asking
from omnidata.tasks.log_rows import Leaves, leaves, plain
from omnidata.types import Delivery, LoadedDataset, Step

INDEX: Final = ("step_index", "step_id")
LINES: Final = "a log of samples, one JSON object per line"


def as_text(value: Any) -> str:
    """Return a text as it is, and another value as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """An answer in a log, with the information on the row that was asked about.

    Attributes:
        number: of the row in the harness's data, as the log has it.
        row: the row, or the columns of it that the log keeps.
        records: columns of the row that metrics keep beside their own values.
        prompts: the texts that were sent.
        target: the right answer as the harness has it.
        error: why no answer came; empty if one did.
        delivery: as of a prediction; an error with "ok" is an "api_error".
        picture: the file that was shown; empty if the log does not name it.
    """

    answer: str
    where: str
    number: Any = None
    row: Mapping[str, Any] = field(default_factory=dict)
    records: Sequence[Mapping[str, Any]] = ()
    prompts: Sequence[str] = ()
    target: str = ""
    error: str = ""
    delivery: Delivery = "ok"
    receipt: Mapping[str, Any] = field(default_factory=dict)
    picture: str = ""

    @property
    def columns(self) -> list[Leaves]:
        """The columns of the row and of each record."""
        return [leaves(self.row), *map(leaves, self.records)]

    @property
    def episode_and_step(self) -> tuple[str | None, Any] | None:
        """The episode and the step that the row or else a record names; None if none does."""
        for columns in self.columns:
            for episode in columns.get("episode_id", ()):
                steps = [plain(step) for key in INDEX for step in columns.get(key, ())]
                return as_name(episode), steps[0] if steps else None
        return None

    def prediction(self, sample_id: str) -> Prediction:
        """Return the answer as the one to a step."""
        failed = self.error or self.delivery != "ok"
        return Prediction(
            sample_id=sample_id,
            output="" if failed else self.answer,
            delivery="api_error" if failed and self.delivery == "ok" else self.delivery,
            error=self.error,
            receipt=dict(self.receipt),
        )


class Log(ABC):
    """A log of another harness.

    Attributes:
        harness: its name for `--from`.
        marks: sets of columns; a line with all of one set looks like a line of such a log.
        looks: the words for such a line in a message.
    """

    harness: ClassVar[str]
    marks: ClassVar[Sequence[frozenset[str]]] = ()
    looks: ClassVar[str] = ""

    def __init__(self, path: Path) -> None:
        self.path = path

    def settings(self, task: str, options: Mapping[str, str]) -> dict[str, Any]:
        """Return the task settings of the log, as in `run.json`; empty if it has none.

        Args:
            task: that the log is scored as.
            options: as given with `-T key=value`.

        Raises:
            UsageError: neither the log nor an option names the unit of places.
            PredictionError: the log is of another task, or cannot be read.
        """
        return {}

    def steps(self, source: LoadedDataset, task: Asking) -> Sequence[Step]:
        """Return the steps that the log is about: all, unless it lists them.

        Raises:
            PredictionError: the log was made on other data, or with other prompts.
        """
        return source.steps

    @abstractmethod
    def samples(self, bad: BadLines) -> Iterator[Sample]:
        """Yield the samples, and note the lines that cannot be read.

        Raises:
            PredictionError: the log cannot be opened.
        """


class LineLog(Log):
    """A log of one JSON object per sample; `expected` describes one for messages."""

    expected: ClassVar[str] = LINES

    def samples(self, bad: BadLines) -> Iterator[Sample]:
        def read(line: Line) -> Sample:
            return self.sample(row_of(line, self.expected), line)

        return sift(answer_rows(self.path, LINES), read, bad)

    @abstractmethod
    def sample(self, row: Mapping[str, Any], line: Line) -> Sample:
        """Return the sample of a row, or raise PredictionError."""

"""The best published scores of the tasks, from `published.json`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec

from omnidata.types import Task


class Best(msgspec.Struct, frozen=True):
    """The best published score of one metric.

    Attributes:
        score: a fraction for shares; for distances the lowest, as it is.
        model: who reached it.
        table: where it is printed.
    """

    score: float
    model: str
    table: str


class Published(msgspec.Struct, frozen=True):
    """What is published of a task in one setting.

    Attributes:
        steps: of the data that the scores were made on.
        options: the task options of the setting; other options make no difference here.
        metrics: by name.
    """

    steps: int
    options: Mapping[str, str]
    metrics: Mapping[str, Best]


def published(task: Task) -> Published | None:
    """The scores published for the task with its options; None where there are none.

    Examples:
        >>> from omnidata.tasks import get_task
        >>> found = published(get_task("idm-single"))
        >>> found.metrics["accuracy"].model
        'Claude 3.5 Sonnet'
    """
    for setting in _all().get(task.name, []):
        if setting.options.items() <= task.options.items():
            return setting
    return None


@cache
def _all() -> Mapping[str, list[Published]]:
    text = resources.files("omnidata.tasks").joinpath("published.json").read_bytes()
    found = msgspec.json.decode(text)
    del found["about"]
    return msgspec.convert(found, dict[str, list[Published]])

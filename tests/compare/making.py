"""Data of a few lines, and runs on them whose verdicts are chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from omnidata.tasks import get_task
from omnidata.types import LoadedDataset, Step
from tests.report.made import replay
from tests.trees import row, write_rows

Says = Literal["right", "elsewhere", "other", "fails"]
"""An exact match; the right primitive in a wrong place; another primitive; no answer."""

TEXTS: Mapping[Says, str] = {
    "right": '{"action_type": 0, "coordinate": [400, 510]}',
    "elsewhere": '{"action_type": 0, "coordinate": [9, 9]}',
    "other": '{"action_type": 8}',
}
LEVELS = ("critical", "supportive", "present")
DIMENSIONS = ("localization", "instant_response")


def data(folder: Path, *, episodes: int, steps: int = 2, **changes: Any) -> Path:
    """Episodes of two apps, each dependency level and two dimensions by turns."""
    rows = [
        row(
            f"E{number:03d}",
            step,
            app="TED" if number % 2 else "Tasty",
            dependency=LEVELS[number % 3],
            dimension=DIMENSIONS[number // 2 % 2],
            **changes,
        )
        for number in range(episodes)
        for step in range(steps)
    ]
    return write_rows(folder / "steps.json", rows)


def loaded(place: Path) -> LoadedDataset:
    return get_task("omnigui").load(place, check_media=False)


def lines(source: LoadedDataset, says: Callable[[Step], Says]) -> list[dict[str, str]]:
    return [
        {"sample_id": step.sample_id, "output": TEXTS[said]}
        for step in source.steps
        if (said := says(step)) != "fails"
    ]


def run(out: Path, source: LoadedDataset, says: Callable[[Step], Says], **settings: Any) -> Path:
    asking = get_task("omnigui", settings.pop("options", {}))
    return replay(out, asking, source, [TEXTS.get(says(step)) for step in source.steps], **settings)

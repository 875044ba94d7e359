"""From the rows of a benchmark's own files to a dataset."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

from omnidata.actions import Action, Screen
from omnidata.errors import DataError, Finding
from omnidata.loaders import files
from omnidata.loaders.media_findings import check_media_files
from omnidata.loaders.steps import Positions, Steps, number_steps, row_ids
from omnidata.types import LoadedDataset, MediaRef, Modality, Step

_MEDIA: Final = frozenset(
    {".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp"}
    | {".mp4", ".mov", ".mkv", ".webm", ".avi"}
    | {".wav", ".mp3", ".m4a", ".ogg", ".flac", ".aac"}
)


def read_steps(
    name: str,
    data: Path,
    steps_of: Callable[[Path, Callable[[Finding], None]], Iterable[Step | None]],
    group: Callable[[Step], Step | None],
    *,
    tags: Sequence[str] | None,
    roles: Mapping[str, Modality] | None,
    fingerprint: Callable[[Path], str],
    expected: str,
    check_media: bool,
) -> LoadedDataset:
    """Read the steps of a benchmark's own files.

    Args:
        name: of the benchmark.
        data: as the user named it.
        steps_of: reads the steps, and reports findings; None for a skipped row.
        group: returns a step with its episode and group; None leaves it as it is.
        tags: names of tags; None for those of the steps.
        roles: the media of steps and their kinds; None for those of the steps.
        fingerprint: hashes the annotations.
        expected: the data in words, for errors.
        check_media: check that the media exist.

    Raises:
        DataError: the data have nothing readable of this benchmark.
    """
    if not data.exists():
        raise DataError(
            "there is no such file or folder",
            where=str(data),
            expected=expected,
            remedy="check the path",
        )
    findings: list[Finding] = []
    places = array("q")  # of each row the number of its step, -1 for none
    rows = number_steps(steps_of(data, findings.append), places)
    steps = Steps.of(group(step) or step for step in rows)
    if not steps:
        raise _no_step(name, data, expected, findings)
    there = Positions(steps)
    errors = (found for found in findings if found.severity == "error")
    skipped = sum(not any(name in there for name in found.sample_ids) for found in errors)
    if roles is None:
        shown = (item for step in steps for item in step.media.items())
        roles = {role: ref.kind for role, ref in shown if ref}
    if check_media and roles:
        check_media_files(steps, findings.append, always_shown="screenshot" in roles)
    return LoadedDataset(
        name,
        data,
        steps,
        findings,
        skipped,
        fingerprint(data),
        row_ids(steps, places),
        tuple(dict.fromkeys(tag for step in steps for tag in step.tags)) if tags is None else tags,
        roles,
    )


def _no_step(name: str, data: Path, expected: str, findings: Sequence[Finding]) -> DataError:
    if not findings:
        return DataError(
            f"the data have no row of {name}",
            where=str(data),
            expected=expected,
            remedy=files.OTHER_DATA,
        )
    return DataError(
        f"no row of {name} could be read: {findings[0].what}",
        where=findings[0].where,
        expected=findings[0].expected or expected,
        remedy="correct the rows, or name other data",
    )


def fingerprint_all(data: Path) -> str:
    """Return the SHA-256 over all files but media."""
    paths = [path for path in files.walk(data) if path.suffix.lower() not in _MEDIA]
    return files.fingerprint(paths, data if data.is_dir() else data.parent)


class EpisodeBuilder:
    """Makes the steps of an episode in order, each with the actions and screens before it.

    Args:
        episode_id: as in `Step`.
        count: steps that the data hold for the episode.
        tags: of all its steps.
    """

    def __init__(
        self, episode_id: str, tags: Mapping[str, str] | None = None, *, count: int = 1
    ) -> None:
        self._id, self._count, self._tags = episode_id, count, tags or {}
        self._history: list[Action | None] = []
        self._screens: list[Screen] = []

    @property
    def length(self) -> int:
        """The number of steps so far, skipped ones included."""
        return len(self._history)

    def step(
        self,
        sample_id: str,
        instruction: str,
        media: Mapping[str, MediaRef | None],
        screen: Screen,
        action: Action | None,
        source: Mapping[str, Any],
        *,
        group: str = "",
    ) -> Step:
        """Return the next step; arguments are as in `Step`."""
        number, past, screens = self.length, tuple(self._history), tuple(self._screens)
        self.skip(screen, action)
        return Step(
            sample_id, self._id, number, self._count, instruction, screen, media, past, screens,
            action, self._tags, source, group=group,
        )  # fmt: skip

    def skip(self, screen: Screen = (0, 0), action: Action | None = None) -> None:
        """Count a step that cannot be asked about; histories show its action, if it is known."""
        self._history.append(action)
        self._screens.append(screen)


def prompt_text(package: str, name: str) -> str:
    """Return the prompt text `prompts/NAME.txt` of a benchmark's package."""
    folder = resources.files(f"omnidata.tasks.{package}").joinpath("prompts")
    return folder.joinpath(f"{name}.txt").read_text(encoding="utf-8")

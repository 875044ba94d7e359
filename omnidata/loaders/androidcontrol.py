"""AndroidControl: episodes of TFRecords as steps, one for each action.

Source: the README of `android_control` in google-research. A record is an episode; of its
screenshots and forests there is one more than of its actions.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from omnidata.errors import DataError, Finding
from omnidata.loaders import file_search, phone_files
from omnidata.loaders.a11y_forest import unpack
from omnidata.loaders.androidcontrol_rows import FINAL, FOREST, STEP
from omnidata.loaders.androidcontrol_steps import ROLES, SPLITS, TAGS, EpisodeReader
from omnidata.loaders.opening import opened
from omnidata.loaders.tfrecord import records
from omnidata.media import read_bytes
from omnidata.types import Source, Step

FEATURES = frozenset({"actions", "screenshots", "goal"})
_PEEKED = 20


def load(data: Path | str, *, strict: bool = False, check_media: bool = True) -> Source:
    """Read episodes; no picture is decoded.

    A step's `source` has the features of its record as lists, but for the screenshots and the
    forests; beside them `step`, its number, and `accessibility_tree`, the forest of its screen,
    packed (`omnidata.loaders.a11y_forest.unpack`). The last step has `final_accessibility_tree`
    too, and among its media `final_screenshot`: what was seen after the last action.

    Args:
        data: a folder of TFRecords, or one of them, packed with gzip or not, perhaps with
            `splits.json` beside; or a Parquet repository.
        strict: make the first finding an error.
        check_media: look whether the pictures are whole.

    Returns:
        Steps in the order of the records, named `<episode_id>/<number>`.

    Raises:
        DataError: no readable episode is there, or `strict` and there is a finding.
    """
    data = Path(data)
    return opened(
        data,
        "androidcontrol",
        TAGS,
        lambda: _read(data, check_media=check_media),
        strict=strict,
        check_media=check_media,
    )


def find(data: Path) -> list[Path]:
    """The TFRecords of the dataset, sorted.

    Raises:
        DataError: there are none.
        OSError: a file cannot be read.
    """
    looks = {path: phone_files.look(path, FEATURES) for path in file_search.walk(data)}
    expected = f"TFRecords whose examples have {', '.join(sorted(FEATURES))}"
    return file_search.chosen(data, looks, expected)


def recognises(data: Path, benchmark: str = "") -> bool:
    """Whether one of the first files there is AndroidControl's.

    Raises:
        OSError: a file cannot be read.
    """
    paths = filter(phone_files.may_hold_records, file_search.walk(data))
    return any(phone_files.look(path, FEATURES) == "known" for path in islice(paths, _PEEKED))


def fingerprint(data: Path) -> str:
    """SHA-256 over the TFRecords and the splits.

    Raises:
        DataError: as `find`.
    """
    root = data if data.is_dir() else data.parent
    splits = [root / SPLITS] if (root / SPLITS).is_file() else []
    return file_search.fingerprint([*find(data), *splits], root)


def _read(data: Path, *, check_media: bool) -> Source:
    findings: list[Finding] = []
    paths = find(data)
    reader = EpisodeReader(data if data.is_dir() else data.parent, findings.append, check_media)
    for path in paths:
        try:
            for record in records(path):
                reader.add(path, record)
        except DataError as error:
            reader.refuse("record-broken", error.where, error.what, error.expected)
    if not reader.steps:
        first = findings[0] if findings else None
        raise DataError(
            f"no episode could be read{f': {first.what}' if first else ''}",
            where=first.where if first else str(data),
            expected="episodes of at least one action",
            remedy="download the files again, or name other data",
        )
    return Source(
        "androidcontrol",
        data,
        reader.steps,
        findings,
        reader.skipped,
        fingerprint(data),
        [step.sample_id for step in reader.steps],
        TAGS,
        ROLES,
    )


def dump(source: Source) -> Iterator[dict[str, Any]]:
    """The features of every record that a source was read from, in their order.

    Args:
        source: of `load`; of each episode all steps.

    Yields:
        Features as lists; screenshots and forests are bytes.

    Raises:
        MediaError: a screenshot cannot be read.
    """
    episode: list[Step] = []
    for step in source.steps:
        if episode and step.step_index == 0:
            yield _features(episode)
            episode = []
        episode.append(step)
    if episode:
        yield _features(episode)


def _features(episode: list[Step]) -> dict[str, Any]:
    rows = [step.source for step in episode]
    bulk = (STEP, FOREST, FINAL)
    found = {name: value for name, value in rows[0].items() if name not in bulk}
    packed = [*(row.get(FOREST) for row in rows), rows[-1].get(FINAL)]
    shots = [*(step.media["screenshot"] for step in episode)]
    shots.append(episode[-1].media.get("final_screenshot"))
    found["accessibility_trees"] = [unpack(text) for text in packed if text is not None]
    found["screenshots"] = [read_bytes(shot) for shot in shots if shot is not None]
    return found

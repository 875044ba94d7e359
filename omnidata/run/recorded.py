"""The task, data and steps of a run, as its `run.json` records them.

A run folder may be somebody else's: a path or an address in it opens nothing without the user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnidata.errors import RunError, UsageError
from omnidata.remote import is_url
from omnidata.run.run_info import INFO
from omnidata.run.selection import select
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.common_options import FOR_JUDGING, names_file
from omnidata.types import LoadedDataset, Step


def recorded_task(
    info: Mapping[str, Any],
    name: str | None = None,
    options: Mapping[str, str] = {},
    *,
    run: Path | None = None,
) -> Asking:
    """Return the task with the options that loading and judging depend on.

    Options that allow any text name folders and files of the prompt's, which may be gone by now.

    Args:
        info: the content of `run.json`; empty for answers that are no run.
        name: of the task; the run's own if None.
        options: those that the caller wants otherwise.
        run: the folder, if its files alone name the task and the options.

    Raises:
        UsageError: there is no such task or option.
        RunError: this omnidata does not know those of the run.
    """
    name = info["task"] if name is None else name
    try:
        allowed = get_task(name).allowed
        recorded = info.get("options", {}).items()
        kept = {
            key: value
            for key, value in recorded
            if key in FOR_JUDGING or allowed.get(key, ("",)) != ("",)
        }
        if "dialect" in options:
            kept.pop("coordinates", None)  # the dialect has a unit of its own
        if "history" in options:
            kept.pop("patches", None)  # which only the history of a run has
        return get_task(name, kept | dict(options))
    except UsageError as error:
        if run is None:
            raise
        raise RunError(
            error.what,
            where=str(run),
            expected=error.expected,
            remedy="score the run with the version that made it, or restore its files",
        ) from None


@dataclass(frozen=True, slots=True)
class RecordedOptions:
    """The options of a run; no file that only the run folder names is opened.

    Attributes:
        values: options without a file, with a recorded text, or with a file that the user names.
        texts: option -> the recorded content of the file that it names.
        unopened: option -> the file or folder that only the run folder names.
    """

    values: Mapping[str, str]
    texts: Mapping[str, str]
    unopened: Mapping[str, str]


def recorded_options(
    info: Mapping[str, Any], run: Path, given: Mapping[str, str] = {}
) -> RecordedOptions:
    """Return the options that prompts of a run were made with.

    Args:
        info: the content of `run.json`.
        run: the folder, for messages.
        given: files and folders that the user names for options of the run.

    Raises:
        UsageError: there is no such task, or the run had no file for an option in `given`.
    """
    allowed = get_task(info["task"]).allowed
    own = info.get("options", {})
    files = {name: value for name, value in own.items() if value and names_file(name, allowed)}
    for name in sorted(given.keys() - files.keys()):
        raise UsageError(
            "a run folder names its own files"
            if name in own and not names_file(name, allowed)
            else f"the run had no file for the option {name}",
            where=f"-T {name}={given[name]}",
            expected=f"a file that {run} was made with: {', '.join(files) or 'it had none'}",
            remedy="leave it out",
        )
    texts = {
        name: text
        for name, text in info.get("prompt_texts", {}).items()
        if name in files and name not in given
    }
    known = {*texts, *given}
    unopened = {name: value for name, value in files.items() if name not in known}
    kept = {name: value for name, value in own.items() if name not in unopened}
    return RecordedOptions({**kept, **given}, texts, unopened)


def recorded_data(info: Mapping[str, Any], run: Path, data: Path | None = None) -> Path:
    """Return where the data of a run lie: `data` if the user names them, else the recorded place.

    An address in a run folder is not opened: the request would bear the user's credentials.

    Raises:
        UsageError: no place is recorded, or it is an address, or neither a file nor a folder; or no
            fingerprint is recorded.
    """
    if data is not None:
        return data
    place = info.get("data")
    if not place:
        raise UsageError(
            "the place of the data is unknown",
            where=str(run),
            expected="the dataset that the answers are to",
            remedy="name it with --data, or complete an unfinished run first",
        )
    path = Path(place)
    if not info.get("dataset_fingerprint"):
        what = "the run does not name its data"
        expected = "dataset_fingerprint, to recognise the data"
        remedy = f"name them, if they are yours: --data {place}"
    elif is_url(place):
        what = (
            "only the run folder names the address of the data, and such an address is not opened"
        )
        expected = "the address on the command line, if you trust it"
        remedy = f"--data {place}"
    elif path.exists() and not (path.is_file() or path.is_dir()):
        what = "the data are neither a file nor a folder"
        expected = "the dataset that the answers are to"
        remedy = "name it with --data"
    else:
        return path
    raise UsageError(what, where=f"{run / INFO}: {place}", expected=expected, remedy=remedy)


def recorded_steps(info: Mapping[str, Any], source: LoadedDataset, run: Path) -> Sequence[Step]:
    """Return the steps that the run asks about.

    Raises:
        RunError: the data have other annotations than the run's, or its task is unknown.
    """
    if info.get("dataset_fingerprint") != source.fingerprint:
        raise RunError(
            "the run was made on other annotations",
            where=str(run),
            expected="annotations with the fingerprint in run.json",
            remedy="name the data of the run; to score anyway, name its predictions.jsonl",
        )
    return select(
        source.steps,
        where=info.get("where", {}),
        exclude=frozenset(info.get("exclude", ())),
        limit=info.get("limit"),
        task=recorded_task(info, run=run),
        part=info.get("shard"),
    )

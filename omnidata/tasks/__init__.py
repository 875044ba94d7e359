"""One folder per benchmark: loader, prompt and profiles wired together; `registry` finds them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from omnidata import registry
from omnidata.adapters import presets
from omnidata.dialects import get_dialect
from omnidata.errors import UsageError
from omnidata.tasks.asking import Asking
from omnidata.tasks.asking_in_dialect import AskingInDialect, unit_for
from omnidata.tasks.asking_under_options import AskingUnderOptions
from omnidata.tasks.common_options import IN_DIALECT, OPTIONS, split
from omnidata.tasks.coordinates import of_screen

__all__ = ["get_task", "is_named", "of_screen", "options_for"]


def get_task(
    name: str, options: Mapping[str, str] | None = None, *, texts: Mapping[str, str] = {}
) -> Asking:
    """The task of that name, set up with its options.

    An error about data that are another task's rows names that one.

    Args:
        name: ours, or one that another distribution brings.
        options: as given with `-T key=value`.
        texts: option -> the content of the file that it names, which is not opened then.

    Raises:
        UsageError: there is no such task, an option has an unknown name or value, or the
            distribution that brings the task is broken.
    """
    given, common = options or {}, dict[str, str]()
    if not OPTIONS.keys().isdisjoint(given):
        given, common = split(given, registry.get_benchmark(name).allowed)
    spoken: dict[str, str] = {
        option: common.pop(option) for option in IN_DIALECT if option in common
    }
    if spoken:
        given = _in_units(name, given, spoken)
    found = Asking(registry.get_benchmark(name, given))
    if window := common.get("history_window"):
        found.history_window = int(window)
    if "patches" in common and not found.needs_predictions:
        raise UsageError(
            "patches correct the model's own history, and this history is not its own",
            where=f"-T patches={common['patches']}",
            expected="-T history=predicted as well",
            remedy="leave out patches",
        )
    if common:
        found = AskingUnderOptions(found, common)
    if not spoken:
        return found
    dialect = get_dialect(spoken["dialect"])
    return AskingInDialect(found, dialect, spoken.get("system", ""), texts.get("system"))


def is_named(task: Asking) -> bool:
    """Return whether `get_task` makes the same task of its name and options, in any process."""
    if task.past is not None or task.name not in registry.names():
        return False
    return type(registry.get_benchmark(task.name)) is type(task.benchmark)


def options_for(
    name: str, options: Mapping[str, str], spec: str, *, models: Path | None = None
) -> tuple[dict[str, str], str]:
    """The options of a task that a model is asked about, in the dialect that its preset names.

    What the caller says of dialects, or of units, which are the dialect's, goes before the preset.

    Args:
        name: of the task.
        options: as given with `-T key=value`.
        spec: the model's SPEC.
        models: the user's file of models; the one that `OMNIDATA_MODELS` names if None.

    Returns:
        The options, and what to tell the caller of them; empty where nothing was changed.

    Raises:
        UsageError: as `get_task`; or the file of models is broken, or names no dialect of ours.
    """
    row = presets.find_row(spec, models)
    if not (row and row.dialect) or options.keys() & {"dialect", "coordinates"}:
        return dict(options), ""
    try:
        dialect = get_dialect(row.dialect)
    except UsageError as error:
        error.where = f"[{spec}] dialect = {row.dialect!r} in the table of models"
        raise
    get_task(name, options)  # what is wrong without the dialect is said as such
    spoken = {**options, "dialect": dialect.name}
    try:
        get_task(name, spoken)
    except UsageError as error:
        said = f"{spec} is asked in the words of {name}, not in its dialect {dialect.name}"
        return dict(options), f"{said}: {error.what}"
    said = f"{spec} is asked in its dialect, {dialect.name}"
    return spoken, f"{said}; -T dialect=unified uses the prompt of {name}"


def _in_units(name: str, given: Mapping[str, str], spoken: Mapping[str, str]) -> Mapping[str, str]:
    if "dialect" not in spoken:
        raise UsageError(
            "a system text needs a prompt in a dialect",
            where=f"-T system={spoken['system']}",
            expected="-T dialect=NAME as well",
            remedy="name the dialect, or leave out system",
        )
    dialect = get_dialect(spoken["dialect"])
    if "coordinates" in given:
        raise UsageError(
            f"the dialect sets the unit of places: {dialect.frame.space} in {dialect.name}",
            where=f"-T coordinates={given['coordinates']}",
            expected="either dialect or coordinates",
            remedy="leave out coordinates",
        )
    unit = unit_for(registry.get_benchmark(name), dialect)
    return {**given, "coordinates": unit} if unit else given

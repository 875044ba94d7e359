"""A pool of subtasks, read and made ready for composition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from omnidata.errors import DataError
from omnidata.loaders.omnibench import read_library
from omnidata.loaders.omnibench_apps import categories_of
from omnidata.loaders.omnibench_library import Library
from omnidata.synth.compose import unused
from omnidata.synth.compose.cards import Card, Pool, intents_of
from omnidata.synth.compose.compiling import Compiler, chosen
from omnidata.synth.compose.recorded import Recorded, recordings
from omnidata.synth.compose.settings import Settings
from omnidata.synth.templates import filled, places


def read_pool(path: Path, settings: Settings) -> Pool:
    """Read a pool: subtasks, their trajectories where those are asked for, and their intents.

    Intents are in the column `task_intents` (a list of texts) or `task_intent` of a subtask's row;
    where no row has any, all subtasks are one group.

    Args:
        path: of the pool, as `read_library` takes it.
        settings: of the composition.

    Raises:
        DataError: there are no subtasks, or none can be used: the message names the first reason.
        UsageError: no intent contains what was asked for.
    """
    library = read_library(path)
    if not library.subtasks:
        raise DataError(
            "the pool has no subtasks",
            where=str(path),
            expected="rows with instruction_template, application, available_parameters, "
            "input_resources, output_resources",
            remedy="`omnidata synth pool POOL` makes a sample pool",
        )
    findings = list(library.findings)
    found = recordings(library, findings.append) if settings.trajectories else {}
    cards = list(_cards(library, found, settings, findings.append))
    compiler = Compiler(library.subtasks, cards, settings, findings.append)
    stock, kinds = compiler.stock(), compiler.initial_kinds()
    pool = Pool(library.root, library.subtasks, compiler.cards, stock, kinds, findings)
    findings += list(unused.findings(pool, _wanted(library, settings)))
    if not stock.groups:
        reason = next((str(each) for each in findings if each.code in unused.CODES), "")
        raise DataError(
            f"no subtask of the pool can be used, the first: {reason}",
            where=str(path),
            expected="subtasks whose inputs others provide, or which exist initially",
            remedy="mend the pool, or say with --initial which resources exist",
        )
    return pool


def _wanted(library: Library, settings: Settings) -> frozenset[str]:
    """The subtasks that serve an intent that was asked for; none where there are no intents."""
    intents = {name: intents_of(subtask) for name, subtask in library.subtasks.items()}
    every = list(dict.fromkeys(intent for found in intents.values() for intent in found))
    asked = set(chosen(every, settings)) if every else set()
    return frozenset(name for name, found in intents.items() if not asked.isdisjoint(found))


def _cards(
    library: Library,
    found: Mapping[tuple[str, int], Recorded],
    settings: Settings,
    note: unused.Note,
) -> Iterator[Card]:
    """Every subtask with every binding that is whole, and recorded where that is asked for."""
    given = {
        subtask.application: category
        for subtask in library.subtasks.values()
        if isinstance(category := subtask.source.get("category"), str)
    }
    for subtask in library.subtasks.values():
        lacking = 0
        seen: set[str] = set()
        for number, binding in enumerate(subtask.parameters or ({},)):
            if missing := [name for name in places(subtask.template) if name not in binding]:
                what = f"binding {number} has no {', '.join(missing)}"
                note(unused.unused("binding-incomplete", subtask, what, "a value for every place"))
                continue
            known = json.dumps(binding, sort_keys=True)
            if known in seen:
                continue
            seen.add(known)
            recorded = found.get((subtask.id, number))
            lacking += recorded is None
            if recorded is None and settings.trajectories:
                continue
            yield Card(
                subtask.id,
                filled(subtask.template, binding),
                subtask.application,
                categories_of([subtask.application], given)[subtask.application],
                binding,
                recorded,
            )
        if lacking and settings.trajectories:
            what = f"{lacking} of {len(subtask.parameters or ({},))} bindings have no trajectory"
            note(
                unused.unused("trajectory-missing", subtask, what, "one with the same instruction")
            )

"""Tasks of controlled complexity, composed from a pool of subtasks (OmniBench, section 3.2).

Subtasks of one intent are joined if one provides what another needs; `graph_sampler` has the rules.
Processes make batches of attempts and parts of the output, and whole ones are kept, so that an
interrupted call resumes; OUT appears when all is whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from omnidata.errors import DataError, UnansweredError, UsageError
from omnidata.loaders.task_library import CONTENTS, Library, write_library
from omnidata.media import resolve
from omnidata.run.engines import Cluster
from omnidata.storage import atomic_write, link_or_copy, wrap_os_error
from omnidata.synth.compose import parts
from omnidata.synth.compose.instructions import Author, Draft, Written, write_instructions
from omnidata.synth.compose.pool import Pool, read_pool
from omnidata.synth.compose.search import Found, Search, find_tasks
from omnidata.synth.compose.settings import MOST_TASKS, Settings
from omnidata.synth.folder import SynthStaging, make_parts, run_folder
from omnidata.types import MediaRef, Progress

__all__ = ["REPORT", "Author", "Settings", "compose"]

REPORT = "compose.json"
_BATCHES, _PARTS = "lots", "parts"
_JOINED = ("tasks.jsonl", "trajectories.jsonl")


class ComposeStaging(SynthStaging):
    """The staging folder of composed tasks."""

    noun = "tasks"
    work = "composing tasks"
    report = REPORT
    contents = frozenset({REPORT, *CONTENTS})
    listed = "pictures"


def compose(
    pool: Path,
    out: Path,
    settings: Settings,
    *,
    tasks: int,
    author: Author | None = None,
    workers: int = 1,
    cluster: Cluster | None = None,
    progress: Progress | None = None,
) -> Mapping[str, Any]:
    """Compose distinct tasks and write them in OmniBench's layout.

    Equal settings and an equal pool make equal bytes with any number of processes, interrupted or
    not. A model's answers are kept beside `out` and never asked for again. Task k is the same among
    any number of tasks.

    Args:
        pool: subtasks, and trajectories unless graphs alone are asked for.
        out: a new or empty folder, or the result of the same call.
        settings: of the tasks.
        tasks: how many; `out` has those whose instruction is accepted.
        author: a model that writes instructions; None = by template.
        workers: processes; 1 = this one.
        cluster: whose workers try and write; None for this machine.
        progress: called in each stage with the finished tasks and their number.

    Returns:
        The report, as in `compose.json`.

    Raises:
        UsageError: a value is out of range, no intent fits, or `out` holds something else or lies
            in the pool.
        DataError: the pool cannot be used, it has not so many tasks of these levels, or `out` holds
            tasks of other settings.
        RunError: a process was lost, or a model did not answer everything: nothing is written,
            and the same call goes on.
    """
    if not 1 <= tasks <= MOST_TASKS:
        raise UsageError(f"{tasks} tasks", where="--tasks", expected=f"1 to {MOST_TASKS:,}")
    loaded = read_pool(pool, settings)
    plan = {
        "tasks": tasks,
        "settings": settings.as_dict(),
        "pool": {"fingerprint": loaded.fingerprint},
        "author": author.as_dict() if author else None,
        "made_by": {"omnidata": version("omnidata")},
    }
    staging = ComposeStaging(out, plan=plan, inputs=[pool], data=pool)
    if report := staging.earlier_report():
        return report
    show = progress or (lambda done, total: None)
    with staging, wrap_os_error(staging.path):
        try:
            search = Search(settings.seed, settings.target(), settings.edges)
            found = find_tasks(
                loaded.indexed,
                search,
                staging.path / _BATCHES,
                tasks=tasks,
                workers=workers,
                cluster=cluster,
                progress=show,
            )
            texts, written = _texts(found, loaded, settings, author, run_folder(out))
        except DataError:  # nothing of it is of use to a call with other settings
            shutil.rmtree(staging.path)
            raise
        if author is not None:  # parts of an earlier call may have other answers
            shutil.rmtree(staging.path / _PARTS, ignore_errors=True)
        jobs = list(_jobs(staging.path / _PARTS, found, texts, loaded, settings))
        make_parts(
            parts.write,
            jobs,
            workers=workers,
            cluster=cluster,
            folder=staging.path,
            progress=show,
        )
        pictures = _join(jobs, staging.path, loaded)
        made = _report(loaded, found, jobs, written)
        return staging.publish({"pictures": pictures, "made": made}, scratch=(_BATCHES, _PARTS))


def _texts(
    found: Found, pool: Pool, settings: Settings, author: Author | None, run: Path
) -> tuple[list[parts.Text], Written | None]:
    if author is None:
        return [parts.Text(number) for number in range(len(found.sketches))], None
    drafts = []
    for number, sketch in enumerate(found.sketches):
        cards = [pool.cards[one] for one in sketch.instances]
        intent = pool.indexed.groups[sketch.group].intent or cards[-1].instruction
        subtasks = [(card.application, card.instruction) for card in cards]
        drafts.append(Draft(number, intent, subtasks, frozenset(sketch.edges)))
    written = write_instructions(drafts, author, run, seed=settings.seed, rule=settings.edges)
    if written.unanswered or written.stopped:
        what = f"{len(written.unanswered)} tasks wait for an answer"
        raise UnansweredError(
            f"{what}: {written.stopped or 'the model gave none'}",
            where=str(run),
            expected="an answer to every question; nothing is written before",
            remedy="the same command asks again, and only for what is missing",
        )
    if not written.accepted:
        raise DataError(
            f"none of {len(drafts)} tasks has an instruction that tells its graph",
            where=str(run),
            expected="instructions from which the model reads the same dependencies",
            remedy="allow more rounds (--rounds), ask another model, or leave --model out",
        )
    return [
        parts.Text(task, text, {"model": author.model.name, "round": number})
        for task, (text, number) in sorted(written.accepted.items())
    ], written


def _jobs(
    folder: Path, found: Found, texts: Sequence[parts.Text], pool: Pool, settings: Settings
) -> Iterator[parts.Job]:
    folder.mkdir(exist_ok=True)
    known = frozenset(pool.subtasks)
    for number, first in enumerate(range(0, len(texts), parts.SIZE)):
        some = texts[first : first + parts.SIZE]
        sketches = [found.sketches[text.task] for text in some]
        used = {one for sketch in sketches for one in sketch.instances}
        initial = {one for sketch in sketches for one in sketch.initial}
        yield parts.Job(
            folder=folder,
            number=number,
            settings=settings,
            sketches=sketches,
            texts=some,
            cards={one: pool.cards[one] for one in sorted(used)},
            intents=[group.intent for group in pool.indexed.groups],
            initial={one: pool.indexed.resources[one] for one in sorted(initial)},
            known=known,
        )


def _join(jobs: Sequence[parts.Job], folder: Path, pool: Pool) -> list[str]:
    for name in _JOINED:
        with atomic_write(folder / name) as file:
            for job in jobs:
                with job.file(name).open("rb") as part:
                    shutil.copyfileobj(part, file)
        if not (folder / name).stat().st_size:
            (folder / name).unlink()
    cards = {number: card for job in jobs for number, card in job.cards.items()}
    used = {card.subtask for card in cards.values()}
    subtasks = {name: subtask for name, subtask in pool.subtasks.items() if name in used}
    write_library(Library(pool.root, subtasks), folder, pictures=False)
    recorded = [card.recorded for card in cards.values() if card.recorded]
    pictures = {name for one in recorded for name in (*one.observations, one.end) if name}
    for name in sorted(pictures):
        _link(pool.root, name, folder)
    return sorted({Path(name).parts[0] for name in pictures})


def _link(root: Path, name: str, folder: Path) -> None:
    """Link a picture under the same relative path; copy it if the file system has no links."""
    source, target = resolve(MediaRef("image", root, name)), folder / name
    if Path(name).parts[0] in {*ComposeStaging.contents, *ComposeStaging.hidden, _BATCHES, _PARTS}:
        raise DataError(
            f"a picture is called {name!r:.80}",
            where=str(root),
            expected="another name than those of the files that are written beside it",
        )
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    link_or_copy(source, target)


def _report(
    pool: Pool, found: Found, jobs: Sequence[parts.Job], written: Written | None
) -> dict[str, Any]:
    instructions: dict[str, Any] = {"by": "template"}
    if written is not None:
        rounds = [number for _, number in written.accepted.values()]
        instructions = {
            "by": "model",
            "accepted": len(written.accepted),
            "accepted_in_round": {
                str(number): rounds.count(number) for number in sorted(set(rounds))
            },
            "rejected": len(written.rejected),
            "not_accepted": dict(sorted(written.why.items())),
        }
    return {
        **parts.total(jobs),
        "search": found.as_dict(),
        "instructions": instructions,
        "initial": list(pool.initial),
        "pool": {
            "subtasks": len(pool.subtasks),
            "instances": len(pool.cards),
            "intents": sum(bool(group.intent) for group in pool.indexed.groups),
        },
        "findings": [dict(finding.as_dict()) for finding in pool.findings],
    }

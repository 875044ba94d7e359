"""OSWorld's result trees: rollouts of agents as steps, one for each turn.

Source: OSWorld (sections 2 and 4, Appendices A.3 and C), and the trees that its release and public
forks of it write; `docs/osworld.md` lists their dialects.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnidata.errors import DataError, FileError, Finding, MediaError, MissingMediaError
from omnidata.loaders import repository
from omnidata.loaders.json_lines import values
from omnidata.loaders.media_files import check_media_files
from omnidata.loaders.osworld_instructions import INSTRUCTION, Instructions
from omnidata.loaders.osworld_result import Result, read_result
from omnidata.loaders.osworld_signature import FOUND, recognises
from omnidata.loaders.osworld_steps import ROLES, TAGS, AlignBy, StepReader, Told
from omnidata.loaders.osworld_tree import RESULT, TRAJECTORY, Rollout, find
from omnidata.loaders.osworld_turns import Run, read_runs
from omnidata.loaders.place import Note
from omnidata.loaders.recognition import reading
from omnidata.loaders.strict import refuse_findings
from omnidata.media import Budget, resolve
from omnidata.types import MediaRef, Source, Step

EXAMPLES = "evaluation_examples/examples"
"""Where the release has the examples, beside its results."""

_BUDGET = Budget(max_bytes=4 * 1024**3)
_SKIPPING = frozenset({"json-invalid", "turns-many"})


@dataclass(frozen=True, slots=True)
class Results(Source):
    """A source that knows the rollouts without a single step too.

    Attributes:
        results: by rollout, what the evaluation said; empty for a Parquet repository.
    """

    results: Mapping[str, tuple[Rollout, Result]] = field(default_factory=dict)


def load(
    data: Path | str,
    *,
    examples: Path | None = None,
    align: AlignBy = "clock",
    strict: bool = False,
    check_media: bool = True,
    needs_steps: bool = True,
) -> Source:
    """Read rollouts as steps; nothing in them is executed, and no clip is decoded.

    A step's `source` has the untouched lines of its turn in `rows`, and what the folders say beside
    them. Its `action`, and so the history of later steps, is what comes nearest among the
    primitives of a touch screen, with the agent's own text for words.

    Args:
        data: the tree, from any of its levels downwards; a trajectory's file; or a Parquet
            repository.
        examples: the release's folder `evaluation_examples/examples`, for the instructions; None
            where it lies under that name in the tree, or nowhere.
        align: "pictures" decodes the recordings to find the screenshots in them.
        strict: make the first finding an error.
        check_media: look whether screenshots and recordings exist and are whole.
        needs_steps: refuse data without a turn; otherwise that is no problem.

    Returns:
        A `Results`; steps in the order of the folders, named `<folder>/<number of the turn>`.

    Raises:
        DataError: nothing readable as OSWorld is there, or no turn, or `strict` and there is a
            finding.
    """
    data = Path(data)
    with reading(data, "osworld", *([examples] if examples else [])):
        if repository.is_repository(data):
            source = repository.load(data, "osworld", TAGS, check_media=check_media)
        else:
            held = data / EXAMPLES
            told = Instructions(examples or (held if held.is_dir() else None))
            source = _read(data, told, align, check_media=check_media)
        if needs_steps and not source.steps:
            errors = (one for one in source.findings if one.severity == "error")
            first = next((f": {one.where}: {one.what}" for one in errors), "")
            raise DataError(
                f"no turn of an agent is there{first}",
                where=str(data),
                expected=f"{TRAJECTORY} with lines of step_num, action_timestamp and action",
                remedy="name other data; `omnidata score osworld` needs the results alone",
            )
    if strict:
        refuse_findings(source.findings, data)
    return source


def rollouts(data: Path, note: Note) -> list[Rollout]:
    """The rollouts that are there, with or without a trajectory.

    Raises:
        DataError: nothing is there, or nothing like OSWorld's results.
        FileError: a link to a folder leads outside.
    """
    if not data.exists():
        raise _unlike("there is no such file or folder", data)
    try:
        if data.is_file() and not recognises(data):
            raise _unlike("no line there is one of a trajectory", data)
        found = find(data, note)
    except FileError:
        raise
    except OSError as error:
        raise _unlike(f"it cannot be read ({error.strerror})", data) from None
    if not found:
        raise _unlike(f"no folder there holds {TRAJECTORY} or {RESULT}", data)
    return found


def _unlike(what: str, data: Path) -> DataError:
    remedy = "name the folder of results; `omnidata info` lists the other tasks"
    return DataError(what, where=str(data), expected=FOUND, remedy=remedy)


def _read(data: Path, instructions: Instructions, align: AlignBy, *, check_media: bool) -> Results:
    findings: list[Finding] = []
    note = findings.append
    reader = StepReader(instructions, align, note)
    steps: list[Step] = []
    results: dict[str, tuple[Rollout, Result]] = {}
    for rollout in rollouts(data, note):
        result = read_result(rollout, note)
        results[rollout.path] = rollout, result
        runs = _runs(rollout, data.name if data.is_file() else TRAJECTORY, note)
        for number, run in enumerate(runs):
            steps += reader.steps(Told(rollout, run, number, len(runs), result))
    findings += _doubts(instructions, data)
    if check_media and steps:
        check_media_files(steps, note, always_shown=False)
    return Results(
        "osworld",
        data,
        steps,
        findings,
        sum(finding.code in _SKIPPING for finding in findings),
        fingerprint(data),
        [step.sample_id for step in steps],
        TAGS,
        ROLES,
        results=results,
    )


def _runs(rollout: Rollout, file: str, note: Note) -> list[Run]:
    """The runs of a rollout; none where there is no trajectory, or none that can be read."""
    ref = MediaRef("image", rollout.root, rollout.name(file))
    try:
        runs = read_runs(values(resolve(ref, budget=_BUDGET)), note)
    except MissingMediaError:
        return []
    except (MediaError, OSError) as error:
        what = error.what if isinstance(error, MediaError) else str(error.strerror)
        note(
            Finding(
                "trajectory-unreadable",
                "error",
                ref.path,
                what,
                "a file of JSON lines in the example's own folder",
                "mend the file; the rollout has no steps until then",
            )
        )
        return []
    if len(runs) > 1:
        note(
            Finding(
                "runs-appended",
                "warning",
                ref.path,
                f"the file holds {len(runs)} runs: step_num begins anew",
                "one run",
                "recording and result are about the last one; the others are episodes of their own",
            )
        )
    return runs


def _doubts(instructions: Instructions, data: Path) -> list[Finding]:
    missing = sorted(instructions.missing)
    if not missing:
        return []
    return [
        Finding(
            "instruction-missing",
            "warning",
            str(data),
            f"nobody says the task of {len(missing)} rollouts, the first: {missing[0]}",
            "the task's text",
            f"put OSWorld's {EXAMPLES} into the folder, or name it with -T examples=FOLDER",
        )
    ]


def fingerprint(data: Path) -> str:
    """SHA-256 over trajectories, results and instructions: the same wherever the data lie.

    Raises:
        DataError: nothing like OSWorld's results is there.
    """
    digest = hashlib.sha256()
    for rollout in rollouts(data, lambda finding: None):
        names = [rollout.name(file) for file in (TRAJECTORY, RESULT, INSTRUCTION)]
        if data.is_file():
            names = [data.name, *names]
        for name in (*names, f"{EXAMPLES}/{rollout.domain}/{rollout.example_id}.json"):
            try:
                path = resolve(MediaRef("image", rollout.root, name), budget=_BUDGET)
                with path.open("rb") as content:
                    own = hashlib.file_digest(content, "sha256").digest()
            except (MediaError, OSError):
                continue
            digest.update(f"{name}\0".encode("utf-8", "surrogateescape") + own)
    return digest.hexdigest()


def dump(steps: Sequence[Step]) -> dict[str, list[Mapping[str, Any]]]:
    """The lines of the trajectories again, by the rollout's folder.

    What was no JSON object is not in it, nor are rollouts without a turn.

    Args:
        steps: of a source, in its order; they may have been through a Parquet repository.

    Examples:
        >>> dump([])
        {}
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for step in steps:
        source = step.source
        lines = found.setdefault(source["path"], [])
        lines += [*source["before"], *source["rows"], *source["after"]]
    return found


def dump_lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    r"""The content of a trajectory's file.

    Examples:
        >>> dump_lines([{"step_num": 1}])
        b'{"step_num": 1}\n'
    """
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()

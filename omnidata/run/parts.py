"""A run in parts that `--shard` cut: `omnidata merge`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from omnidata import predictions
from omnidata.errors import PredictionError, RunError, UsageError, plural
from omnidata.files import LINE
from omnidata.jsontext import encode
from omnidata.loaders.steps import ids_of
from omnidata.remote import display_path
from omnidata.run.cost import add_up, with_whole_cost
from omnidata.run.differences import changes, describe_changes
from omnidata.run.histories import not_asked
from omnidata.run.journal import CODE, Answers
from omnidata.run.recorded import recorded_data, recorded_steps, recorded_task
from omnidata.run.run_info import ANSWERS, FACTS, read_info, write_info
from omnidata.run.scoring import get_profile, score
from omnidata.run.selection import whole_episodes
from omnidata.storage import atomic_write, open_own
from omnidata.tasks.asking import Asking
from omnidata.types import LoadedDataset, Step

Info = dict[str, Any]
_APART = ("shard", "prompt_texts")
"""Settings in which parts may differ: earlier versions have the hash of texts alone."""


def merge(
    runs: Sequence[Path], out: Path, *, data: Path | None = None, profile: str | None = None
) -> dict[str, Any]:
    """Join the run folders of all parts of a run, and score them as one.

    The result is that of one run over all steps: its command, without `--shard`, resumes it.

    Args:
        runs: one folder per part, in any order.
        out: the new run folder.
        data: the dataset; None takes the recorded place of the first part.
        profile: the scoring rules; the task's default if None.

    Returns:
        The content of `results.json`.

    Raises:
        UsageError, RunError, PredictionError, DataError: a part is missing, unfinished, given
            twice or of another run, or `out` holds something.
    """
    infos = [read_info(run) for run in runs]
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise RunError(
            "the folder is not empty",
            where=f"--out {out}",
            expected="a new or empty folder",
            remedy="choose another --out",
        )
    _check_parts(runs, infos)
    whole: Info = {**infos[0], "shard": None}
    task = recorded_task(whole, run=runs[0])
    judge = get_profile(task, profile)
    source = task.load(recorded_data(infos[0], runs[0], data), check_media=False)
    steps = recorded_steps(whole, source, runs[0])
    with ExitStack() as files, _new_folder(out) as folder:
        answers = [
            _read_answers(run, recorded_steps(info, source, run), task, files)
            for run, info in zip(runs, infos, strict=True)
        ]
        _join_answers(answers, steps, folder / ANSWERS)
        _join_attempts(runs, folder / "attempts.jsonl")
        results = score(
            task,
            judge,
            steps,
            predictions.read(folder / ANSWERS, of_run=True),
            whole=whole_episodes(source.steps, steps),
            out=folder,
            source=source,
        )
        write_info(folder, whole | _facts(infos, runs, source, len(steps)))
    return results


@contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """Yield a hidden folder, which becomes `out` at the end of the block; an error removes it."""
    unfinished = out.with_name(f".{out.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)  # what an interrupted call left
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        if out.exists():  # empty
            out.rmdir()
        unfinished.rename(out)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _check_parts(runs: Sequence[Path], infos: Sequence[Info]) -> None:
    parts: dict[int, Path] = {}
    first = infos[0]
    for run, info in zip(runs, infos, strict=True):
        if not info.get("shard"):
            raise UsageError(
                "the run is not a part of a run",
                where=str(run),
                expected="a folder made with --shard i/n",
                remedy="name the folders of the parts; a complete run needs no merging",
            )
        number, count = info["shard"]
        if number in parts and count == first["shard"][1]:
            raise UsageError(
                f"part {number}/{count} is given twice",
                where=f"{parts[number]}, {run}",
                expected="each part once",
                remedy="leave one of them out",
            )
        parts[number] = run
        _check_alike(runs[0], first, run, info)
    count = first["shard"][1]
    missing = [f"{number}/{count}" for number in range(1, count + 1) if number not in parts]
    if missing:
        raise UsageError(
            f"of {count} parts {len(missing)} are missing: {', '.join(missing)}",
            where=", ".join(map(str, runs)),
            expected="all parts of the run",
            remedy="run them with --shard, or name their folders",
        )


def _check_alike(one: Path, first: Info, other: Path, info: Info) -> None:
    def settings(recorded: Info) -> Info:
        own = {key: value for key, value in recorded.items() if key not in (*FACTS, *_APART)}
        return {**own, "number of parts": recorded["shard"][1]}

    found = changes(settings(first), settings(info))
    if found:
        raise RunError(
            "the parts were run with different settings: "
            + describe_changes(found, "{name}: {a} and {b}"),
            where=f"{one}, {other}",
            expected="parts of one run",
            remedy="remove the part of another run, or run it again",
        )
    codes = [recorded.get("versions", {}).get(CODE, "") for recorded in (first, info)]
    if all(codes) and codes[0] != codes[1]:
        raise RunError(
            f"the parts were answered by other code of the model: {codes[0]} and {codes[1]}",
            where=f"{one}, {other}",
            expected="parts of one run",
            remedy="run one of them again in a new folder, or repeat its command with "
            "--reuse-answers to keep the answers of the old code",
        )


def _read_answers(run: Path, steps: Sequence[Step], task: Asking, files: ExitStack) -> Answers:
    path = run / ANSWERS
    found = Answers(path, steps)
    files.callback(found.close)
    found.read(failed=True)
    if found.others:
        raise PredictionError(
            f"step {next(iter(found.others))} does not belong to this part",
            where=str(path),
            expected="one final line for each step of the part",
            remedy="remove the line, or run the part again in another folder",
        )
    lacking = len(steps) - len(found)
    if lacking and lacking > len(not_asked(task, steps, found)):
        raise RunError(
            f"{lacking} of {plural(len(steps), 'step')} have no line: the part is incomplete",
            where=str(run),
            expected="a complete part",
            remedy="repeat its command, which resumes it",
        )
    return found


def _join_answers(answers: Sequence[Answers], steps: Sequence[Step], path: Path) -> None:
    """Write the lines of all parts in the order of the steps."""
    with atomic_write(path) as file:
        for name in ids_of(steps):
            part = next((part for part in answers if name in part), None)
            if part is not None:  # else the step is behind the end of a rollout
                file.write(encode(part.line(name)) + b"\n")


def _join_attempts(runs: Sequence[Path], path: Path) -> None:
    """Join failed attempts; drop a last line that a killed process left torn."""
    found = [run / path.name for run in runs if (run / path.name).exists()]
    if not found:
        return
    with atomic_write(path) as file:
        for attempts in found:
            with open_own(attempts, "rb") as lines:
                while line := lines.readline(LINE):
                    if len(line) >= LINE:
                        raise RunError(
                            f"a line has {LINE:,} bytes or more",
                            where=str(attempts),
                            expected="failed attempts as a run writes them",
                            remedy="correct or remove the line",
                        )
                    if line.endswith(b"\n"):
                        file.write(line)


def _facts(infos: Sequence[Info], runs: Sequence[Path], source: LoadedDataset, steps: int) -> Info:
    facts: Info = {
        "data": display_path(source.root),
        "steps": steps,
        "findings": len(source.findings),
        "merged": [str(run) for run in runs],
    }
    recorded = {
        name: [info[name] for info in infos if info.get(name)]
        for name in ("versions", "timings", "usage", "facts")
    }
    facts["versions"] = add_up(recorded["versions"])
    if recorded["timings"]:
        facts["timings"] = add_up(recorded["timings"])
    if recorded["usage"]:
        parts = [info.get("usage", {}) for info in infos]
        facts["usage"] = with_whole_cost(add_up(recorded["usage"]), parts)
    if recorded["facts"]:
        facts["facts"] = {"parts": recorded["facts"]}  # shares and rates do not add up
    return facts

"""A run in parts: processes on this machine, each with a GPU of its own, and `omnidata merge`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from omnidata import predictions
from omnidata.errors import PredictionError, RunError, UsageError, counted
from omnidata.files import LINE
from omnidata.jsontext import encode
from omnidata.predictions import Prediction
from omnidata.run.run_files import changes, described, read_info, recorded_steps, recorded_task
from omnidata.run.scoring import get_profile, score
from omnidata.run.selection import whole_episodes
from omnidata.storage import atomic_write, open_own, write_json
from omnidata.types import LoadedDataset, Step

_LOOK_S = 0.5
_DONE = (0, 1)
"""Exit codes of a part that has come to its end; 1 if steps have failed."""


def parts_of(out: Path, count: int) -> list[Path]:
    """The run folders of the parts, beside the whole run's.

    Examples:
        >>> parts_of(Path("runs/a"), 2)
        [PosixPath('runs/a.parts/1'), PosixPath('runs/a.parts/2')]
    """
    return [out.with_name(f"{out.name}.parts") / str(number) for number in range(1, count + 1)]


def part_arguments(arguments: Sequence[str], part: Path, number: int, count: int) -> list[str]:
    """A command line for one part in place of that for the whole.

    Args:
        arguments: of `omnidata`, with `--out` and `--gpus`.
        part: the part's run folder.
        number: which part, from 1.
        count: of how many.

    Examples:
        >>> whole = ["evaluate", "omnigui", "D", "--out", "r", "--gpus=2", "--json", "-M", "a=b"]
        >>> part_arguments(whole, Path("r.parts/1"), 1, 2)
        ['evaluate', 'omnigui', 'D', '-M', 'a=b', '--out', 'r.parts/1', '--shard', '1/2']
    """
    kept: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        flag, equals, _ = argument.partition("=")
        if flag in ("--out", "--gpus"):
            if not equals:
                next(rest, None)
        elif argument != "--json":
            kept.append(argument)
    return [*kept, "--out", str(part), "--shard", f"{number}/{count}"]


def visible_gpus(count: int) -> list[str]:
    """The GPU of each process, as CUDA_VISIBLE_DEVICES names it.

    Raises:
        UsageError: fewer are visible than asked for.
    """
    said = os.environ.get("CUDA_VISIBLE_DEVICES")
    if said is None:
        return [str(number) for number in range(count)]
    visible = [name for name in said.split(",") if name]
    if visible and len(visible) < count:
        raise UsageError(
            f"CUDA_VISIBLE_DEVICES names {len(visible)}",
            where=f"--gpus {count}",
            expected="as many GPUs as processes",
            remedy="name more of them, or ask for fewer processes",
        )
    return visible[:count] or [""] * count


def run_parts(
    arguments: Sequence[str],
    out: Path,
    count: int,
    *,
    progress: Callable[[int], None] | None = None,
) -> list[Path]:
    """Run all parts at a time, to the end.

    What a process prints goes into a log beside its folder. When one fails, the others go on: what
    they do is kept, and the same command resumes.

    Args:
        arguments: of `omnidata` for the whole run.
        out: the whole run's folder; parts lie beside it.
        count: how many processes.
        progress: called with the number of lines that all parts have.

    Returns:
        The run folders of the parts.

    Raises:
        RunError: a part did not come to its end; has the last lines of its log.
        UsageError: fewer GPUs are visible than asked for.
    """
    parts = parts_of(out, count)
    gpus = visible_gpus(count)
    parts[0].parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        processes = []
        for number, (part, gpu) in enumerate(zip(parts, gpus, strict=True), 1):
            _log(part).unlink(missing_ok=True)
            log = stack.enter_context(_log(part).open("xb"))
            command = [sys.executable, "-m", "omnidata"]
            process = subprocess.Popen(
                [*command, *part_arguments(arguments, part, number, count)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": gpu},
                start_new_session=True,  # an interruption reaches it through us, and once
            )
            stack.enter_context(_ended(process))
            processes.append(process)
        while any(process.poll() is None for process in processes):
            time.sleep(_LOOK_S)
            if progress:
                progress(sum(map(_lines, parts)))
    for part, process in zip(parts, processes, strict=True):
        if process.returncode not in _DONE:
            said = _log(part).read_text("utf-8", "replace").strip().splitlines()[-5:]
            raise RunError(
                f"a part ended with exit code {process.returncode}: " + " | ".join(said),
                where=str(_log(part)),
                expected="all parts to come to their end",
                remedy="mend what it says and repeat the command, which resumes every part",
            )
    return parts


def _log(part: Path) -> Path:
    return part.with_name(f"{part.name}.log")


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Nobody goes on alone: whatever ends us interrupts the process, which keeps its work."""
    try:
        yield
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait()


def _lines(part: Path) -> int:
    try:
        with open_own(part / "predictions.jsonl", "rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    except (OSError, RunError):  # as the process that writes it will say
        return 0


_FACTS = ("data", "steps", "findings", "stopped", "versions", "timings", "usage", "facts")
"""What `run.json` says beside the settings."""

Info = dict[str, Any]


def merge(
    runs: Sequence[Path], out: Path, *, data: Path | None = None, profile: str | None = None
) -> dict[str, Any]:
    """Join the run folders of all parts of a run, and score them as one.

    What comes out is what one run over all steps would have left: its command, without `--shard`,
    resumes it.

    Args:
        runs: one folder per part, in any order.
        out: the new run folder.
        data: the dataset; where the first part had it if None.
        profile: the task's default if None.

    Returns:
        The content of `results.json`.

    Raises:
        UsageError, RunError, PredictionError, DataError: a part is missing, unfinished, given
            twice or of another run, or `out` holds something.
    """
    infos = [read_info(run) for run in runs]
    _check_out(out)
    _check_parts(runs, infos)
    whole: Info = {**infos[0], "shard": None}
    task = recorded_task(whole, run=runs[0])
    judge = get_profile(task, profile)
    source = task.load(_place(data, runs[0], infos[0]), check_media=False)
    steps = recorded_steps(whole, source, runs[0])
    answers: dict[str, Prediction] = {}
    for run, info in zip(runs, infos, strict=True):
        answers |= _answers(run, recorded_steps(info, source, run))
    unfinished = out.with_name(f".{out.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)  # what an interrupted call left
    unfinished.mkdir(parents=True)
    try:
        ordered = [answers[step.sample_id] for step in steps]
        with atomic_write(unfinished / "predictions.jsonl") as file:
            file.writelines(encode(line) + b"\n" for line in ordered)
        _join_attempts(runs, unfinished / "attempts.jsonl")
        results = score(
            task, judge, steps, ordered, whole=whole_episodes(source.steps, steps), out=unfinished
        )
        write_json(unfinished / "run.json", whole | _facts(infos, runs, source, len(steps)))
        if out.exists():
            out.rmdir()
        unfinished.rename(out)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return results


def _check_out(out: Path) -> None:
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise RunError(
            "the place holds something",
            where=f"--out {out}",
            expected="a new or empty folder",
            remedy="give another --out",
        )


def _check_parts(runs: Sequence[Path], infos: Sequence[Info]) -> None:
    """Refuse what are not all parts of one run, each once."""
    parts: dict[int, Path] = {}
    first = infos[0]
    for run, info in zip(runs, infos, strict=True):
        if not info.get("shard"):
            raise UsageError(
                "the run is no part of one",
                where=str(run),
                expected="a folder made with --shard i/n",
                remedy="name the folders of the parts; a whole run needs no merging",
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
    """Refuse two parts that were not cut from the same run."""

    def settings(said: Info) -> Info:
        named = {key: value for key, value in said.items() if key not in (*_FACTS, "shard")}
        return {**named, "number of parts": said["shard"][1]}

    found = changes(settings(first), settings(info))
    if found:
        raise RunError(
            "the parts were run with different settings: "
            + described(found, "{name}: {a} and {b}"),
            where=f"{one}, {other}",
            expected="parts of one run",
            remedy="leave out what is of another run, or run that part again",
        )


def _place(data: Path | None, run: Path, info: Info) -> Path:
    place = data or (Path(info["data"]) if info.get("data") else None)
    if place is None:
        raise UsageError(
            "the part has not come to its end and does not say where its data are",
            where=str(run),
            expected="a finished part",
            remedy="repeat its command, or name the dataset: --data",
        )
    return place


def _answers(run: Path, steps: Sequence[Step]) -> dict[str, Prediction]:
    """The final line of every step of one part."""
    path = run / "predictions.jsonl"
    due = {step.sample_id for step in steps}
    found: dict[str, Prediction] = {}
    for line in predictions.read_final(path):
        if line.sample_id not in due:
            raise PredictionError(
                f"step {line.sample_id} is none of this part's",
                where=str(path),
                expected="one final line for each step of the part",
                remedy="remove the line, or run the part again in another folder",
            )
        found[line.sample_id] = line
    if len(found) < len(due):
        raise RunError(
            f"{len(due) - len(found)} of {counted(len(due), 'step')} have no line: the part is not "
            "finished",
            where=str(run),
            expected="a finished part",
            remedy="repeat its command, which resumes it",
        )
    return found


def _join_attempts(runs: Sequence[Path], path: Path) -> None:
    """All failed attempts; a last line that a killed process tore is left out."""
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
                            remedy="mend or remove the line",
                        )
                    if line.endswith(b"\n"):
                        file.write(line)


def _facts(infos: Sequence[Info], runs: Sequence[Path], source: LoadedDataset, steps: int) -> Info:
    """What `run.json` of the whole says beside the settings."""
    facts: Info = {
        "data": str(source.root),
        "steps": steps,
        "findings": len(source.findings),
        "merged": [str(run) for run in runs],
    }
    versions = [info.get("versions", {}) for info in infos]
    facts["versions"] = {
        name: ", ".join(dict.fromkeys(said[name] for said in versions if name in said))
        for name in {name: None for said in versions for name in said}
    }
    for name in ("timings", "usage"):
        said = [info[name] for info in infos if info.get(name)]
        if said:
            facts[name] = _added(said)
    priced = [info.get("usage", {}).get("currency") for info in infos]
    if None in priced or len(set(priced)) > 1:  # a sum of some parts, or of two currencies, is none
        for name in ("cost", "currency", "prices_of"):
            facts.get("usage", {}).pop(name, None)
    if of_parts := [info["facts"] for info in infos if info.get("facts")]:
        facts["facts"] = {"parts": of_parts}  # shares and rates do not add up
    return facts


def _added(parts: Sequence[Mapping[str, Any]]) -> Info:
    """Numbers added up by name; of anything else the different values, once each."""
    total: Info = {}
    for name in {name: None for part in parts for name in part}:
        values = [part[name] for part in parts if name in part]
        if all(isinstance(value, Mapping) for value in values):
            total[name] = _added(values)
        elif all(isinstance(value, int | float) for value in values):
            total[name] = round(sum(values), 6)
        else:
            total[name] = ", ".join(dict.fromkeys(map(str, values)))
    return total

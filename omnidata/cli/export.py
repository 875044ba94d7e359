"""`omnidata export`: a dataset as training data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.declare import Group, argument, flag, option, repeatable, verb
from omnidata.errors import UsageError, plural
from omnidata.training.formats import (
    OURS,
    AnswerFormat,
    Format,
    Objects,
    PreferenceFormat,
    PromptFormat,
)

if TYPE_CHECKING:
    from omnidata.tasks.asking import Asking
    from omnidata.training.export import Exported
    from omnidata.training.preferences import Preferences
    from omnidata.training.rows import Options


def _titles(kind: type[Format]) -> list[str]:
    return [form.title or form.name for form in OURS if isinstance(form, kind)]


*_FIRST, _LAST = _titles(PreferenceFormat)


def _row_options(
    *,
    form: str = option(
        f"Format of the rows. Answers: {', '.join(_titles(AnswerFormat))}. Prompts with a "
        f"reward: {', '.join(_titles(PromptFormat))}. Preferences: see --pairs.",
        "TRAINER",
        name="--format",
        default=...,
    ),
    image_size: int | None = option("Shrink pictures to sides of at most N pixels.", "N", min=1),
    smart_resize: Literal[28, 32] | None = option(
        "Resize pictures as Qwen-VL does: 28 (Qwen2-VL, 2.5) or 32 (Qwen3-VL).", "FACTOR"
    ),
    min_pixels: int | None = option("With --smart-resize: the trainer's setting.", min=1),
    max_pixels: int | None = option("With --smart-resize: the trainer's setting.", min=1),
    video: Literal["file", "frames"] = option(
        "Clips as files (file) or as pictures (frames).", "FORM", default="file"
    ),
    frames: int | None = option("With --video frames: pictures per clip. Default: 4.", min=1),
    drop_audio: bool = flag("Leave audio out of the prompts.", "--drop-audio"),
    objects: Objects | None = option(
        "With swift: write coordinates as `objects`, norm1 or real.", "UNIT"
    ),
    reward: Literal["ui-r1", "gui-r1", "ui-s1", "aepo"] | None = option(
        "With prompts and a reward: ui-r1, gui-r1, ui-s1 or aepo. Default: 0.1 format + "
        "0.4 type + 0.5 exact.",
        "RECIPE",
    ),
    split: str = option(
        "Shares of the splits; a hash of each episode decides.",
        "SHARES",
        default="train=0.8,validation=0.1,test=0.1",
    ),
) -> Any:
    from omnidata.run.selection import parse_shares
    from omnidata.training.media_store import Sizing
    from omnidata.training.rows import Options

    args.check_together(
        frames,
        video == "frames",
        "--frames is for clips as pictures",
        f"--frames {frames}",
        "--video frames",
    )
    return Options(
        format=form,
        video=video,
        frames=frames or 4,
        drop_audio=drop_audio,
        sizing=Sizing(
            longest=image_size, factor=smart_resize, min_pixels=min_pixels, max_pixels=max_pixels
        ),
        objects=objects,
        shares=parse_shares(split),
        reward=reward,
    )


def _preference_options(
    *,
    pairs: list[Path],
    histories: Path | None,
    changed_media: bool,
    profile: str | None = option("With --pairs: rules that decide which answers are right."),
    order: Literal["nearest", "balanced"] | None = option(
        "With --pairs: nearest wrong answers first (nearest, the default), or causes of "
        "wrong answers in turn (balanced).",
        "ORDER",
    ),
    max_rows: int | None = option(
        "With --pairs: write the first N rows of this order.", "N", min=1
    ),
) -> Any:
    from omnidata.training.preferences import Preferences

    for flag_name, is_given in (
        (f"--profile {profile}", profile is not None),
        (f"--order {order}", order is not None),
        (f"--max-rows {max_rows}", max_rows is not None),
        ("--changed-media", changed_media and not histories),
    ):
        what = "this option is for answers of runs, and no run is named"
        args.check_together(is_given, pairs, what, flag_name, "--pairs RUN")
    if not pairs:
        return None
    return Preferences(
        runs=pairs,
        profile=profile,
        order=order or "nearest",
        most=max_rows,
        changed_media=changed_media,
    )


_Rows = Annotated["Options", Group(_row_options)]
_Preferences = Annotated["Preferences | None", Group(_preference_options)]


@verb(args.reading_data, args.listing_findings)
def export(
    *,
    task: args.TaskName,
    data: args.Data,
    out: Path = argument("A new folder for the export.", "OUT"),
    task_options: args.TaskOptions,
    steps: args.ChosenSteps,
    pairs: list[Path] = repeatable(
        "Write preferences from the answers of these runs; with --format "
        f"{', '.join(_FIRST)} or {_LAST} (repeatable).",
        "RUN",
        name="--pairs",
    ),
    histories: Path | None = option(
        "Put the model's own actions from this run into the prompts; the run needs -T "
        "history=predicted.",
        "RUN",
    ),
    coordinates: str | None = option(
        "Unit of the answers' coordinates: norm1000, rel or px of the pictures.", "UNIT"
    ),
    rows: _Rows,
    preferences: _Preferences,
    changed_media: args.ChangedMedia = False,
    check_against: Path | None = args.data_option(
        "Check that training shares nothing with these evaluation data."
    ),
    errata: list[str] = repeatable(
        "Train on the labels that these corrections lead to (repeatable, in order).", "FILE"
    ),
    copy: bool = flag("Copy media instead of hard-linking them.", "--copy"),
    overwrite: bool = flag("Replace an existing export.", "--overwrite"),
    strict: args.Strict = False,
    workers: args.Workers = None,
    cluster: args.Processes,
    as_json: args.Json = False,
) -> bool:
    """Write training data: prompts with targets, rewards or preferences.

    With --pairs each row has a right and a wrong answer of the runs. Prompts are those of the first
    run; -T changes them.

    OUT gets one JSON-lines file per split, the media, and export.json with settings and counts. The
    same command resumes an interrupted export. Exit code 1: steps are left out, or training shares
    something with the evaluation data; the findings list both.

    Example: omnidata export omnigui omnidata-demo/data train --format llamafactory
    """
    from omnidata.run.errata import read_all
    from omnidata.tasks.asking_under_options import load_to_ask
    from omnidata.training.export import export as run
    from omnidata.training.semi_online import run_histories

    if pairs and histories:
        raise UsageError(
            "--pairs keeps the prompts of the runs, and --histories changes them",
            where=f"--pairs {pairs[0]}, --histories {histories}",
            expected="one of the two",
        )
    options = args.add_option(task_options, "coordinates", coordinates)
    asking = _asking_of(task, options, pairs, histories)
    if not histories:
        rows.check(asking, with_runs=bool(pairs))
    source = load_to_ask(asking, data, check_media=False, strict=strict)
    terminal.print_findings(source)
    past = None
    if histories:
        past = run_histories(asking, source, histories, changed_media=changed_media)
    against = asking.load(check_against, check_media=False) if check_against else None
    with terminal.resumable(), terminal.progress("media") as progress:
        done = run(
            asking,
            source,
            out,
            replace(rows, copy=copy),
            **steps.read(source.steps),
            against=against,
            preferences=preferences,
            histories=past,
            overwrite=overwrite,
            workers=workers,
            cluster=cluster,
            progress=progress,
            errata=read_all(errata, task),
        )
    _print(done, out, as_json)
    return any(finding.severity == "error" for finding in done.findings)


def _asking_of(
    task: str, options: Mapping[str, str], pairs: Sequence[Path], histories: Path | None
) -> Asking:
    """Return the benchmark with its options; prompts of runs keep those of the first run."""
    from omnidata.tasks import get_task
    from omnidata.training.preferences import run_options
    from omnidata.training.semi_online import OPTION

    run = pairs[0] if pairs else histories
    if run is None:
        return get_task(task, options)
    recorded = run_options(task, run, options, *([OPTION] if histories else []))
    return get_task(task, recorded.values, texts=recorded.texts)


def _print(done: Exported, out: Path, as_json: bool) -> None:
    if as_json:
        terminal.print_json({"out": str(out), **done.report})
        return
    terminal.print_kinds(done.findings)
    counts_of = ["episodes", "groups", "steps"]
    if preferences := done.report.get("preferences"):
        counts_of.append("rows")
        _print_runs(preferences)
    rows = [
        (
            split,
            *(str(found[name]) for name in counts_of),
            *(f"{found['share'][name]:.1%}" for name in ("groups", "steps")),
            found["file"],
        )
        for split, found in done.report["splits"].items()
    ]
    head = ("split", *counts_of, "of groups", "of steps", "file")
    form = done.report["options"]["format"]
    terminal.print_table(f"{out} for {form}", head, rows)
    counts = Counter(finding.code for finding in done.findings)
    listed = ", ".join(f"{count} {code}" for code, count in counts.most_common())
    terminal.say(f"{plural(done.report['media'], 'media file')}; findings: {listed or 'none'}")
    page = "reinforce" if "reward" in done.report["options"] else "export"
    page = "preferences" if preferences else page
    if form in {one.name for one in OURS}:  # the pages are about these
        terminal.say(f"docs/{page}.md shows how to load it")


def _print_runs(preferences: Mapping[str, Any]) -> None:
    runs = preferences["runs"]
    kinds = dict.fromkeys(name for run in runs for name in run["answers"])
    terminal.print_table(
        f"answers by {preferences['profile']}",
        ("run", "model", *(name.replace("_", " ") for name in kinds)),
        [
            (run["run"], run["model"], *(str(run["answers"].get(name, 0)) for name in kinds))
            for run in runs
        ],
    )
    for what in ("steps", "written", "causes"):
        counts = preferences[what].items()
        listed = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts)
        terminal.say(f"{what}: {listed or '-'}")

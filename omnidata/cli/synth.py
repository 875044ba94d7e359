"""`omnidata synth`: generated training data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from omnidata.cli import arguments as args
from omnidata.cli import synth_label, synth_rows, terminal
from omnidata.cli.declare import argument, flag, option, repeatable, verb
from omnidata.cli.help import Verb, group
from omnidata.errors import Finding, UsageError, plural

if TYPE_CHECKING:
    from omnidata.synth.compose import Author
    from omnidata.synth.compose.settings import EdgeRule

app = group("Generate training data.", cls=synth_rows.Verbs)


@app.command("episodes", cls=Verb)
@verb()
def episodes(
    *,
    out: Path = argument("A new folder for the dataset.", "OUT"),
    cue: list[str] = repeatable(
        "Use this cue, e.g. pitch (repeatable; docs/synth.md lists them). Default: all that "
        "fit into the clips, and speech if espeak-ng is installed.",
        "NAME",
    ),
    answers: list[str] = repeatable(
        "Ask for this answer: tap, swipe, touch, input, leave (repeatable). Default: all.", "KIND"
    ),
    count: int = option(
        "Number of episodes; four form a group of twins.",
        "N",
        name="--episodes",
        min=1,
        default=1000,
    ),
    first: int = option("Number of the first episode, e.g. for held-out ones.", "K", default=0),
    seed: int = option("Seed of all random choices.", default=0),
    audio_share: float | None = option(
        "Share of steps decided by audio alone. Default: 0.4.", "SHARE"
    ),
    video_share: float | None = option(
        "Share of steps decided by the clip alone. Default: 0.3. The screenshot decides the rest.",
        "SHARE",
    ),
    only: Literal["audio", "video", "screen"] | None = option("Decide all steps by this medium."),
    size: str = option("Size of the screenshots in pixels.", "WxH", default="720x1600"),
    clip_size: str | None = option(
        "Size of the clips. Default: half the screenshots' size, or all of it below 64 pixels.",
        "WxH",
    ),
    fps: int = option("Frames per second of the clips.", default=15),
    seconds: float = option("Length of clips and sounds.", default=2.0),
    max_steps: int = option("Maximum number of steps of an episode.", default=3),
    apps: int = option("Number of apps, each with its own look.", default=24),
    in_order: bool = flag(
        "Let the first code always mean the first answer, and so on.", "--in-order"
    ),
    distractors: float = option(
        "Share of steps with irrelevant content, per medium.", "SHARE", default=0.5
    ),
    workers: args.Workers = None,
    cluster: args.Processes,
    as_json: args.Json = False,
) -> None:
    """Generate episodes in which one medium alone decides each step.

    Writes episodes of synthetic apps in OmniGUI's layout (PNG, H.264, WAV). A seed makes the same
    episodes with any number of workers. The same command resumes an interrupted call.

    Example: omnidata synth episodes train --episodes 1000 --size 112x168 --fps 8 --seconds 1
    """
    from omnidata.run.engines import cores
    from omnidata.synth.episodes import Settings, make_episodes, with_speech

    screen = _size("--size", size)
    chosen: dict[str, Any] = _shares(only, audio_share, video_share)
    if cue:
        chosen["cues"] = tuple(cue)
    if answers:
        chosen["questions"] = tuple(answers)
    settings = Settings(
        seed=seed,
        size=screen,
        clip_size=_size("--clip-size", clip_size) if clip_size else _half(screen),
        fps=fps,
        seconds=seconds,
        max_steps=max_steps,
        apps=apps,
        shuffled=not in_order,
        distractors=distractors,
        **chosen,
    )
    if not cue:
        settings = with_speech(settings)
    with terminal.resumable(), terminal.progress("making episodes") as progress:
        report = make_episodes(
            out,
            settings,
            episodes=count,
            first=first,
            workers=workers or cores(),
            cluster=cluster,
            progress=progress,
        )
    if as_json:
        terminal.print_json(report)
    else:
        _print_episodes(report)
    terminal.note(f"dataset: {out}, report: {out / 'synth.json'}")


def _shares(only: str | None, audio: float | None, video: float | None) -> dict[str, float]:
    if only is not None:
        if audio is not None or video is not None:
            raise UsageError(
                "--only excludes shares",
                where=f"--only {only}",
                expected="--only or shares, not both",
            )
        return {"audio_share": float(only == "audio"), "video_share": float(only == "video")}
    given = {"audio_share": audio, "video_share": video}
    return {name: share for name, share in given.items() if share is not None}


def _size(option: str, text: str) -> tuple[int, int]:
    sides = re.fullmatch(r"([0-9]{1,6})x([0-9]{1,6})", text)
    if sides is None:
        raise UsageError(
            f'"{text}" is no size', where=f"{option} {text}", expected="e.g. 720x1600, in pixels"
        )
    return int(sides[1]), int(sides[2])


def _half(size: tuple[int, int]) -> tuple[int, int]:
    """Return half the screen in even numbers; the whole if half is below the smallest size."""
    from omnidata.synth.episodes.settings import SMALLEST

    parts = 4 if min(size) >= 2 * SMALLEST else 2
    wide, high = (side // parts * 2 for side in size)
    return wide, high


def _print_episodes(report: Mapping[str, Any]) -> None:
    from omnidata.synth.episodes import AXES_OF_STEPS

    made = report["made"]
    sizes, total = made["sizes"], made["sizes"]["steps"]
    rows = [["all", "", str(total), "100.0", "-"]]
    for axis in AXES_OF_STEPS:
        for name, steps in made[axis].items():
            wanted = made["shares"][name]["wanted"] if axis == "media" else None
            cells = [str(steps), terminal.percent(steps / total), terminal.percent(wanted)]
            rows.append([axis, name, *cells])
    terminal.print_table(
        f"{plural(sizes['episodes'], 'episode')} in {plural(sizes['groups'], 'group')} of twins",
        ("", "", "steps", "%", "wanted %"),
        rows,
    )
    each = ", ".join(f"{name} {size / total:,.0f}" for name, size in made["bytes"].items())
    terminal.say(f"bytes per step: {each}")
    if sizes["incomplete_groups"]:
        terminal.note(
            "the last group of twins is incomplete; choose a multiple of 4 for --episodes"
        )


app.command("label", cls=Verb)(synth_label.label)
app.command("filter", cls=Verb)(synth_label.filter_)
app.command("recaption", cls=Verb)(synth_label.recaption)


# Tasks composed of subtasks.


@app.command("pool", cls=Verb)
@verb()
def pool(
    *,
    out: Path = argument("A new folder for the pool.", "OUT"),
    seed: int = option("Seed of names, colours and bindings.", default=0),
    as_json: args.Json = False,
) -> None:
    """Generate a sample pool of subtasks for `synth compose`.

    The subtasks are those of synthetic desktop apps, with drawn screens and actions.

    Example: omnidata synth pool pool
    """
    from omnidata.synth.pool import REPORT, make_pool

    with terminal.progress("drawing") as progress:
        report = make_pool(out, seed=seed, progress=progress)
    made = report["made"]
    if as_json:
        terminal.print_json(report)
    else:
        names = ("subtasks", "bindings", "trajectories", "steps", "pictures")
        rows = [[name, str(made[name])] for name in names]
        rows += [["apps", str(len(made["apps"]))], ["intents", str(len(made["intents"]))]]
        terminal.print_table("sample pool", ("", ""), rows)
    terminal.note(f"pool: {out}, report: {out / REPORT}")


@app.command("compose", cls=Verb)
@verb()
def compose(
    *,
    pool: Path = argument("Folder of subtasks and trajectories.", "POOL"),
    out: Path = argument("A new folder for the tasks.", "OUT"),
    level: list[str] = repeatable(
        "Complexity, e.g. dependency=hard (repeatable). Dimensions: dependency, instruction, "
        "knowledge, hierarchy, branch. Levels: easy, medium, hard.",
        "DIMENSION=LEVEL",
    ),
    intent: list[str] = repeatable("Use only intents with this text (repeatable).", "TEXT"),
    initial: list[str] = repeatable(
        "Let only resources of this kind exist at the start (repeatable). Default: kinds that "
        "end with _path.",
        "KIND",
    ),
    tasks: int = option("Number of distinct tasks.", "N", min=1, default=100),
    seed: int = option("Seed of all random choices.", default=0),
    most: int = option("Maximum number of subtasks per task.", default=10),
    edges: Literal["latest", "every"] = option(
        "Link to the latest subtask that changed a resource, or to every one.", default="latest"
    ),
    orders: int = option("Maximum number of orders listed per task.", default=20),
    trajectories: int = option("Trajectories per task; 0 writes graphs only.", default=1),
    plot: Path | None = option("Draw the distribution; needs the extra plots.", "FILE"),
    workers: args.Workers = None,
    model: str | None = option("Model that writes the instructions. Default: a template.", "SPEC"),
    rounds: int = option("Maximum number of attempts to write an instruction.", default=3),
    asking: args.AskedModel,
    cluster: args.Processes,
    as_json: args.Json = False,
) -> None:
    """Compose tasks of controlled complexity from a pool of subtasks.

    Joins subtasks of one intent if one provides a resource that another needs. All tasks are
    distinct. A model's instruction is accepted only if the model reads the same graph from it. A
    seed makes the same files with any number of workers. The same command resumes an interrupted
    call.

    Example: omnidata synth compose pool tasks --tasks 1000 --level hierarchy=hard
    """
    from omnidata.run.engines import cores
    from omnidata.synth.compose import REPORT, Settings
    from omnidata.synth.compose import compose as run
    from omnidata.synth.compose.settings import parse_levels
    from omnidata.synth.folder import run_folder

    settings = Settings(
        seed=seed,
        levels=parse_levels(level),
        intents=tuple(intent),
        edges=edges,
        most=most,
        orders=orders,
        trajectories=trajectories,
        initial=tuple(initial) or None,
    )
    if plot is not None:
        from omnidata.figures import check

        check(plot)
    author = _author(model, asking, edges)
    with terminal.resumable(), terminal.progress("composing tasks") as progress:
        if author is not None:
            author = replace(author, rounds=rounds, limits=asking.limits, progress=progress)
        report = run(
            pool,
            out,
            settings,
            tasks=tasks,
            author=author,
            workers=workers or cores(),
            cluster=cluster,
            progress=progress,
        )
    if plot is not None:
        from omnidata.synth.compose.figure import draw

        draw(report["made"], plot)
        terminal.note(f"figure: {plot}")
    _print_tasks(report, as_json)
    terminal.note(f"tasks: {out}, report: {out / REPORT}")
    if model is not None:
        terminal.note(f"answers: {run_folder(out)}")


def _author(model: str | None, asking: args.ModelOptions, edges: EdgeRule) -> Author | None:
    from omnidata.synth.compose.instructions import Author, Questions
    from omnidata.tasks.asking import Asking

    if model is None:
        given = {
            "-M": asking.options,
            "--base-url": asking.base_url,
            "--key-file": asking.key_file,
            "--models": asking.models,
        }
        if unused := [flag for flag, value in given.items() if value]:
            raise UsageError(
                "this option is for a model, and no model is named",
                where=unused[0],
                expected="--model SPEC as well",
            )
        return None
    if model.startswith("baseline:"):
        raise UsageError(
            "no baseline writes instructions",
            where=f"--model {model}",
            expected="a model",
            remedy="leave --model out: instructions are then written by template",
        )
    return Author(asking.adapter(model, Asking(Questions(edges)), ()), asking.options)


def _print_tasks(report: Mapping[str, Any], as_json: bool) -> None:
    from omnidata.metrics.graph_complexity import DIMENSIONS, LEVELS

    made = report["made"]
    terminal.print_kinds([Finding(**said) for said in made["findings"]])
    if as_json:
        terminal.print_json(report)
        return
    total = made["sums"]["tasks"]
    rows = []
    for name in DIMENSIONS:
        counts = made["levels"][name]
        rows.append(
            [
                name,
                *(f"{counts[each]} ({terminal.percent(counts[each] / total)})" for each in LEVELS),
            ]
        )
    terminal.print_table(f"{plural(total, 'task')} by complexity (%)", ("", *LEVELS), rows)
    for axis in ("intents", "apps"):
        ranked = sorted(made[axis].items(), key=lambda pair: (-pair[1], pair[0]))
        rows = [[name or "-", str(n), terminal.percent(n / total)] for name, n in ranked]
        terminal.print_table(axis, ("", "tasks", "%"), rows)
    sums, search, instructions = made["sums"], made["search"], made["instructions"]
    apps = sum(int(number) * count for number, count in made["apps_per_task"].items())
    terminal.say(
        f"a task on average: {sums['subtasks'] / total:.2f} subtasks, {sums['edges'] / total:.2f} "
        f"edges, {apps / total:.2f} apps, {sums['words'] / total:.1f} words of instruction"
    )
    made_of = plural(sums["steps"], "step")
    terminal.say(f"{plural(sums['trajectories'], 'trajectory')} with {made_of}")
    if sampled := sums["tasks_with_more_orders"]:
        terminal.say(f"{plural(sampled, 'task')} list a random sample of their orders")
    terminal.say(f"resources at the start: {', '.join(made['initial']) or 'none'}")
    terminal.say(
        f"{plural(search['attempts'], 'attempt')}: {search['isomorphic_copies']} repeated a task, "
        f"{search['other_levels']} had other levels, {search['no_graph']} gave no task"
    )
    if instructions["by"] == "model":
        reasons = ", ".join(f"{n} {why}" for why, n in instructions["not_accepted"].items())
        terminal.say(
            f"instructions: {instructions['accepted']} accepted, "
            f"{plural(instructions['rejected'], 'task')} left out; "
            f"not accepted: {reasons or 'none'}"
        )

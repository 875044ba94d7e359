"""`omnidata synth`: made-up data, for training."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from omnidata.cli import synth_compose, synth_label, terminal
from omnidata.cli.arguments import Json
from omnidata.errors import UsageError, counted

app = typer.Typer(help="Make up data, for training.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """Make up data, for training."""


@app.command("episodes")
def episodes(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The dataset's folder, new.")],
    cue: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="Use this cue, e.g. pitch (repeatable; if left, all that the clips and sounds are "
            "long enough for, speech where it is installed). docs/synth.md lists them.",
            default_factory=list,
            show_default=False,
        ),
    ],
    answers: Annotated[
        list[str],
        typer.Option(
            metavar="KIND",
            help="Ask for this: tap, swipe, touch, input, leave (repeatable; all if left).",
            default_factory=list,
            show_default=False,
        ),
    ],
    count: Annotated[
        int, typer.Option("--episodes", metavar="N", min=1, help="Four make a group of twins.")
    ] = 1000,
    first: Annotated[
        int,
        typer.Option(metavar="K", help="Begin with episode K, e.g. for held-out ones."),
    ] = 0,
    seed: Annotated[int, typer.Option(help="Of everything that chance decides.")] = 0,
    audio_share: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Of the steps: the answer is only heard (0.4)."),
    ] = None,
    video_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Of the steps: the answer is only in the clip (0.3). Of the rest it is in the "
            "screenshot.",
        ),
    ] = None,
    only: Annotated[
        Literal["audio", "video", "screen"] | None,
        typer.Option(help="All steps in one medium, in place of the shares."),
    ] = None,
    size: Annotated[
        str, typer.Option(metavar="WxH", help="Of the screenshots, in pixels.")
    ] = "720x1600",
    clip_size: Annotated[
        str | None,
        typer.Option(
            metavar="WxH",
            help="Of the clips; if left, half the screenshots', or the same below 64 pixels.",
        ),
    ] = None,
    fps: Annotated[int, typer.Option(help="Frames per second of the clips.")] = 15,
    seconds: Annotated[float, typer.Option(help="Length of the clips and sounds.")] = 2.0,
    max_steps: Annotated[int, typer.Option(help="An episode has 1 to so many.")] = 3,
    apps: Annotated[int, typer.Option(help="How many apps, each with its own look.")] = 24,
    in_order: Annotated[
        bool,
        typer.Option("--in-order", help="The first code always means the first answer, and so on."),
    ] = False,
    distractors: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Of the steps, with what does not matter, per medium."),
    ] = 0.5,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; one per core if left.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make episodes of made-up apps, each step decided by one medium alone.

    The same seed makes the same bytes with any number of workers; an interrupted call goes on when
    it is made again. The dataset has OmniGUI's layout, with real PNG, H.264 and WAV.

    Example: omnidata synth episodes train --episodes 1000 --size 112x168 --fps 8 --seconds 1
    """
    from omnidata.data.processes import cores
    from omnidata.synth.episodes import Settings, make_episodes, with_speech

    screen = _size("--size", size)
    clip = _size("--clip-size", clip_size) if clip_size else _half(screen)
    chosen: dict[str, Any] = _shares(only, audio_share, video_share)
    if cue:
        chosen["cues"] = tuple(cue)
    if answers:
        chosen["questions"] = tuple(answers)
    settings = Settings(
        seed=seed,
        size=screen,
        clip_size=clip,
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
    try:
        with terminal.progress("making episodes") as progress:
            report = make_episodes(
                out,
                settings,
                episodes=count,
                first=first,
                workers=workers or cores(),
                progress=progress,
            )
    except KeyboardInterrupt:
        terminal.note("interrupted; the same command goes on where this one stopped")
        raise
    if as_json:
        terminal.print_json(report)
    else:
        _print(report)
    terminal.note(f"dataset: {out}, report: {out / 'synth.json'}")


def _shares(only: str | None, audio: float | None, video: float | None) -> dict[str, float]:
    if only is not None:
        if audio is not None or video is not None:
            raise UsageError(
                "shares beside --only", where=f"--only {only}", expected="one or the other"
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
    """Half the screen in even numbers; the whole where half would be below the smallest."""
    from omnidata.synth.episodes.settings import SMALLEST

    parts = 4 if min(size) >= 2 * SMALLEST else 2
    wide, high = (side // parts * 2 for side in size)
    return wide, high


def _print(report: Mapping[str, Any]) -> None:
    """What was made, as a table."""
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
        f"{counted(sizes['episodes'], 'episode')} in {counted(sizes['groups'], 'group')} of twins",
        ("", "", "steps", "%", "wanted %"),
        rows,
    )
    each = ", ".join(f"{name} {size / total:,.0f}" for name, size in made["bytes"].items())
    terminal.say(f"bytes a step: {each}")
    if sizes["incomplete_groups"]:
        terminal.note("the last group of twins lacks some; a multiple of 4 episodes completes it")


app.command("label")(synth_label.label)
app.command("filter")(synth_label.filter_)
app.command("pool")(synth_compose.pool)
app.command("compose")(synth_compose.compose)

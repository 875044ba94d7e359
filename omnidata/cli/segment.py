"""`omnidata segment`: a screen recording and an action log become an episode."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnidata.cli import terminal
from omnidata.cli.arguments import Json
from omnidata.errors import UsageError, counted
from omnidata.loaders.episode_tree import Dependency, Dimension
from omnidata.loaders.instructions import Language

if TYPE_CHECKING:
    from omnidata.data.segment import Segmented


def segment(
    recording: Annotated[
        Path, typer.Argument(metavar="RECORDING", help="The screen recording, e.g. an MP4.")
    ],
    events: Annotated[
        Path,
        typer.Argument(
            metavar="EVENTS",
            help="The action log: JSON lines, or the folder of a recorder that a task reads.",
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The dataset's folder, new.")],
    offset: Annotated[
        float, typer.Option(metavar="SECONDS", help="Add this to every time of the log.")
    ] = 0.0,
    lead: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Take the screenshot so long before the action (0.5)."
        ),
    ] = None,
    max_clip: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Of a longer wait keep this much of its end (10)."),
    ] = None,
    trim: Annotated[
        str | None,
        typer.Option(metavar="START:END", help="Use only this part of the recording, in seconds."),
    ] = None,
    app: Annotated[
        str | None, typer.Option(help="The app; like all names it beats the log.")
    ] = None,
    episode: Annotated[
        str | None, typer.Option(metavar="ID", help="The episode; else the recording's name.")
    ] = None,
    instruction_en: Annotated[str | None, typer.Option(help="The task in English.")] = None,
    instruction_zh: Annotated[str | None, typer.Option(help="The task in Chinese.")] = None,
    dimension: Annotated[
        Dimension | None, typer.Option(help="The cognitive dimension; else localization.")
    ] = None,
    dependency: Annotated[
        Dependency | None, typer.Option(help="How much the task depends on video and audio.")
    ] = None,
    language: Annotated[
        Language | None, typer.Option(help="Of the app; else that of the only instruction.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Cut a screen recording by its action log into an episode of steps.

    Each action gets the screenshot just before it, and the clip and the audio from the end of the
    last action to its own start, in OmniGUI's layout; docs/segment.md describes the log. Exit code
    1 means that the episode is written without some of the actions; the findings say which.

    Example: omnidata segment recording.mp4 actions.jsonl data --app TED --instruction-en "Like it."
    """
    from omnidata.data.segment import segment as run
    from omnidata.data.segment.plan import LEAD_S, LONGEST_S, Cut
    from omnidata.loaders.action_log import Labels

    cut = Cut(
        offset_s=_seconds("--offset", offset, low=-math.inf),
        lead_s=_seconds("--lead", LEAD_S if lead is None else lead),
        longest_s=_seconds("--max-clip", LONGEST_S if max_clip is None else max_clip, low=0.001),
        trim=_trim(trim),
    )
    labels = Labels(
        app=app,
        episode=episode,
        instruction_en=instruction_en,
        instruction_zh=instruction_zh,
        dimension=dimension,
        dependency=dependency,
        language=language,
    )
    with terminal.progress("cutting") as progress:
        made = run(recording, events, out, labels=labels, cut=cut, progress=progress)
    _print(made, out, as_json)
    if any(finding.severity == "error" for finding in made.findings):
        raise typer.Exit(1)


def _seconds(option: str, value: float, *, low: float = 0.0) -> float:
    if not (math.isfinite(value) and value >= low):
        raise UsageError(
            "the number makes no sense",
            where=f"{option} {value}",
            expected="seconds" + (f", {low:g} or more" if low > -math.inf else ""),
        )
    return value


def _trim(text: str | None) -> tuple[float, float]:
    """Where the used part begins and ends; either may be left out."""
    if text is None:
        return 0.0, math.inf
    start, colon, end = text.partition(":")
    try:
        low, high = float(start or 0), float(end or math.inf)
    except ValueError:
        low, high = math.nan, math.nan
    if not (colon and 0 <= low < high):
        raise UsageError(
            "the part is not clear",
            where=f"--trim {text}",
            expected="START:END in seconds of the recording, e.g. 5:60, 5: or :60",
        )
    return low, high


def _print(made: Segmented, out: Path, as_json: bool) -> None:
    clips = sum(span.start_s - span.clip_s for span in made.spans if span.frames)
    if as_json:
        terminal.print_json(
            {
                "out": str(out),
                "app": made.labels.app,
                "episode": made.labels.episode,
                "steps": len(made.spans),
                "clips": sum(span.frames > 0 for span in made.spans),
                "clip_seconds": round(clips, 3),
                "recording_seconds": round(made.recording.seconds, 3),
                "trimmed": made.trimmed,
                "findings": [finding.as_dict() for finding in made.findings],
            }
        )
        return
    for finding in made.findings:
        terminal.note(str(finding))
    line = f"{made.labels.app}/{made.labels.episode}: {counted(len(made.spans), 'step')}, "
    line += f"{clips:.1f} s of clips from a recording of {made.recording.seconds:.1f} s"
    if made.trimmed:
        line += f"; {counted(made.trimmed, 'action')} outside --trim"
    terminal.say(line)
    terminal.note(f"dataset: {out}")

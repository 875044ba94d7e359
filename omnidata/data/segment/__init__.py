"""A screen recording and an action log -> step-level episodes in the paper's layout.

Source: OmniGUI, section 3.3: screenshots from just before each action, clip and audio from the
completion of the action before to the initiation of this one. `docs/segment.md` has the rules.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from omnidata.data.segment.agentnet import is_agentnet, read_agentnet
from omnidata.data.segment.cut import steps
from omnidata.data.segment.events import read_events
from omnidata.data.segment.log import UNLABELLED, Labels
from omnidata.data.segment.plan import LEAD_S, LONGEST_S, USUAL, Cut, Span, plan
from omnidata.data.segment.recording import Recording, open_recording
from omnidata.errors import DataError, Finding, RunError
from omnidata.loaders.omnigui_apps import Language
from omnidata.loaders.omnigui_tree import TreeEpisode, TreeStep, TreeWriter

__all__ = ["LEAD_S", "LONGEST_S", "Cut", "Labels", "Segmented", "segment"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Segmented:
    """What was made.

    Attributes:
        labels: of the episode, as written.
        spans: one per step.
        recording: what it was cut from.
        trimmed: actions of the recording that lie outside the part that was asked for.
        findings: everything doubtful, left out or missing, in the order met.
    """

    labels: Labels
    spans: tuple[Span, ...]
    recording: Recording
    trimmed: int
    findings: tuple[Finding, ...]


def segment(
    recording: Path,
    events: Path,
    out: Path,
    *,
    labels: Labels = UNLABELLED,
    cut: Cut = USUAL,
    progress: Progress | None = None,
) -> Segmented:
    """Cut a recording into one episode.

    The same input gives the same bytes with the same versions of FFmpeg's libraries, Pillow and
    NumPy. `out` appears when everything in it is written.

    Args:
        recording: a screen recording that FFmpeg's libraries can decode.
        events: a plain log, or a recording folder of AgentNet or its file of events; told apart by
            their content.
        out: a new or empty folder.
        labels: what the log does not state, or states wrongly.
        cut: how to cut.
        progress: called with the number of steps written and of all steps.

    Raises:
        DataError: the log cannot be read or lacks the app or the instruction, no action lies in
            the recording, or `out` holds something.
        MediaError: the recording cannot be decoded.
        RunError: the finished tree cannot be given its name.
    """
    _check_new(out)
    log = read_agentnet(events) if is_agentnet(events) else read_events(events)
    film = open_recording(recording)
    spans, doubts = plan(log, film, cut)
    named, guesses = _named(labels.over(log.labels), recording, events)
    findings = (*log.findings, *film.findings, *doubts, *guesses)
    made = _counted(steps(film, spans), len(spans), progress)
    _write(out, _episode(named, made))
    outside = sum(finding.code == "event-outside" for finding in doubts)
    trimmed = len(log.events) - len(spans) - outside
    return Segmented(named, tuple(spans), film, trimmed, findings)


def _named(labels: Labels, recording: Path, events: Path) -> tuple[Labels, list[Finding]]:
    """The labels with what follows from others, and a finding for a guess."""
    if not labels.app or not (labels.instruction_en or labels.instruction_zh):
        raise DataError(
            "the log states no " + ("instruction" if labels.app else "app"),
            where=str(events),
            expected="an app, and an instruction in English or Chinese",
            remedy="give --app and --instruction-en or --instruction-zh, or a header in the log",
        )
    language: Language | None = None
    if not (labels.instruction_en and labels.instruction_zh):
        language = "en" if labels.instruction_en else "zh"
    guessed = Labels(episode=recording.stem, dimension="localization", language=language)
    if labels.dimension:
        return labels.over(guessed), []
    finding = Finding(
        "dimension-assumed",
        "warning",
        str(events),
        "the log states no dimension",
        "one of the five of OmniGUI, section 3.2",
        "localization is written; give --dimension",
    )
    return labels.over(guessed), [finding]


def _episode(labels: Labels, made: Iterator[TreeStep]) -> TreeEpisode:
    assert labels.episode
    assert labels.app
    assert labels.dimension
    return TreeEpisode(
        labels.episode,
        app=labels.app,
        dimension=labels.dimension,
        steps=made,
        instruction_en=labels.instruction_en,
        instruction_zh=labels.instruction_zh,
        dependency=labels.dependency,
        language=labels.language,
    )


def _counted(made: Iterator[TreeStep], total: int, progress: Progress | None) -> Iterator[TreeStep]:
    for done, step in enumerate(made, 1):
        yield step
        if progress is not None:
            progress(done, total)


def _check_new(out: Path) -> None:
    """Refuse a folder with content before the work, not after it."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(
            "there is something here already",
            where=str(out),
            expected="a new or empty folder",
            remedy="choose another folder, or remove this one",
        )


def _write(out: Path, episode: TreeEpisode) -> None:
    """Write beside `out` under a hidden name, and give it the name when all is there."""
    out = out.resolve()
    unfinished = out.with_name(f".{out.name}.{secrets.token_hex(4)}.unfinished")
    try:
        with TreeWriter(unfinished) as tree:
            tree.add(episode)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    try:
        if out.exists():
            out.rmdir()
        unfinished.rename(out)
    except OSError as error:
        raise RunError(
            f"the finished tree cannot be moved ({type(error).__name__})",
            where=str(out),
            expected="a new or empty folder, as at the start",
            remedy=f"move {unfinished} there by hand",
        ) from None

"""A screen recording and an action log -> step-level episodes in the paper's layout.

Source: OmniGUI, section 3.3: screenshots from just before each action, clip and audio from the
completion of the action before to the initiation of this one. `docs/segment.md` has the rules.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from omnidata.data.segment.agentnet import is_agentnet, read_agentnet
from omnidata.data.segment.cut import steps
from omnidata.data.segment.events import read_events
from omnidata.data.segment.log import UNLABELLED, Labels, Log
from omnidata.data.segment.plan import LEAD_S, LONGEST_S, USUAL, Cut, Span, plan
from omnidata.data.segment.recording import Recording, open_recording
from omnidata.errors import DataError, Finding, RunError
from omnidata.loaders.omnigui_apps import Language, language_of
from omnidata.loaders.omnigui_tree import TreeEpisode, TreeStep, TreeWriter, check_name, check_new

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
            the recording, the names cannot be used, or `out` holds something, cannot be made or
            has another writer.
        MediaError: the recording cannot be decoded.
        RunError: the finished tree cannot be given its name.
    """
    place = _checked(out)
    log = read_agentnet(events) if is_agentnet(events) else read_events(events)
    film = open_recording(recording)
    spans, trimmed, doubts = plan(log, film, cut)
    named, guesses = _named(labels.over(log.labels), recording, events)
    findings = (*_still_true(log, spans), *film.findings, *doubts, *guesses)
    made = _counted(steps(film, spans), len(spans), progress)
    _write(place, _episode(named, made))
    return Segmented(named, tuple(spans), film, trimmed, findings)


def _still_true(log: Log, spans: Sequence[Span]) -> list[Finding]:
    """The log's findings, without the one about an assumed end that was trimmed away."""
    ends = any(span.event.earliest_s is not None for span in spans)
    return [finding for finding in log.findings if ends or finding.code != "end-assumed"]


def _named(labels: Labels, recording: Path, events: Path) -> tuple[Labels, list[Finding]]:
    """The labels with what follows from others, and a finding for a guess."""
    if not labels.app or not (labels.instruction_en or labels.instruction_zh):
        raise DataError(
            "the log states no " + ("instruction" if labels.app else "app"),
            where=str(events),
            expected="an app, and an instruction in English or Chinese",
            remedy="give --app and --instruction-en or --instruction-zh, or a header in the log",
        )
    check_name(
        labels.episode or recording.stem, "episode id", str(recording), remedy="give --episode"
    )
    language: Language | None = None
    if labels.instruction_en and labels.instruction_zh:
        _check_language(labels, events)
    else:
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


def _check_language(labels: Labels, events: Path) -> None:
    """Make sure that readers can tell which of the two instructions counts."""
    assert labels.app
    if labels.language is None and language_of(labels.app) is None:
        raise DataError(
            f"the app {labels.app!r} is none of the paper's, and there are two instructions",
            where=str(events),
            expected="the language that the app is evaluated in",
            remedy="give --language, or a language in the log's header",
        )


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


def _checked(out: Path) -> Path:
    """The absolute path of the folder to be made; refused before the work, not after it."""
    try:
        real = out.resolve()
        check_new(real)
    except (OSError, RuntimeError) as error:  # Python's own word for links in a circle
        raise _impossible(out, error) from None
    return real


def _impossible(out: Path, error: OSError | RuntimeError) -> DataError:
    reason = error.strerror if isinstance(error, OSError) else "its links lead in a circle"
    return DataError(
        f"no folder can be made there ({reason})",
        where=str(out),
        expected="a new folder in one that can be written",
        remedy="choose another OUT",
    )


@contextmanager
def _unfinished(out: Path) -> Iterator[Path]:
    """A hidden folder beside `out` for one writer; a killed one's is taken over, and emptied."""
    folder = out.with_name(f".{out.name}.unfinished")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise DataError(
            "another process is cutting to the same place",
            where=str(out),
            expected="one at a time",
            remedy="wait until it has ended, or choose another folder",
        ) from None
    except OSError as error:
        raise _impossible(out, error) from None
    tree = folder / "tree"
    try:
        shutil.rmtree(tree, ignore_errors=True)
        yield tree
        shutil.rmtree(folder, ignore_errors=True)
    except RunError:  # the tree is whole, and can still be moved by hand
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        lock.release()


def _write(out: Path, episode: TreeEpisode) -> None:
    """Write beside `out` under a hidden name, and give it the name when all is there."""
    with _unfinished(out) as unfinished:
        with TreeWriter(unfinished) as tree:
            tree.add(episode)
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

"""A screen recording and an action log -> step-level episodes in the paper's layout.

Source: OmniGUI, section 3.3: screenshots from just before each action, clip and audio from the
completion of the action before to the initiation of this one. `docs/segment.md` has the rules.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from omnidata.data.segment.plan import LEAD_S, LONGEST_S, USUAL, Cut, Span, plan
from omnidata.data.segment.recording import Film, Recording, Track, open_recording
from omnidata.errors import DataError, Finding, RunError
from omnidata.loaders.action_log import UNLABELLED, Labels, read_events
from omnidata.loaders.episode_tree import DIMENSIONS
from omnidata.loaders.instructions import Language
from omnidata.loaders.tree_writer import TreeEpisode, TreeStep, TreeWriter, check_name, check_new
from omnidata.media import AUDIO_RATE, Frame, encode_mp4, encode_wav
from omnidata.registry import episode_tree_reader, working
from omnidata.storage import take_lock
from omnidata.tasks import get_task
from omnidata.types import Progress

__all__ = ["LEAD_S", "LONGEST_S", "Cut", "Labels", "Segmented", "segment"]


def _steps(
    recording: Recording, spans: Sequence[Span], progress: Progress | None
) -> Iterator[TreeStep]:
    """Cut the steps in one pass over the recording; each is made on demand, and forgotten.

    A span without a whole frame has neither MP4 nor WAV.
    """
    with ExitStack() as files:
        film = files.enter_context(closing(Film(recording)))
        track = files.enter_context(closing(Track(recording))) if recording.has_sound else None
        for done, span in enumerate(spans, 1):
            yield _step(recording, film, track, span)
            if progress is not None:
                progress(done, len(spans))


def _step(recording: Recording, film: Film, track: Track | None, span: Span) -> TreeStep:
    shot: Frame | None = None
    width, height = (extent // 2 * 2 for extent in recording.screen)  # as H.264 needs it

    def clip() -> Iterator[Frame]:
        nonlocal shot
        for number in range(span.frames):
            moment = span.clip_s + float(number / recording.fps)
            if shot is None and span.screenshot_s < moment:  # the film only runs forwards
                shot = film.at(span.screenshot_s)
            yield film.at(moment)[:height, :width]

    video = audio = None
    if span.frames:
        video = encode_mp4(clip(), fps=recording.fps)
    if span.frames and track:
        first, last = (round(moment * AUDIO_RATE) for moment in (span.clip_s, span.start_s))
        audio = encode_wav(track.read(first, last))
    return TreeStep(
        span.event.action,
        screen=recording.screen,
        screenshot=_png(film.at(span.screenshot_s) if shot is None else shot),
        video=video,
        audio=audio,
        extra={
            "action_start_s": round(span.start_s, 6),
            "action_end_s": round(span.end_s, 6),
            "clip_start_s": round(span.clip_s, 6),
            "screenshot_s": round(span.screenshot_s, 6),
            **span.event.extra,
        },
    )


def _png(pixels: Frame) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


@dataclass(frozen=True, slots=True)
class Segmented:
    """The result of cutting a recording.

    Attributes:
        labels: of the episode, as written.
        spans: one per step.
        recording: the source.
        trimmed: number of actions outside the part that was asked for.
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

    Equal input makes equal bytes with equal versions of FFmpeg's libraries, Pillow and NumPy. `out`
    appears only when it is complete.

    Args:
        recording: a screen recording that FFmpeg's libraries can decode.
        events: a plain log, or the log of a benchmark's recorder, recognised by its content
            (`Benchmark.action_log`).
        out: a new or empty folder.
        labels: added to those of the log, or in place of them.
        cut: the settings.
        progress: called with the number of steps written and of all steps.

    Raises:
        DataError: the log cannot be read or lacks the app or the instruction, no action is in the
            recording, the names cannot be used, or `out` is not empty, cannot be created or has
            another writer.
        MediaError: the recording cannot be decoded.
        RunError: the finished tree cannot be moved to `out`.
    """
    place = check_out(out)
    made, found = cut_episode(recording, events, labels=labels, cut=cut, progress=progress)
    with staging_tree(place) as tree:
        with TreeWriter(tree) as writer:
            writer.add(found)
        publish(tree, place)
    return made


def cut_episode(
    recording: Path,
    events: Path,
    *,
    labels: Labels = UNLABELLED,
    cut: Cut = USUAL,
    progress: Progress | None = None,
) -> tuple[Segmented, TreeEpisode]:
    """Return the result and the episode, whose steps are cut when they are read; see `segment`."""
    logs = (
        benchmark.recorder(events) for _, benchmark in working() if benchmark.recorder is not None
    )
    log = next((log for log in logs if log is not None), None) or read_events(events)
    film = open_recording(recording)
    spans, trimmed, doubts = plan(log, film, cut)
    complete, guesses = _complete_labels(labels.over(log.labels), recording, events)
    ends = any(span.event.earliest_s is not None for span in spans)
    still_true = [each for each in log.findings if ends or each.code != "end-assumed"]
    findings = (*still_true, *film.findings, *doubts, *guesses)
    made = Segmented(complete, tuple(spans), film, trimmed, findings)
    return made, episode(complete, _steps(film, spans, progress))


def _complete_labels(labels: Labels, recording: Path, events: Path) -> tuple[Labels, list[Finding]]:
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
    two = labels.instruction_en and labels.instruction_zh
    wordings = get_task(episode_tree_reader()).benchmark.wordings
    if two and labels.language is None and wordings.language_of(labels.app) is None:
        raise DataError(
            f"the app {labels.app!r} is not one of the paper's apps, and there are two "
            "instructions",
            where=str(events),
            expected="the language that the app is evaluated in",
            remedy="give --language, or a language in the log's header",
        )
    language: Language | None = None if two else "en" if labels.instruction_en else "zh"
    guessed = Labels(episode=recording.stem, dimension="localization", language=language)
    if labels.dimension:
        return labels.over(guessed), []
    finding = Finding(
        "dimension-assumed",
        "warning",
        str(events),
        "the log states no dimension",
        f"one of {', '.join(DIMENSIONS)}",
        "localization is written; set --dimension",
    )
    return labels.over(guessed), [finding]


def episode(labels: Labels, made: Iterable[TreeStep]) -> TreeEpisode:
    """Return the episode of some steps; the labels name at least app, episode and dimension."""
    assert labels.episode and labels.app and labels.dimension
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


def check_out(out: Path) -> Path:
    """Return the absolute path of the new folder, or refuse it before the work begins."""
    try:
        real = out.resolve()
        check_new(real)
    except (OSError, RuntimeError) as error:  # Python's own word for links in a circle
        raise _impossible(out, error) from None
    return real


def _impossible(out: Path, error: OSError | RuntimeError) -> DataError:
    reason = error.strerror if isinstance(error, OSError) else "its links lead in a circle"
    return DataError(
        f"the folder cannot be made ({reason})",
        where=str(out),
        expected="a new folder in a writable folder",
        remedy="choose another OUT",
    )


@contextmanager
def staging_tree(out: Path, *, keeps: bool = False) -> Iterator[Path]:
    """Provide a place for a tree in a hidden folder beside `out`, for one writer.

    If the work ends early, the next call finds the finished parts in the folder if this one `keeps`
    them.

    Raises:
        DataError: it cannot be made or written, or there is another writer.
    """
    folder = out.with_name(f".{out.name}.unfinished")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        busy = DataError(
            "another process writes to the same folder",
            where=str(out),
            expected="one process at a time",
            remedy="wait until it has ended, or choose another folder",
        )
        lock = take_lock(folder / ".lock", busy=busy)
    except OSError as error:
        raise _impossible(out, error) from None
    tree = folder / "tree"
    try:
        shutil.rmtree(tree, ignore_errors=True)
        yield tree
        shutil.rmtree(folder, ignore_errors=True)
    except RunError:  # the tree is whole, and can still be moved by hand
        raise
    except BaseException as error:
        if not (keeps and any(folder.glob("[!.]*/[!.]*"))):
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise DataError(
                f"the tree cannot be written ({error.strerror})",
                where=str(out),
                expected="free space on the disk and the right to write",
                remedy="free some space, then repeat the command",
            ) from None
        raise
    finally:
        lock.release()


def publish(tree: Path, out: Path) -> None:
    """Move a complete tree to its destination.

    Raises:
        RunError: it cannot be moved there.
    """
    try:
        if out.exists():
            out.rmdir()
        tree.rename(out)
    except OSError as error:
        raise RunError(
            f"the finished tree cannot be moved ({type(error).__name__})",
            where=str(out),
            expected="a new or empty folder, as at the start",
            remedy=f"move {tree} there by hand",
        ) from None

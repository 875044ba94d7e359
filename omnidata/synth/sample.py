"""The sample dataset of `omnidata demo`: synthetic episodes of five apps in OmniGUI's layout.

Its episodes are those of `omnidata.synth.episodes`; some begin at the phone's start page, most end
on a page for the end of the task. Twins are the same up to a step that one medium alone decides.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image

from omnidata.actions import Action, Box
from omnidata.loaders.episode_tree import Dimension
from omnidata.loaders.instructions import Language
from omnidata.loaders.tree_writer import TreeEpisode, TreeStep, TreeWriter
from omnidata.media import encode_wav, png
from omnidata.synth import sounds
from omnidata.synth.drawing import COMPLETE
from omnidata.synth.episodes import tree_episode
from omnidata.synth.episodes.media import Files, make_files, still_clip
from omnidata.synth.episodes.pages import closing, launcher
from omnidata.synth.episodes.plans import GroupPlan, plan
from omnidata.synth.episodes.screens import Look, demo_looks
from omnidata.synth.episodes.settings import CODES, QuestionKind, Settings
from omnidata.types import Progress

__all__ = ["make_sample"]

_CHIME = (659.0, 784.0, 1047.0)  # Hz
_FRAME_S = 0.8  # seconds of the clips before and behind the steps that are decided


@dataclass(frozen=True, slots=True)
class _Chapter:
    """Two groups of twins; the first has two of the four answers, the second has the others."""

    dimension: Dimension
    questions: tuple[QuestionKind, ...]
    settings: Settings
    starts: bool = False  # with the start page, where the app is opened

    @property
    def ends(self) -> bool:
        """Whether a last page follows, since the app was not left."""
        return self.questions[-1] != "leave"

    @property
    def steps(self) -> int:
        return self.starts + len(self.questions) + self.ends


_AUDIO = Settings(audio_share=1, video_share=0, distractors=0.3)
_VIDEO = Settings(audio_share=0, video_share=1, distractors=0.3)
_SCREEN = Settings(audio_share=0, video_share=0, distractors=0.3)
_MIXED = Settings(distractors=0.3)
_CHAPTERS = (
    _Chapter("cross_modal_discrimination", ("tap", "swipe"), _AUDIO, starts=True),
    _Chapter("cross_modal_discrimination", ("swipe", "touch", "input"), _AUDIO),
    _Chapter("temporal_reasoning", ("swipe", "tap"), _VIDEO),
    _Chapter("temporal_reasoning", ("tap", "touch"), _VIDEO),
    # Two rates on purpose: code that takes one for granted fails on the other.
    _Chapter("instant_response", ("touch", "tap"), replace(_VIDEO, fps=30, seconds=1)),
    _Chapter("instant_response", ("touch", "swipe", "leave"), _AUDIO),
    _Chapter("localization", ("tap", "input"), _SCREEN),
    _Chapter("localization", ("swipe", "tap", "leave"), _SCREEN),
    _Chapter("semantic_understanding", ("input", "tap"), _AUDIO),
    _Chapter("semantic_understanding", ("tap", "swipe", "touch"), _MIXED),
    _Chapter("semantic_understanding", ("tap", "tap", "leave"), _AUDIO),
)


def make_sample(out: Path, *, seed: int = 0, progress: Progress | None = None) -> Path:
    """Write the sample dataset: about 150 steps, 20 MB.

    The same seed gives the same bytes, and screenshots of the same pixels, with the same versions
    of Pillow, PyAV and NumPy on the same kind of machine.

    Args:
        out: a new or empty folder.
        seed: of colours, words, sounds and answers.
        progress: called with the number of steps written and of all steps.

    Returns:
        `out`, the folder of the app folders.

    Raises:
        DataError: `out` is not empty.
    """
    apps = demo_looks(seed)
    frames = _Frames(apps, seed)
    todo = list(_plan_groups(apps, seed))
    total = sum(2 * chapter.steps for chapter, *_ in todo)
    written = 0
    numbers: Counter[str] = Counter()
    with TreeWriter(out) as tree, ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as threads:
        waiting = [
            [
                threads.submit(make_files, settings, group, step, twins=pair)
                for step in range(len(group.steps))
            ]
            for _, settings, group, pair in todo
        ]
        try:
            for (chapter, settings, group, pair), files in zip(todo, waiting, strict=True):
                name = group.look.name
                twins = f"{name[0]}{numbers[name] + 1:03d}"
                for place, twin in enumerate(pair):
                    numbers[name] += 1
                    media = [made.result()[place] for made in files]
                    episode = tree_episode(settings, group, twin, media)
                    episode = _complete(episode, chapter, group, frames, twins)
                    tree.add(replace(episode, id=f"{name[0]}{numbers[name]:03d}"))
                    written += chapter.steps
                    if progress is not None:
                        progress(written, total)
        finally:
            threads.shutdown(cancel_futures=True)  # an interrupt does not wait for the rest
    return out


def _plan_groups(
    apps: Sequence[Look], seed: int
) -> Iterator[tuple[_Chapter, Settings, GroupPlan, tuple[int, int]]]:
    """Yield two groups of each chapter, each with the twins that are written."""
    for number, chapter in enumerate(chapter for chapter in _CHAPTERS for _ in range(2)):
        settings = replace(chapter.settings, seed=seed)
        app = apps[number % len(apps)]
        group = plan(settings, number, app=app, questions=chapter.questions)
        first = group.steps[0]
        answers = {first.answer_of[first.codes[twin]]: twin for twin in range(CODES)}
        pair = (answers[0], answers[1]) if number % 2 == 0 else (answers[2], answers[3])
        yield chapter, settings, group, pair


def _complete(
    episode: TreeEpisode, chapter: _Chapter, group: GroupPlan, frames: _Frames, twins: str
) -> TreeEpisode:
    """Return the episode with its first and last page, and the labels of its chapter."""
    steps = list(episode.steps)
    if chapter.starts:
        steps.insert(0, frames.opening(group.look))
    if chapter.ends:
        steps.append(frames.closing(group))
    # The chime of the last page supports what a sign decides.
    is_supported = chapter.ends and group.dependency == "present"
    return replace(
        episode,
        dimension=chapter.dimension,
        dependency="supportive" if is_supported else group.dependency,
        steps=[replace(step, extra={**step.extra, "twins": twins}) for step in steps],
        instruction_en=_instruction(chapter, group, "en"),
        instruction_zh=_instruction(chapter, group, "zh"),
        extra={"twins": twins},
    )


def _instruction(chapter: _Chapter, group: GroupPlan, language: Language) -> str:
    rules, name = group.instruction(language), group.look.name
    if language == "zh":
        start = f"打开 {name}。" if chapter.starts else f"在 {name} 中，"
        return start + rules + ("最后报告任务完成。" if chapter.ends else "")
    start = f"Open {name}. {rules}"
    if not chapter.starts:
        start = f"In {name}, {rules[0].lower()}{rules[1:]}"
    return start + (" At the end, report the task as complete." if chapter.ends else "")


class _Frames:
    """The first step of an episode, made once, and the last one, which twins share."""

    def __init__(self, apps: Sequence[Look], seed: int) -> None:
        page, places = launcher(apps, _AUDIO.size)
        self._rng = np.random.default_rng(seed)
        self._places = dict(zip(apps, places, strict=True))
        self._first = self._files(page, apps[0], cue=None)
        self._last: dict[int, Files] = {}

    def opening(self, app: Look) -> TreeStep:
        left, top, right, bottom = self._places[app]
        tap = Action("tap", (Box(left, top, right - 1, bottom - 1, "px"),))
        return TreeStep(tap, screen=_AUDIO.size, **self._first._asdict())

    def closing(self, group: GroupPlan) -> TreeStep:
        if group.number not in self._last:
            page = closing(group.look, _AUDIO.size, group.number)
            self._last[group.number] = self._files(page, group.look, _CHIME)
        return TreeStep(COMPLETE, screen=_AUDIO.size, **self._last[group.number]._asdict())

    def _files(self, screen: Image.Image, app: Look, cue: Sequence[float] | None) -> Files:
        sound = sounds.room(self._rng, seconds=_FRAME_S)
        if cue:
            sound = sounds.over(sound, sounds.chime(cue), at=0.2)
        clip = still_clip(screen, app, _AUDIO, seconds=_FRAME_S)
        return Files(png(np.asarray(screen)), clip, encode_wav(sound))

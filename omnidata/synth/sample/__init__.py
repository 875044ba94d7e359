"""The sample dataset: made-up apps on drawn screens, with real codecs.

It has the layout of OmniGUI, so that everything can be tried without the benchmark's data. Many of
its episodes are twins: the same up to a step at which one medium alone says what is right, so that
a model without ears (or without eyes for motion) cannot get all of them right. The episode's
row names the group, the medium and the step.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from omnidata.loaders.episode_tree import TreeEpisode, TreeStep, TreeWriter
from omnidata.media import AUDIO_RATE, encode_wav
from omnidata.synth.drawing import WAIT
from omnidata.synth.sample import chirp, homely, parcelo, reelio, sonora
from omnidata.synth.sample.phone import HEIGHT, WIDTH, Screen
from omnidata.synth.sample.script import Clip, Plan, Script, tap
from omnidata.types import Progress

__all__ = ["make_sample"]

_APPS = (chirp, sonora, reelio, parcelo, homely)
_FPS = {"Reelio": 30}  # two rates on purpose: code that takes one for granted fails on the other
_USUAL_FPS = 15


def make_sample(out: Path, *, seed: int = 0, progress: Progress | None = None) -> Path:
    """Write the sample dataset: about 150 steps, 25 MB.

    The same seed gives the same bytes with the same versions of Pillow, PyAV and NumPy on the same
    kind of machine; of screenshots the same pixels (`omnidata.media.png`).

    Args:
        out: a new or empty folder.
        seed: another one gives other colours, names, places of buttons, sounds and answers.
        progress: called with the number of steps written and of all steps.

    Returns:
        `out`, the folder of the app folders.

    Raises:
        DataError: if `out` holds something already.
    """
    with TreeWriter(out) as tree:
        scripts = [app.episodes(seed=seed) for app in _APPS]
        total = sum(len(plan.moments) for script in scripts for plan in script.plans)
        written = 0
        encoder = _Encoder()
        try:
            waiting = [
                (script, plan, encoder.start(script, plan))
                for script in scripts
                for plan in script.plans
            ]
            for script, plan, media in waiting:
                tree.add(_episode(script, plan, media))
                written += len(plan.moments)
                if progress is not None:
                    progress(written, total)
        finally:
            encoder.close()
    return out


class _Encoder:
    """Encodes media in threads, each once however many episodes share it."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1))
        self._screens: dict[Screen, Future[bytes]] = {}
        self._clips: dict[Clip, Future[bytes]] = {}

    def start(self, script: Script, plan: Plan) -> list[tuple[Future[bytes], Future[bytes]]]:
        """Begin with the screenshots and clips of an episode."""
        first = plan.moments[0].screen
        before = script.start
        last = WAIT if first is before else tap(before, script.app)
        media = []
        for moment in plan.moments:
            clip = Clip(
                before,
                last,
                moment.screen,
                moment.cue,
                seconds=moment.sound.size / AUDIO_RATE,
                fps=_FPS.get(script.app, _USUAL_FPS),
            )
            media.append((self._screen(moment.screen), self._clip(clip)))
            before, last = moment.screen, moment.action
        return media

    def close(self) -> None:
        """Drop what has not begun."""
        self._pool.shutdown(cancel_futures=True)

    def _screen(self, screen: Screen) -> Future[bytes]:
        if screen not in self._screens:
            self._screens[screen] = self._pool.submit(screen.encode)
        return self._screens[screen]

    def _clip(self, clip: Clip) -> Future[bytes]:
        if clip not in self._clips:
            self._clips[clip] = self._pool.submit(clip.encode)
        return self._clips[clip]


def _episode(
    script: Script, plan: Plan, media: list[tuple[Future[bytes], Future[bytes]]]
) -> TreeEpisode:
    twin = plan.twin
    steps = (
        TreeStep(
            moment.action,
            screen=(WIDTH, HEIGHT),
            screenshot=screenshot.result(),
            video=clip.result(),
            audio=encode_wav(moment.sound),
            extra={} if twin is None else {"twins": twin.group},  # one split holds them all
        )
        for moment, (screenshot, clip) in zip(plan.moments, media, strict=True)
    )
    return TreeEpisode(
        plan.id,
        app=script.app,
        dimension=plan.task.dimension,
        steps=steps,
        instruction_en=plan.task.en,
        instruction_zh=plan.task.zh,
        dependency=plan.task.dependency,
        language=plan.task.language,
        extra={}
        if twin is None
        else {
            "twins": twin.group,
            "decisive_modality": twin.modality,
            "decisive_step_id": twin.step,
        },
    )

"""Spans of a recording -> steps with their media, in one pass."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import closing

from omnidata.data.encode import AUDIO_RATE, Frame, encode_mp4, encode_wav
from omnidata.data.segment.plan import Span
from omnidata.data.segment.recording import Recording
from omnidata.data.segment.streams import Film, Track
from omnidata.loaders.omnigui_tree import TreeStep


def steps(recording: Recording, spans: Sequence[Span]) -> Iterator[TreeStep]:
    """Cut the steps; each is made when it is asked for, and forgotten.

    Args:
        recording: decoded once, from the beginning to the last span.
        spans: in the order of time.

    Yields:
        A step per span: a PNG of the upright frame in full size; an MP4 at the recording's rate,
        an odd row or column cut off; a WAV. A span without a whole frame has no MP4 and no WAV,
        and a recording without sound no WAV.

    Raises:
        MediaError: the recording is broken somewhere before the last span's end.
    """
    with closing(Film(recording)) as film:
        if not recording.has_sound:
            yield from (_step(recording, film, None, span) for span in spans)
            return
        with closing(Track(recording)) as track:
            yield from (_step(recording, film, track, span) for span in spans)


def _step(recording: Recording, film: Film, track: Track | None, span: Span) -> TreeStep:
    shot = _Shot(film, span.screenshot_s)
    video = audio = None
    if span.frames:
        video = encode_mp4(_clip(recording, film, span, shot), fps=recording.fps)
    if span.frames and track:
        first, last = (round(moment * AUDIO_RATE) for moment in (span.clip_s, span.start_s))
        audio = encode_wav(track.read(first, last))
    return TreeStep(
        span.event.action,
        screen=recording.screen,
        screenshot=shot.png(),
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


class _Shot:
    """A screenshot that is taken when the film, which only runs forwards, comes to its moment."""

    def __init__(self, film: Film, moment: float) -> None:
        self._film = film
        self._moment = moment
        self._pixels: Frame | None = None

    def before(self, moment: float) -> None:
        """Take it if the film is about to run beyond it."""
        if self._pixels is None and self._moment < moment:
            self._pixels = self._film.at(self._moment)

    def png(self) -> bytes:
        from PIL import Image

        buffer = io.BytesIO()
        pixels = self._film.at(self._moment) if self._pixels is None else self._pixels
        Image.fromarray(pixels).save(buffer, "PNG")
        return buffer.getvalue()


def _clip(recording: Recording, film: Film, span: Span, shot: _Shot) -> Iterator[Frame]:
    """The picture at the beginning of the span, and then at every tick of the rate."""
    width, height = (extent // 2 * 2 for extent in recording.screen)
    for number in range(span.frames):
        moment = span.clip_s + float(number / recording.fps)
        shot.before(moment)
        yield film.at(moment)[:height, :width]

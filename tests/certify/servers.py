"""A server that answers the probes by looking and listening, and the same with one fault."""

from __future__ import annotations

import base64
import io
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import groupby
from typing import Any

import av
import numpy as np
import numpy.typing as npt
from aiohttp import web
from PIL import Image, ImageDraw, ImageFont

from omnidata.certify.exhibits import spoken_digits
from tests.adapters.servers import Asked, ChatCompletions, Fault

_GLYPHS = "0123456789AB"
_RATE = 16_000
_SPECIAL = re.compile(r"<\|box_(?:start|end)\|>")
"""Special tokens of the model; other spellings are plain text."""


_FEW = 240
"""Pixels of a picture's shorter side that are kept: enough to read a digit and find a place."""


@dataclass(frozen=True)
class Picture:
    """A picture, of which fewer pixels are kept.

    Attributes:
        pixels: RGB, at 1 / N of its sides.
        size: width and height in pixels.
        format: of the file.
    """

    pixels: Image.Image
    size: tuple[int, int]
    format: str = ""


@dataclass(frozen=True)
class Heard:
    """What of a request reaches the model.

    Attributes:
        turns: role and text of each message, in order.
        pictures: as the model sees them.
        clip: time in seconds and picture of each frame.
        sound: (channels, N) at 16 kHz; None without.
        track: the clip's own sound.
        limit, stop, seed, temperature, keeps_special: of the request.
        counts_pictures: whether the tokens of pictures are counted.
        answer: what the model says to it.
    """

    turns: Sequence[tuple[str, str]]
    pictures: Sequence[Picture] = ()
    clip: Sequence[tuple[float, Picture]] = ()
    sound: npt.NDArray[np.float32] | None = None
    track: npt.NDArray[np.float32] | None = None
    limit: int = 10**6
    stop: Sequence[str] = ()
    seed: int | None = None
    temperature: float = 0.0
    keeps_special: bool = False
    counts_pictures: bool = True
    answer: Callable[[Heard], str] = field(default=lambda heard: answer_of(heard))


@dataclass
class Watching:
    """Chat Completions of a model that sees, hears and counts; `fault` changes what it gets."""

    fault: Callable[[Heard], Heard] = lambda heard: heard
    path = "/v1/chat/completions"

    async def read(self, request: web.Request) -> Asked:
        payload = await request.json()
        return Asked([], payload)

    def reply(self, asked: Asked, text: str | None, fault: Fault) -> Any:
        heard = self.fault(_hear(asked.payload))
        words = heard.answer(heard).split(" ")
        written = " ".join(words[: heard.limit])
        said = written if heard.keeps_special else _SPECIAL.sub("", written)
        for stop in heard.stop:
            said = said.partition(stop)[0]
        finish = "stop" if len(words) <= heard.limit else "length"
        tokens = sum(map(_count, (text for _, text in heard.turns)))
        tokens += 100 * len(heard.pictures) * heard.counts_pictures
        counts = {"prompt_tokens": tokens, "completion_tokens": _count(written)}
        usage = {**counts, "total_tokens": sum(counts.values())}
        return ChatCompletions().reply(asked, said, Fault(finish=finish)) | {"usage": usage}


def _count(text: str) -> int:
    """Count tokens: words, special tokens, and marks of other spellings."""
    return len(text.split()) + len(_SPECIAL.findall(text)) + 6 * text.count("</")


def _hear(payload: Mapping[str, Any]) -> Heard:
    turns, pictures = [], []
    clip: Sequence[tuple[float, Picture]] = []
    sound = track = None
    for message in payload["messages"]:
        texts, time = [], None
        for part in _parts(message["content"]):
            kind = part["type"]
            if kind == "text":
                label = re.match(r"\[Video frame at ([\d.]+) s\]", part["text"])
                time = float(label[1]) if label else None
                texts += [] if label else [part["text"]]
                continue
            data = part[kind].get("data") or part[kind]["url"].partition(",")[2]
            content = base64.b64decode(data)
            if kind == "image_url" and time is not None:
                clip = [*clip, (time, _open(content))]
                time = None
            elif kind == "image_url":
                pictures.append(_open(content))
            elif kind == "video_url":
                clip, track = _frames(content), _sound(content)
            else:
                sound = _sound(content)
        turns.append((message["role"], " ".join(texts)))
    stop = payload.get("stop") or []
    return Heard(
        turns,
        pictures,
        clip,
        sound,
        track,
        payload.get("max_completion_tokens") or payload.get("max_tokens") or 10**6,
        [stop] if isinstance(stop, str) else stop,
        payload.get("seed"),
        payload.get("temperature") or 0.0,
        payload.get("skip_special_tokens") is False,
    )


def _parts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


@lru_cache(200)
def _open(content: bytes) -> Picture:
    opened = Image.open(io.BytesIO(content))
    size, form = opened.size, opened.format or ""
    return Picture(opened.convert("RGB").reduce(max(1, min(size) // _FEW)), size, form)


@lru_cache(50)
def _frames(content: bytes) -> Sequence[tuple[float, Picture]]:
    with av.open(io.BytesIO(content), "r") as container:
        return [
            (
                frame.time or 0.0,
                Picture(
                    Image.fromarray(frame.to_ndarray(format="rgb24")), (frame.width, frame.height)
                ),
            )
            for frame in container.decode(video=0)
        ]


@lru_cache(50)
def _sound(content: bytes) -> npt.NDArray[np.float32] | None:
    with av.open(io.BytesIO(content), "r") as container:
        if not container.streams.audio:
            return None
        channels = container.streams.audio[0].channels
        layout = "stereo" if channels == 2 else "mono"
        resampler = av.AudioResampler(format="fltp", layout=layout, rate=_RATE)
        parts = [
            each.to_ndarray()
            for frame in container.decode(audio=0)
            for each in resampler.resample(frame)
        ]
    return np.concatenate(parts, axis=1)


# What the model says.


def answer_of(heard: Heard) -> str:
    role, asked = heard.turns[-1]
    texts = dict(heard.turns)
    if role == "assistant":
        last = re.findall(r"[A-Z]", asked)[-1]
        return f" {chr(ord(last) + 1)}, {chr(ord(last) + 2)}"
    if found := re.search(r"single word (\w+)", texts.get("system", "")):
        return found[1]
    if found := re.match(r"What is 2 \+ (\d)", asked):
        return str(2 + int(found[1]))
    if "did you choose" in asked:
        found = re.search(r"My number is (\d+)", texts.get("assistant", ""))
        return found[1] if found else "I do not know."
    if found := re.match(r"Count from 1 to (\d+)", asked):
        return " ".join(map(str, range(1, int(found[1]) + 1)))
    if found := re.match(r"Repeat this text.*: (\S+)", asked):
        return found[1]
    if found := re.match(r"Say the first letters", asked):
        return "Sure: A, B, C"
    if "ship" in asked:
        key = heard.seed if heard.temperature else 0
        return f"The Albatross {random.Random(key).randrange(10**9)} sails to Rome."
    if "says digits" in asked:
        return "I hear nothing." if heard.sound is None else _spoken(heard.sound.mean(axis=0))
    if "beeps" in asked or "sound" in asked:
        return _listen(heard, asked)
    if "red square" in asked:
        return _point(heard.pictures[-1], asked)
    if "Which colour" in asked:
        return _colour(heard.pictures[0])
    if "clip" in asked:
        return _watch(heard.clip, asked)
    if "show now" in asked:
        return _read_text(heard.pictures[-1])
    return ", ".join(map(_read_text, heard.pictures))


def _point(picture: Picture, asked: str) -> str:
    pixels = np.asarray(picture.pixels)
    is_red = (pixels[..., 0] > 150) & (pixels[..., 1] < 110) & (pixels[..., 2] < 110)
    rows, columns = np.nonzero(is_red)
    if not rows.size:
        return "There is no red square."
    width, height = (1000, 1000) if "0 to 1000" in asked else picture.size
    x = (columns.mean() + 0.5) * width / pixels.shape[1]
    y = (rows.mean() + 0.5) * height / pixels.shape[0]
    return f"[{x:.0f}, {y:.0f}]"


def _colour(picture: Picture) -> str:
    red, green, blue = np.asarray(picture.pixels).mean(axis=(0, 1)) > 128
    names = {(1, 0, 0): "red", (0, 0, 1): "blue", (1, 1, 0): "yellow", (0, 1, 1): "cyan"}
    return names[int(red), int(green), int(blue)]


def _watch(clip: Sequence[tuple[float, Picture]], asked: str) -> str:
    shown = [(_read_text(picture), time) for time, picture in clip]
    if found := re.search(r"it show (\d)", asked):
        return str(round(next((time for text, time in shown if text == found[1]), 0)))
    return " ".join(text for text, _ in groupby(text for text, _ in shown))


def _listen(heard: Heard, asked: str) -> str:
    sound = heard.track if "of the clip" in asked else heard.sound
    if sound is None:
        return "I hear no beeps."
    if "left" in asked:
        loud = np.abs(sound).mean(axis=1) > 1e-3
        return "both" if loud.size == 1 or loud.all() else "left" if loud[0] else "right"
    beeps = _beeps(sound.mean(axis=0))
    if "high or low" in asked:
        return " ".join("high" if pitch > 800 else "low" for pitch in beeps)
    return str(len(beeps))


def _beeps(wave: npt.NDArray[np.float32]) -> list[float]:
    """The pitch of each beep in hertz."""
    step = _RATE // 20
    loud = [bool(np.abs(wave[at : at + step]).max() > 0.02) for at in range(0, wave.size, step)]
    found, at = [], 0
    for is_loud, run in groupby(loud):
        size = len([*run])
        if is_loud:
            part = wave[at * step : (at + size) * step]
            spectrum = np.abs(np.fft.rfft(part))
            found.append(float(np.fft.rfftfreq(part.size, 1 / _RATE)[spectrum.argmax()]))
        at += size
    return found


def _spoken(wave: npt.NDArray[np.float32]) -> str:
    """The digits whose words are most like the sounds of each second with any."""
    words = {digit: word.astype(np.float32) for digit, word in spoken_digits().items()}
    starts = [at for at in range(0, wave.size, _RATE) if np.abs(wave[at : at + _RATE]).max() > 0.02]
    said = (wave[at : at + _RATE] for at in starts)
    return ", ".join(max(words, key=lambda digit: _likeness(part, words[digit])) for part in said)


def _likeness(part: npt.NDArray[np.float32], word: npt.NDArray[np.float32]) -> float:
    size = 2 ** (part.size + word.size).bit_length()
    product = np.fft.rfft(part, size) * np.fft.rfft(word, size).conj()
    return float(np.fft.irfft(product, size).max() / np.linalg.norm(word))


def _read_text(picture: Picture) -> str:
    ink = np.asarray(picture.pixels.convert("L")) < 128
    if not ink.any():
        return ""
    is_upright = ink.shape[0] > ink.shape[1]  # one letter below the other
    lines = [line.T for line in _letters_across(ink.T)] if is_upright else [ink]
    return "".join(_glyph(letter) for line in lines for letter in _letters(line))


def _letters_across(ink: npt.NDArray[np.bool_]) -> list[npt.NDArray[np.bool_]]:
    columns = ink.any(axis=0)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], columns, [False]]).astype(int)))
    return [ink[:, left:right] for left, right in zip(edges[::2], edges[1::2], strict=True)]


def _letters(ink: npt.NDArray[np.bool_]) -> list[npt.NDArray[np.bool_]]:
    found = []
    for part in _letters_across(ink):
        rows = np.flatnonzero(part.any(axis=1))
        found.append(part[rows[0] : rows[-1] + 1])
    return found


def _glyph(ink: npt.NDArray[np.bool_]) -> str:
    shape = _scaled(ink)
    return min(_GLYPHS, key=lambda glyph: float(np.abs(shape - _template(glyph)).mean()))


@cache
def _template(glyph: str) -> npt.NDArray[np.float32]:
    picture = Image.new("L", (300, 300), 255)
    ImageDraw.Draw(picture).text((150, 150), glyph, 0, ImageFont.load_default(144), anchor="mm")
    (ink,) = _letters(np.asarray(picture) < 128)
    return _scaled(ink)


def _scaled(ink: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
    narrow = ink.shape[1] / ink.shape[0]
    picture = Image.fromarray((ink * 255).astype(np.uint8)).resize((24, 32))
    return np.append(np.asarray(picture, np.float32) / 255, np.full((1, 24), 4 * narrow), axis=0)


# One fault each.


def _resize(picture: Picture, across: float, down: float) -> Picture:
    """Resize a picture to shares of its sides."""

    def resized(size: tuple[int, int]) -> tuple[int, int]:
        return max(1, round(size[0] * across)), max(1, round(size[1] * down))

    shown = picture.pixels
    return replace(picture, pixels=shown.resize(resized(shown.size)), size=resized(picture.size))


def _halve(picture: Picture) -> Picture:
    return _resize(picture, 1 / 2, 2 / 3)


def _pad(picture: Picture) -> Picture:
    shown = picture.pixels
    side = max(shown.size)
    ground = Image.new("RGB", (side, side), "black")
    ground.paste(shown, ((side - shown.width) // 2, (side - shown.height) // 2))
    return replace(picture, pixels=ground, size=(max(picture.size),) * 2)


def _limit(picture: Picture) -> Picture:
    """Resize to a million pixels at most."""
    scale = min(1, (10**6 / (picture.size[0] * picture.size[1])) ** 0.5)
    return _resize(picture, scale, scale)


def _crop(picture: Picture) -> Picture:
    shown = picture.pixels
    side = min(shown.size)
    left, top = (shown.width - side) // 2, (shown.height - side) // 2
    middle = shown.crop((left, top, left + side, top + side))
    return replace(picture, pixels=middle, size=(min(picture.size),) * 2)


def _in_thousandths(heard: Heard) -> Heard:
    turns = [(role, text.replace("are pixels of", "0 to 1000")) for role, text in heard.turns]
    return replace(heard, turns=turns)


def _swap(heard: Heard) -> str:
    return re.sub(r"\[(\d+), (\d+)\]", r"[\2, \1]", answer_of(heard))


def _bgr(picture: Picture) -> Picture:
    return replace(picture, pixels=Image.merge("RGB", picture.pixels.split()[::-1]))


def _cut(sound: npt.NDArray[np.float32] | None, seconds: int) -> npt.NDArray[np.float32] | None:
    return None if sound is None else sound[:, : seconds * _RATE]


def _refuse() -> Heard:
    raise web.HTTPBadRequest(text="no media")


def mix(sound: npt.NDArray[np.float32] | None) -> npt.NDArray[np.float32] | None:
    return None if sound is None else sound.mean(axis=0, keepdims=True)


_NOISE = random.Random(3)

_SCREENS = ("phone", "landscape", "4k", "tiny", "wide", "turned", "palette", "alpha")


_HEARD = (
    *("frames", "frame-times", "track", "beeps", "long-sound", "pitch", "sides", "speech"),
    "sound-beside-clip",
)


def _places(cause: str) -> dict[str, str]:
    return {f"place-{name}": cause for name in _SCREENS}


def _seen(change: Callable[[Picture], Picture]) -> Callable[[Heard], Heard]:
    """Change every picture."""
    return lambda heard: replace(heard, pictures=[*map(change, heard.pictures)])


def _swap_colours(heard: Heard) -> Heard:
    return _seen(_bgr)(heard) if "colour" in _asked(heard) else heard


def _limit_answer(heard: Heard) -> Heard:
    return replace(heard, limit=min(heard.limit, 64))


def _draw_always(heard: Heard) -> Heard:
    return replace(heard, temperature=1.0, seed=heard.seed or _NOISE.randrange(10**9))


FAULTS: Mapping[str, tuple[Callable[[Heard], Heard], str, Mapping[str, str]]] = {
    "resize": (_seen(_halve), "I", _places("resized")),
    "pad": (_seen(_pad), "I", _places("padded")),
    "limit pixels": (_seen(_limit), "I", {
        f"place-{name}": "resized" for name in ("phone", "landscape", "4k", "turned")
    }),
    "crop": (_seen(_crop), "I", {"edges": "cropped"}),
    "units": (_in_thousandths, "I", _places("units")),
    "swap x and y": (lambda h: replace(h, answer=_swap), "I", _places("swapped")),
    "BGR": (_swap_colours, "I", dict.fromkeys(("colours", "colours-jpeg"), "colours_swapped")),
    "BGR of JPEG alone": (_seen(lambda p: _bgr(p) if p.format == "JPEG" else p), "I",
                          {"colours-jpeg": "colours_swapped"}),
    "swap order": (lambda h: replace(h, pictures=h.pictures[::-1]), "I",
                   {"several-pictures": "picture_order"}),
    "first picture only": (lambda h: replace(h, pictures=h.pictures[:1]), "I",
                           {"several-pictures": "first_picture_only"}),
    "drop pictures of text": (lambda h: replace(h, pictures=()) if _is_of_text(h) else h, "I",
                              {"tokens": "picture_costs_nothing"}),
    "drop sound": (lambda h: replace(h, sound=None), "A",
                   dict.fromkeys(("beeps", "long-sound", "pitch", "speech"), "sound_lost")),
    "drop sound beside a clip": (lambda h: replace(h, sound=None) if h.clip else h, "V,A",
                                 {"sound-beside-clip": "sound_lost"}),
    "cut at 30 s": (lambda h: replace(h, sound=_cut(h.sound, 30)), "A",
                    dict.fromkeys(("long-sound", "speech"), "sound_cut_30")),
    "cut at 28 s": (lambda h: replace(h, sound=_cut(h.sound, 28)), "A",
                    dict.fromkeys(("long-sound", "speech"), "sound_cut")),
    "refuse sound and clips": (lambda h: _refuse() if h.clip or h.sound is not None else h, "V,A",
                               dict.fromkeys(_HEARD, "refused")),
    "first frame only": (lambda h: replace(h, clip=h.clip[:1]), "V",
                         {"frames": "first_frame_only"}),
    "few frames": (lambda h: replace(h, clip=h.clip[::8]), "V", {"frames": "frames_lost"}),
    "lose frame times": (lambda h: replace(h, clip=[(t / 2, shown) for t, shown in h.clip]), "V",
                         {"frame-times": "frame_times"}),
    "transcode": (
        lambda h: replace(h, track=None, clip=[(t, _resize(s, 1 / 2, 1 / 2)) for t, s in h.clip]),
        "V", {"track": "track_lost"},
    ),
    "ignore system": (lambda h: replace(h, turns=[turn for turn in h.turns if turn[0] != "system"]),
                      "", {"system": "system_ignored"}),
    "drop history": (
        lambda h: replace(h, turns=h.turns[-1:]) if "did you choose" in _asked(h) else h,
        "", {"history": "history_dropped"},
    ),
    "ignore a given beginning": (
        lambda h: replace(h, turns=h.turns[:1]) if h.turns[-1][0] == "assistant" else h,
        "", {"prefix": "prefix_ignored"},
    ),
    "ignore stop": (lambda h: replace(h, stop=()), "", {"stop": "stop_ignored"}),
    "ignore the limit": (lambda h: replace(h, limit=10**6), "", {"limit": "limit_ignored"}),
    "strip special tokens": (lambda h: replace(h, keeps_special=False), "",
                             {"special-tokens": "special_tokens_lost"}),
    "cap tokens": (_limit_answer, "", {"long-answer": "output_capped"}),
    "ignore seed": (lambda h: replace(h, seed=_NOISE.randrange(10**9)), "",
                    {"seed": "seed_ignored"}),
    "change answers at temperature 0": (_draw_always, "", {"repeat": "not_deterministic"}),
}  # fmt: skip
"""What happens to a request, the modalities to send, and the cause that each probe must name."""


def _is_of_text(heard: Heard) -> bool:
    """Whether a picture of a text is asked about, and not a place or a colour."""
    return "number" in _asked(heard) or "Is this" in _asked(heard)


def _asked(heard: Heard) -> str:
    return heard.turns[-1][1]

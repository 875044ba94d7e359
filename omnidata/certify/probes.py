"""The probes: questions with known answers, simple enough for a small model.

Each question lists the wrong answers that a fault would cause (`signs`): they separate a fault from
the mistakes of a weak model.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from random import Random
from typing import Any, Final, Literal

from omnidata.actions import Pair, Screen
from omnidata.certify.exhibits import (
    COLOURS,
    HIGH,
    LOW,
    SWAPPED,
    Exhibits,
    beeps,
    place_sounds,
    spoken_digits,
)
from omnidata.errors import PlatformError
from omnidata.media import Samples
from omnidata.types import Conversation, MediaRef, Message, Modality, Part

Judgement = Literal["signs", "places", "same", "times", "cut", "tokens", "special"]
"""How replies to a probe are judged: by `Question.signs`, by a fit of places, by being equal, by a
fit of seconds, by a fit of the second at which sound ends, by the tokens of prompts, or of prompts
and answers with special tokens."""
Medium = Modality | Literal["text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of a probe.

    Attributes:
        messages: the conversation.
        right: the right answer, as `Probe.read` returns it.
        signs: wrong answer -> the fault that causes it, a key of `causes.CAUSES`.
        at: the target's centre in shares of the sides; None if no place is asked for.
        size: width and height of that picture in pixels.
        reach: seconds that an answer may lie from the right one, where seconds are asked for.
        beeps: when they begin, in seconds, where they are counted.
    """

    messages: Conversation
    right: str = ""
    signs: Mapping[str, str] = field(default_factory=dict)
    at: Pair | None = None
    size: Screen = (448, 448)
    reach: float = 0.0
    beeps: Sequence[float] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Questions that test one ability of a server.

    Attributes:
        name: of the probe.
        claim: the statement that holds if it passes.
        media: the modalities that it sends; empty for text alone.
        questions: of the probe.
        read: returns the answer in a text; empty if there is none.
        chance: the probability that a guess is right.
        judged: the test of the replies.
        settings: of `GenerationParams`; by default temperature 0 and 512 tokens.
        controls: of the model (`Model.controls`) that it needs.
        whole_clips: whether it needs whole clips, not frames of them.
    """

    name: str
    claim: str
    media: Sequence[Modality] = ()
    questions: Sequence[Question]
    read: Callable[[str], str] = str.strip
    chance: float = 0.0
    judged: Judgement = "signs"
    settings: Mapping[str, Any] = field(default_factory=dict)
    controls: Collection[str] = ()
    whole_clips: bool = False


# Readers of answers.

_NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_THOUGHT: Final = re.compile(r"^.*</think>|<think>.*$", re.DOTALL)
_LABEL: Final = re.compile(
    r"^\W*\d[.)]\s+(?=\W*\d\W*$)|\b(?:picture|image|frame|digit) \d+\W*:", re.MULTILINE
)
"""The numbers of a list, one line each, or before a colon."""
_DENIAL: Final = re.compile(
    r"\b(?:no|not|none|nothing|cannot|unable|silent|silence)\b|n['\u2019]t\b"
)
NOTHING: Final = "nothing"
"""What an answer says that denies to have seen, heard or known a thing."""


def _final_text(text: str) -> str:
    """Return an answer without thoughts, in lower case, with digits of any width as ASCII."""
    return unicodedata.normalize("NFKC", _THOUGHT.sub("", text)).lower()


def _denies(text: str) -> str:
    return NOTHING if _DENIAL.search(_final_text(text)) else ""


def read_digits(text: str) -> str:
    r"""Return all digits of an answer, without the numbers of a list.

    Examples:
        >>> read_digits("<think>1?</think> The digits are 3, 7 and 5.")
        '375'
        >>> read_digits("Picture 1: 3, picture 2: 7"), read_digits("1. **3**\n2. **7**")
        ('37', '37')
    """
    return "".join(re.findall(r"[0-9]", _LABEL.sub("", _final_text(text))))


def read_last_number(text: str) -> str:
    """Return the last number of an answer, a word up to nine too.

    Examples:
        >>> read_last_number("I hear four beeps."), read_last_number("1, 2, 3")
        ('4', '3')
        >>> read_last_number("At 3.0 s")
        '3'
    """
    words = "|".join((*_NUMBERS, "zero"))
    found = re.findall(rf"[0-9]+(?:\.[0-9]+)?|\b(?:{words})\b", _final_text(text))
    if not found:
        return ""
    last = found[-1].replace("zero", "no")
    return str(_NUMBERS.index(last)) if last in _NUMBERS else f"{float(last):g}"


def read_beeps(text: str) -> str:
    """Return how many beeps an answer has, "0" for one that denies any.

    Examples:
        >>> read_beeps("Four."), read_beeps("I can't hear the audio."), read_beeps("Hello")
        ('4', '0', '')
        >>> read_beeps("There are 4 beeps in these 5 seconds.")
        '4'
    """
    found = re.search(r"\w+ beeps?\b", _final_text(text))
    count = read_last_number(found[0]) if found else ""
    return count or read_last_number(text) or ("0" if _denies(text) else "")


def read_spoken(text: str) -> str:
    """Return the digits from one to four of an answer, in words or figures.

    Examples:
        >>> read_spoken("Three, one, 4")
        '314'
    """
    found = re.findall(r"[0-9]|\b(?:one|two|three|four)\b", _final_text(text))
    return "".join(str(_NUMBERS.index(each)) if each in _NUMBERS else each for each in found)


def read_count(text: str) -> str:
    """Return the number to which an answer counts from 1; empty if it does anything else.

    Examples:
        >>> read_count("1 2 3 4"), read_count("4"), read_count("1, 2, 3, ..., 9")
        ('4', '', '')
    """
    numbers = re.findall(r"[0-9]+", _final_text(text))
    start = len(numbers) - numbers[::-1].index("1") - 1 if "1" in numbers else 0
    said = numbers[start:]
    is_count = len(said) > 1 and said == [str(each + 1) for each in range(len(said))]
    return said[-1] if is_count else ""


def _is_whole(text: str) -> str:
    """Return "whole" for an answer that counts to the end, "cut" for one that stops before."""
    count = read_count(text)
    return count and ("whole" if int(count) in _LAST else "cut")


def read_first_letter(text: str) -> str:
    """Return the first letter that an answer lists; empty if it lists none.

    Examples:
        >>> tuple(map(read_first_letter, (" D, E, F", "Sure: A, B", "The end")))
        ('d', 'a', '')
    """
    found = re.search(r"\b([a-z])[^\w'\u2019]+[a-z]\b|^\W*([a-z])\W*$", _final_text(text))
    return found[1] or found[2] if found else ""


def read_line(text: str) -> str:
    """Return an answer without blanks and quotation marks.

    Examples:
        >>> read_line("`Kiwi <box>17</box>`.")
        'kiwi<box>17</box>'
    """
    return re.sub(r"[\s`\"'.*]", "", _final_text(text))


def choose_from(words: Sequence[str]) -> Callable[[str], str]:
    """Return a reader that finds some words in an answer, in the answer's order.

    Examples:
        >>> choose_from(["red", "blue"])("It is **Blue**.")
        'blue'
    """
    pattern = re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)
    return lambda text: " ".join(pattern.findall(_final_text(text)))


# Questions.


def _ask(*parts: MediaRef | str) -> Conversation:
    return (_say("user", *parts),)


def _say(role: Literal["system", "user", "assistant"], *parts: MediaRef | str) -> Message:
    return Message(role, tuple(map(_part, parts)))


def _part(part: MediaRef | str) -> Part:
    if isinstance(part, str):
        return Part("text", part)
    role = {"image": "screenshot", "video": "video", "audio": "audio"}[part.kind]
    return Part(part.kind, media=part, role=role)


def make_probes(exhibits: Exhibits, kinds: Collection[Modality], *, place: str) -> list[Probe]:
    """Draw the media of probes, and return the probes.

    Args:
        exhibits: writes the media.
        kinds: the modalities that probes may send; probes of text are always included.
        place: how to ask where the red square is, in the unit of answers.
    """
    made: list[Probe] = []
    if "image" in kinds:
        made += [*_places(exhibits, place), *_pictures(exhibits, Random(0))]
    if "video" in kinds:
        made += _clips(exhibits, Random(0))
    if "audio" in kinds:
        made += _sounds(exhibits)
    if {"audio", "video"} <= set(kinds):
        made.append(_beside_clip(exhibits))
    return [*made, *_texts(Random(0)), *_sampling()]


# Pictures.

_SPOTS: Final = ((0.2, 0.12), (0.75, 0.3), (0.4, 0.55), (0.12, 0.86), (0.86, 0.74))
_SCREENS: Final[Mapping[str, tuple[Screen, str]]] = {
    "phone": ((1080, 2400), ""),
    "landscape": ((1920, 1080), ""),
    "4k": ((3840, 2160), ""),
    "tiny": ((240, 320), ""),
    "wide": ((2400, 400), ""),
    "turned": ((1080, 2400), "turned"),
    "palette": ((1280, 800), "palette"),
    "alpha": ((1280, 800), "alpha"),
}
_LONG_SCREENS: Final[Sequence[Screen]] = ((1080, 2400), (1920, 1080)) * 2


def _places(exhibits: Exhibits, place: str) -> Iterator[Probe]:
    for name, (size, form) in _SCREENS.items():
        yield Probe(
            name=f"place-{name}",
            claim=f"places on a picture of {size[0]} x {size[1]}{form and f', {form}'}",
            media=("image",),
            judged="places",
            questions=[
                Question(
                    messages=_ask(exhibits.square(f"place-{name}-{number}", size, at, form), place),
                    at=at,
                    size=size,
                )
                for number, at in enumerate(_SPOTS)
            ],
        )


def _pictures(exhibits: Exhibits, rng: Random) -> Iterator[Probe]:
    codes = [str(rng.randrange(1000, 9999)) for _ in range(3)]
    yield Probe(
        name="text",
        claim="text on a picture is read",
        media=("image",),
        read=read_digits,
        chance=1e-4,
        questions=[
            Question(
                messages=_ask(
                    exhibits.text(f"text-{code}", code),
                    "Which number does the picture show? Answer with the number alone.",
                ),
                right=code,
            )
            for code in codes
        ],
    )
    yield Probe(
        name="tokens",
        claim="a picture costs tokens",
        media=("image",),
        judged="tokens",
        questions=[
            Question(messages=_ask(*shown, "Is this a picture? Answer yes or no."))
            for shown in ([exhibits.text("tokens", codes[0])], [])
        ],
    )
    yield Probe(
        name="edges",
        claim="the edges of a picture arrive",
        media=("image",),
        read=read_digits,
        chance=1 / 500,
        questions=[_edges(exhibits, size, _digits(rng, 3)) for size in _LONG_SCREENS],
    )
    yield from (_colours(exhibits, form) for form in ("PNG", "JPEG"))
    yield Probe(
        name="several-pictures",
        claim="several pictures arrive, in their order",
        media=("image",),
        read=read_digits,
        chance=1 / 720,
        questions=[_several(exhibits, _digits(rng, 3)) for _ in range(4)],
    )
    yield Probe(
        name="current-picture",
        claim="the last of several pictures is taken for the current one",
        media=("image",),
        read=read_digits,
        chance=1 / 9,
        questions=[_current(exhibits, _digits(rng, 3)) for _ in range(3)],
    )


def _colours(exhibits: Exhibits, form: Literal["PNG", "JPEG"]) -> Probe:
    names = list(COLOURS)
    return Probe(
        name="colours" if form == "PNG" else "colours-jpeg",
        claim=f"colours of a {form} are as sent",
        media=("image",),
        read=choose_from(names),
        chance=1 / len(names),
        questions=[
            Question(
                messages=_ask(
                    exhibits.colour(f"colour-{name}", name, form),
                    "Which colour is the picture: red, blue, yellow or cyan? Answer with one word.",
                ),
                right=name,
                signs={SWAPPED[name]: "colours_swapped"},
            )
            for name in names
        ],
    )


def _digits(rng: Random, count: int) -> str:
    return "".join(rng.sample("123456789", count))


def _edges(exhibits: Exhibits, size: Screen, digits: str) -> Question:
    return Question(
        messages=_ask(
            exhibits.row(f"edges-{digits}", size, digits),
            "The picture shows three digits. List them from the top left to the bottom right, and "
            "nothing else.",
        ),
        right=digits,
        signs={digits[1]: "cropped"},
    )


def _several(exhibits: Exhibits, digits: str) -> Question:
    pictures = [exhibits.text(f"digit-{digit}", digit) for digit in digits]
    return Question(
        messages=_ask(
            *pictures,
            "Each picture shows one digit. List the digits in the order of the pictures, and "
            "nothing else.",
        ),
        right=digits,
        signs={
            digits[::-1]: "picture_order",
            digits[0]: "first_picture_only",
            digits[-1]: "last_picture_only",
        },
    )


def _current(exhibits: Exhibits, digits: str) -> Question:
    pictures = [exhibits.text(f"digit-{digit}", digit) for digit in digits]
    return Question(
        messages=_ask(
            *pictures,
            "The pictures show a screen, the oldest picture first. Which digit does the screen "
            "show now? Answer with the digit alone.",
        ),
        right=digits[-1],
    )


# Clips.


def _clips(exhibits: Exhibits, rng: Random) -> Iterator[Probe]:
    yield Probe(
        name="frames",
        claim="frames of a clip arrive, in their order",
        media=("video",),
        read=read_digits,
        chance=1e-4,
        questions=[_frames(exhibits, _digits(rng, _FRAMES)) for _ in range(4)],
    )
    yield Probe(
        name="frame-times",
        claim="the model knows at which second something is shown",
        media=("video",),
        read=read_last_number,
        judged="times",
        chance=0.4,
        questions=[
            _time(exhibits, _digits(rng, _FRAMES), number, held)
            for number, held in ((1, 2), (2, 3), (3, 3), (2, 5), (3, 5), (1, 5))
        ],
    )
    yield Probe(
        name="track",
        claim="a clip's own sound arrives",
        media=("video",),
        whole_clips=True,
        read=read_beeps,
        chance=1 / 5,
        questions=[_track(exhibits, times) for times in _SHORT],
    )


_FRAMES: Final = 4
"""Digits per clip, the default number of frames (OmniGUI, Table 6)."""


def _time(exhibits: Exhibits, digits: str, number: int, held: int) -> Question:
    shown = [digit for digit in digits for _ in range(held)]
    return Question(
        messages=_ask(
            exhibits.clip(f"times-{digits}", shown),
            f"The clip shows digits, one after the other. At which second from its start does it "
            f"show {digits[number]}? Answer with a whole number alone.",
        ),
        right=str((number + 0.5) * held),
        reach=held / 2 + 1,
    )


def _frames(exhibits: Exhibits, digits: str) -> Question:
    lost = ("".join(some) for size in range(1, _FRAMES) for some in combinations(digits, size))
    return Question(
        messages=_ask(
            exhibits.clip(f"frames-{digits}", digits),
            "The clip shows digits, one after the other. List them in their order, and nothing "
            "else.",
        ),
        right=digits,
        signs={
            **dict.fromkeys(lost, "frames_lost"),
            **{digits[:end]: "clip_cut" for end in range(2, _FRAMES)},
            digits[0]: "first_frame_only",
            digits[::-1]: "frame_order",
        },
    )


# Sounds.

_COUNT: Final = "How many beeps do you hear? Answer with a whole number alone."


def _sounds(exhibits: Exhibits) -> Iterator[Probe]:
    yield Probe(
        name="beeps",
        claim="short sound arrives",
        media=("audio",),
        read=read_beeps,
        chance=1 / 5,
        questions=[_count(exhibits, f"beeps-{len(times)}", times) for times in _SHORT],
    )
    yield Probe(
        name="long-sound",
        claim="sound arrives to its end, after 55 s",
        media=("audio",),
        read=read_beeps,
        judged="cut",
        chance=1 / 5,
        questions=[_count(exhibits, f"long-{number}", times) for number, times in enumerate(_LONG)],
    )
    yield Probe(
        name="pitch",
        claim="high and low sounds differ, and keep their order",
        media=("audio",),
        read=lambda text: _PITCH(text) or _denies(text),
        chance=1 / 8,
        questions=[_pitches(exhibits, pitches) for pitches in _PITCHES],
    )
    yield Probe(
        name="sides",
        claim="left and right of a sound differ",
        media=("audio",),
        read=choose_from(("left", "right", "both")),
        chance=1 / 2,
        questions=[_side(exhibits, side, number) for number in (1, 2, 3) for side in _OTHER],
    )
    try:
        words = spoken_digits()
    except PlatformError:  # without the extra `voice`
        return
    yield Probe(
        name="speech",
        claim="spoken digits arrive to their end, after 55 s",
        media=("audio",),
        read=lambda text: read_spoken(text) or _denies(text),
        chance=1e-3,
        questions=[_say_digits(exhibits, words, digits) for digits in _SPOKEN],
    )


_SPOKEN: Final = ("31421", "24132", "13243", "42314")
_SPOKEN_AT: Final = (2, 15, 29, 31, 55)
"""When digits are spoken, in seconds."""


def _say_digits(exhibits: Exhibits, words: Mapping[str, Samples], digits: str) -> Question:
    signal = place_sounds(_SPOKEN_AT, [words[digit] for digit in digits], seconds=57)
    return Question(
        messages=_ask(
            exhibits.sound(f"speech-{digits}", signal),
            "Somebody says digits. List them in their order, and nothing else.",
        ),
        right=digits,
        signs={
            **{digits[:end]: "sound_cut" for end in (1, 2, 4)},
            digits[:3]: "sound_cut_30",
            NOTHING: "sound_lost",
        },
    )


def _count(exhibits: Exhibits, name: str, times: Sequence[float], *before: MediaRef) -> Question:
    signal = beeps(times, [HIGH] * len(times), seconds=max(times) + 2)
    return Question(
        messages=_ask(*before, exhibits.sound(name, signal), _COUNT),
        right=str(len(times)),
        signs={"0": "sound_lost"},
        beeps=times,
    )


def _beside_clip(exhibits: Exhibits) -> Probe:
    still = exhibits.clip("still", "AAA")
    return Probe(
        name="sound-beside-clip",
        claim="sound arrives beside a clip",
        media=("audio", "video"),
        read=read_beeps,
        chance=1 / 5,
        questions=[_count(exhibits, f"beside-{len(times)}", times, still) for times in _SHORT],
    )


_SHORT: Final = [[1 + 0.8 * each for each in range(number)] for number in (2, 3, 4, 5)]
"""When beeps begin, in seconds."""
_LONG: Final = (
    (2, 15, 29, 31, 55),
    (2, 31, 41, 55),
    (2, 15, 31, 36, 41, 55),
    (5, 20, 35),
    (8, 12, 16, 20),
)
"""The same of long sound; a model that always hears one less contradicts any cut."""
_PITCH: Final = choose_from(("high", "low"))
_PITCHES: Final = tuple(
    text.split() for text in ("high low low", "low high low", "low low high", "high high low")
)
_OTHER: Final = {"left": "right", "right": "left"}


def _pitches(exhibits: Exhibits, pitches: Sequence[str]) -> Question:
    signal = beeps((1, 2, 3), [HIGH if each == "high" else LOW for each in pitches], seconds=4)
    return Question(
        messages=_ask(
            exhibits.sound(f"pitch-{'-'.join(pitches)}", signal),
            "You hear three beeps. For each, in order, answer high or low, and nothing else.",
        ),
        right=" ".join(pitches),
        signs={NOTHING: "sound_lost"},
    )


def _side(exhibits: Exhibits, side: str, number: int) -> Question:
    signal = beeps([0.5 + each for each in range(number)], [HIGH] * number, seconds=number + 1)
    return Question(
        messages=_ask(
            exhibits.stereo(f"side-{side}-{number}", signal, side),
            "Is the sound on the left, on the right or on both sides? Answer with one word.",
        ),
        right=side,
        signs={_OTHER[side]: "sides_swapped", "both": "mono"},
    )


def _track(exhibits: Exhibits, times: Sequence[float]) -> Question:
    signal = beeps(times, [HIGH] * len(times), seconds=7)
    return Question(
        messages=_ask(
            exhibits.clip(f"track-{len(times)}", "A" * 7, signal),
            f"Listen to the sound of the clip. {_COUNT}",
        ),
        right=str(len(times)),
        signs={"0": "track_lost"},
    )


# Texts.

_WORDS: Final = {"kiwi": "four", "plum": "five", "fig": "six", "pear": "seven"}
"""Words to answer with in place of sums."""
_UP_TO: Final = "Count from 1 to {most}, with a blank between numbers, and write nothing else."


def _texts(rng: Random) -> Iterator[Probe]:
    yield Probe(
        name="system",
        claim="the system message is obeyed",
        read=choose_from((*_WORDS, *_WORDS.values(), *"4567")),
        questions=[
            Question(
                messages=(
                    _say("system", f"Whatever the user asks, answer with the single word {word}."),
                    _say("user", f"What is 2 + {number}?"),
                ),
                right=word,
                signs=dict.fromkeys((str(2 + number), sum_), "system_ignored"),
            )
            for number, (word, sum_) in enumerate(_WORDS.items(), 2)
        ],
    )
    yield Probe(
        name="history",
        claim="earlier turns arrive with their roles",
        read=lambda text: read_digits(text) or _denies(text),
        chance=1 / 90,
        questions=[_history(*rng.sample(range(10, 99), 2)) for _ in range(4)],
    )
    yield Probe(
        name="prefix",
        claim="an answer goes on from a given beginning",
        controls=("prefix",),
        read=read_first_letter,
        questions=[
            Question(
                messages=(
                    _say("user", f"Say the first letters of the alphabet, up to {last}."),
                    _say("assistant", f"{', '.join(known)},"),
                ),
                right=chr(ord(known[-1]) + 1).lower(),
                signs={"a": "prefix_ignored"},
            )
            for known, last in (("AB", "G"), ("ABC", "H"), ("ABCD", "J"), ("ABCDE", "K"))
        ],
    )


def _history(mine: int, yours: int) -> Question:
    return Question(
        messages=(
            _say("user", f"My number is {mine}. Choose a number of your own."),
            _say("assistant", f"My number is {yours}."),
            _say("user", "Which number did you choose? Answer with the number alone."),
        ),
        right=str(yours),
        signs={str(mine): "roles_swapped", NOTHING: "history_dropped"},
    )


# Sampling.

_LAST: Final = (120, 150, 180)
"""The numbers to which long answers count."""
_PAIRS: Final = (
    ("<|box_start|>", "<|box_end|>"),
    ("<|begin_of_box|>", "<|end_of_box|>"),
    ("<box>", "</box>"),
)
"""Special tokens of Qwen2-VL, GLM-4.1V and InternVL; plain text to other models."""


def _repeat(word: str, number: str, start: str, end: str) -> Question:
    text, bare = f"{word}{start}{number}{end}", f"{word}{number}"
    return Question(
        messages=_ask(f"Repeat this text exactly, and write nothing else: {text}"),
        right=text,
        signs={bare: "special_tokens_lost"} if start else {},
    )


def _sampling() -> Iterator[Probe]:
    yield Probe(
        name="stop",
        claim="answers end at a text to stop at",
        read=read_count,
        settings={"stop": ("7",)},
        controls=("stop",),
        questions=[
            Question(
                messages=_ask(_UP_TO.format(most=most)),
                right="6",
                signs={str(most): "stop_ignored"},
            )
            for most in (9, 12, 15)
        ],
    )
    yield Probe(
        name="limit",
        claim="the limit of an answer's length is obeyed",
        read=_is_whole,
        settings={"max_new_tokens": 24},
        controls=("max_new_tokens",),
        questions=[
            Question(
                messages=_ask(_UP_TO.format(most=most)),
                right="cut",
                signs={"whole": "limit_ignored"},
            )
            for most in _LAST
        ],
    )
    yield Probe(
        name="long-answer",
        claim="long answers arrive to their end",
        read=_is_whole,
        settings={"max_new_tokens": 1024},
        questions=[
            Question(
                messages=_ask(_UP_TO.format(most=most)),
                right="whole",
                signs={"cut": "output_capped"},
            )
            for most in _LAST
        ],
    )
    yield Probe(
        name="special-tokens",
        claim="special tokens of answers are kept, as in places between <|box_start|> and "
        "<|box_end|>",
        read=read_line,
        judged="special",
        settings={"special_tokens": True},
        controls=("special_tokens",),
        questions=[
            _repeat(word, number, *pair)
            for word, number in (("kiwi", "17"), ("plum", "52"))
            for pair in (("", ""), *_PAIRS)
        ],
    )
    sentence = _ask("Invent a name for a ship and say in one sentence where it sails.")
    yield Probe(
        name="repeat",
        claim="the same question at temperature 0 has the same answer",
        judged="same",
        controls=("temperature",),
        questions=[Question(messages=sentence, signs={"": "not_deterministic"})] * 4,
    )
    yield Probe(
        name="seed",
        claim="the same seed gives the same answer",
        judged="same",
        settings={"temperature": 1.0, "seed": 7},
        controls=("temperature", "seed"),
        questions=[Question(messages=sentence, signs={"": "seed_ignored"})] * 3,
    )

"""The cues, the questions and the settings of episodes; equal settings make equal episodes."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal

from omnidata.actions import Screen
from omnidata.errors import UsageError

# Cues and questions, with the words of the instruction.
#
# A cue says one of four codes, 0 to 3, in one medium. A question has four possible answers. The
# instruction maps codes to answers, so that any cue can go with any question.

Medium = Literal["audio", "video", "screen"]
MEDIA: tuple[Medium, ...] = ("audio", "video", "screen")

CODES = 4
"""The codes of a cue, the answers of a question, and the episodes of a group of twins."""


@dataclass(frozen=True, slots=True)
class CueKind:
    """A way to say a code.

    Attributes:
        medium: of the cue.
        en, zh: the beginning of the rule; a place of the app goes where the braces are.
        codes: names of the codes, in English and Chinese.
        frames: pictures that a clip needs; 0 for other media.
        seconds: time that it needs.
    """

    medium: Medium
    en: str
    zh: str
    codes: tuple[tuple[str, str], ...]
    frames: int = 0
    seconds: float = 0.0


def _codes(text: str) -> tuple[tuple[str, str], ...]:
    """Read pairs of an English and a Chinese wording."""
    pairs = (part.split("|") for part in text.split("; "))
    return tuple((en, zh) for en, zh in pairs)


_NUMBERS = "one|一; two|二; three|三; four|四"
_TIMES = "one|一次; two|二次; three|三次; four|四次"
_COLOURS = _codes("red|红色; green|绿色; blue|蓝色; yellow|黄色")
_WAYS = _codes("up|向上; down|向下; left|向左; right|向右")
_DIGITS = _codes("1|1; 2|2; 3|3; 4|4")

CUES: Mapping[str, CueKind] = {
    "pitch": CueKind(
        "audio", "Listen to how high the tone is", "听提示音的高低",
        _codes("lowest|最低; second lowest|第二低; second highest|第二高; highest|最高"),
    ),
    "count": CueKind("audio", "Count the beeps", "数一数提示音的次数", _codes(_TIMES)),
    "glide": CueKind(
        "audio", "Listen to how the tone moves", "听提示音的音调变化",
        _codes(
            "it rises|上升; it falls|下降; "
            "it rises, then falls|先升后降; it falls, then rises|先降后升"
        ),
    ),
    "timbre": CueKind(
        "audio", "Listen to the kind of sound", "听声音的种类",
        _codes(
            "a steady tone|平稳的长音; a fast trill|急促的颤音; "
            "a bell that dies away|渐弱的铃声; a hiss|嘶嘶声"
        ),
    ),
    "speech": CueKind(
        "audio", "Listen to the number that is spoken", "听读出的数字",
        _codes(_NUMBERS), seconds=1.0,
    ),
    "lamp": CueKind(
        "video", "Watch which of four lamps lights up{}", "看{}四盏灯中哪一盏亮起",
        _codes("the first|第一; the second|第二; the third|第三; the last|最后"), frames=3,
    ),
    "colour": CueKind(
        "video", "Watch the colour of the badge that flashes{}", "看{}闪烁标记的颜色",
        _COLOURS, frames=4,
    ),
    "move": CueKind("video", "Watch where the ball moves{}", "看{}小球移动的方向", _WAYS, frames=6),
    "blink": CueKind(
        "video", "Count how often the badge blinks{}", "数一数{}标记闪烁的次数",
        _codes(_TIMES), frames=16,
    ),
    "number": CueKind(
        "video", "Watch the changing number{} to its last digit",
        "看{}变化的数字，以最后一个为准", _DIGITS, frames=12,
    ),
    "digit": CueKind("screen", "Look at the number{}", "看{}的数字", _DIGITS),
    "badge": CueKind(
        "screen", "Look at the colour of the badge{}", "看{}标记的颜色",
        _COLOURS,
    ),
    "arrow": CueKind(
        "screen", "Look where the arrow points{}", "看{}箭头的方向", _WAYS,
    ),
    "dots": CueKind(
        "screen", "Count the dots{}", "数一数{}的圆点",
        _codes(_TIMES.replace("次", "个")),
    ),
}  # fmt: skip
"""By name: tones, patterns and speech; things that are seen for a moment; signs that stay."""

QuestionKind = Literal["tap", "swipe", "touch", "input", "leave"]
QUESTIONS: tuple[QuestionKind, ...] = ("tap", "swipe", "touch", "input", "leave")
"""In order: the button, the direction, the kind of touch, the text, and the way to leave a page."""

FIXED: Mapping[QuestionKind, tuple[tuple[str, str], ...]] = {
    "swipe": _codes(
        "swipe up|向上滑动; swipe down|向下滑动; swipe left|向左滑动; swipe right|向右滑动"
    ),
    "touch": _codes(
        "tap the big button|点击大按钮; double-tap the big button|双击大按钮; "
        "long-press the big button|长按大按钮; wait|等待"
    ),
    "leave": _codes(
        "go back|返回; go to the home screen|回到主屏幕; "
        "report the task as complete|报告任务完成; report the task as impossible|报告任务无法完成"
    ),
}
"""The wording of answers that are always the same."""

Kind = Literal["calls", "music", "films", "shop", "home"]
"""What an app is for."""

PLACES: Mapping[Kind, tuple[str, str]] = {
    "calls": ("in the photo", "照片里"),
    "music": ("on the cover", "封面上"),
    "films": ("in the film", "影片里"),
    "shop": ("in the picture", "图片里"),
    "home": ("on the camera", "摄像头画面里"),
}
"""Where each kind of app shows signs and motions."""

# Pillow's built-in font has the letters of ASCII alone, so the words do without others.
_PEOPLE = "Ada Brook; Ben Adler; Cleo Marsh; Dario Vale; Esme Holt; Finn Okoro; Gita Rao; Hugo Lind"
_TRACKS = (
    "Copper Rain; Night Ferry; Slow Orbit; Paper Sun; Green Bay; Low Tides; Lanterns; Blue Hour"
)
_FILMS = "Far Dawn; Clockmaker; Two Shoes; Windmill; Glass Sea; Last Tram; Fox Hill; Red Harbour"
_THINGS = {
    "en": "Lamp; Clock; Camera; Fan; Bell; Headphones; Bag; Microphone; Door; Oven; Alarm",
    "de": "Lampe; Uhr; Kamera; Ventilator; Klingel; Headset; Tasche; Mikrofon; Tor; Ofen; Alarm",
    "es": "Farol; Reloj; Webcam; Ventilador; Timbre; Cascos; Bolsa; Micro; Puerta; Horno; Alarma",
    "fr": "Lampe; Horloge; Webcam; Ventilo; Sonnette; Casque; Sac; Micro; Porte; Four; Alarme",
    "it": "Lampada; Orologio; Webcam; Ventola; Campanello; Cuffie; Borsa; Micro; Porta; Forno; "
    "Allarme",
    "nl": "Lamp; Klok; Camera; Ventilator; Bel; Koptelefoon; Tas; Microfoon; Deur; Oven; Alarm",
    "pt": "Candeeiro; Despertador; Webcam; Ventoinha; Campainha; Fones; Mala; Micro; Porta; Forno; "
    "Alarme",
}
_MESSAGES = {
    "en": "On my way; See you soon; Thank you; Call me; Not today; Good night",
    "de": "Bin gleich da; Bis bald; Danke; Ruf mich an; Heute nicht; Gute Nacht",
    "es": "Voy en camino; Hasta luego; Gracias; Hoy no; Buenas noches; De acuerdo",
    "fr": "Je viens; Merci; Bonne nuit; Pas ce soir; Appelle-moi; Bonjour",
    "it": "Arrivo subito; A presto; Grazie; Chiamami; Oggi no; Buona notte",
    "nl": "Ik kom eraan; Tot straks; Dank je; Bel me; Niet vandaag; Slaap lekker",
    "pt": "Estou a caminho; Obrigado; Liga-me; Boa noite; Bom dia; Com certeza",
}
LANGUAGES = tuple(_THINGS)
"""The languages of screens."""


def labels(kind: Kind, language: str) -> tuple[str, ...]:
    """Return the labels of buttons, in one order in all languages."""
    if kind in ("shop", "home"):  # things to buy; things of a house
        words = tuple(_THINGS[language].split("; "))
        return words[:8] if kind == "shop" else words[:5] + words[8:]
    return tuple({"calls": _PEOPLE, "music": _TRACKS, "films": _FILMS}[kind].split("; "))


def texts(kind: Kind, language: str) -> tuple[str, ...]:
    """Return the texts to type: messages, or labels to search for."""
    return tuple(_MESSAGES[language].split("; ")) if kind == "calls" else labels(kind, language)


def of_medium(medium: Medium) -> tuple[str, ...]:
    """Return the names of the cues of a medium.

    Examples:
        >>> of_medium("audio")
        ('pitch', 'count', 'glide', 'timbre', 'speech')
    """
    return tuple(name for name, kind in CUES.items() if kind.medium == medium)


MOST_APPS = 96
MOST_STEPS = 8
SMALLEST, LARGEST = 32, 4096
MOST_FRAMES = 4000
_GOLDEN = 0.6180339887498949
_PLASTIC = (0.7548776662466927, 0.5698402909980532)  # 1 / p and 1 / p^2 with p^3 = p + 1


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings; the defaults are the sample dataset's sizes.

    Attributes:
        seed: of all random choices.
        audio_share, video_share: shares of the steps whose answer is in that medium alone; that of
            other steps is in the screenshot alone.
        size: width and height of the screenshots in pixels.
        clip_size: of the clips, even.
        fps: frames per second of the clips.
        seconds: length of the clips and sounds, at least 0.5.
        max_steps: of an episode, at least 1.
        apps: number of apps, each with its own look; 1 to `MOST_APPS`.
        cues: names of `CUES`, at least one for each medium with a share; None = all that fit into
            the clips and sounds, but speech.
        questions: names of `QUESTIONS`.
        shuffled: whether the instruction maps codes to answers; else code k stands for answer k.
        distractors: share of the steps with an irrelevant sound, likewise motion and sign.
    """

    seed: int = 0
    audio_share: float = 0.4
    video_share: float = 0.3
    size: Screen = (720, 1600)
    clip_size: Screen = (360, 800)
    fps: int = 15
    seconds: float = 2.0
    max_steps: int = 3
    apps: int = 24
    cues: tuple[str, ...] | None = None
    questions: tuple[QuestionKind, ...] = QUESTIONS
    shuffled: bool = True
    distractors: float = 0.5

    def __post_init__(self) -> None:
        for name in ("audio_share", "video_share", "seconds", "distractors"):
            # Written as 1.0 where 1 was given: equal settings have equal reports and names.
            object.__setattr__(self, name, float(getattr(self, name)))
        _check_within("--audio-share", self.audio_share, 0, 1)
        _check_within("--video-share", self.video_share, 0, 1)
        _check_within(
            "--audio-share + --video-share", self.audio_share + self.video_share, 0, 1 + 1e-9
        )
        _check_within("--distractors", self.distractors, 0, 1)
        _check_within("--seconds", self.seconds, 0.5, 60)
        _check_within("--fps", self.fps, 1, 60)
        _check_within("--seconds x --fps", self.seconds * self.fps, 2, MOST_FRAMES)
        _check_within("--max-steps", self.max_steps, 1, MOST_STEPS)
        _check_within("--apps", self.apps, 1, MOST_APPS)
        for side in (*self.size, *self.clip_size):
            _check_within("--size and --clip-size", side, SMALLEST, LARGEST)
        if any(side % 2 for side in self.clip_size):
            raise UsageError(
                "a side of the clips is odd",
                where=f"--clip-size {self.clip_size[0]}x{self.clip_size[1]}",
                expected="even numbers: H.264 keeps colour at half the size",
            )
        _check_names("--answers", self.questions, QUESTIONS)
        if self.cues is not None:
            _check_names("--cue", self.cues, CUES)
            self._check_lengths(self.cues)
        for medium in MEDIA:
            if self.share(medium) > 0 and not self.cues_of(medium):
                raise UsageError(
                    f"there is no cue for the {medium} steps",
                    where=f"--cue {' '.join(self.all_cues)}",
                    expected=f"one of {', '.join(of_medium(medium))} for which the clips and "
                    "sounds are long enough",
                    remedy="name one, make them longer, or set the share to 0",
                )

    def _check_lengths(self, names: Sequence[str]) -> None:
        for name in names:
            if not self.has_time_for(name):
                kind = CUES[name]
                least = f"{kind.frames} frames" if kind.frames else f"{kind.seconds:g} s"
                raise UsageError(
                    f"{name} needs {least}",
                    where=f"--seconds {self.seconds:g} --fps {self.fps}",
                    expected=f"{least} or more; there are {self.frames} frames in "
                    f"{self.seconds:g} s",
                    remedy=f"make the clips and sounds longer, or leave out --cue {name}",
                )

    @property
    def frames(self) -> int:
        """Frames of a clip."""
        return round(self.seconds * self.fps)

    @property
    def all_cues(self) -> tuple[str, ...]:
        """The names of the cues, in the order in which chance chooses among them."""
        if self.cues is not None:
            return self.cues
        return tuple(name for name in CUES if name != "speech" and self.has_time_for(name))

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits for the names of episodes: other settings have others."""
        return hashlib.sha256(json.dumps(self.as_dict()).encode()).hexdigest()[:8]

    def has_time_for(self, cue: str) -> bool:
        """Return whether the clips and sounds are long enough for a cue."""
        return CUES[cue].frames <= self.frames and CUES[cue].seconds <= self.seconds

    def share(self, medium: Medium) -> float:
        """Return the share of the steps that are decided in a medium."""
        shares = {"audio": self.audio_share, "video": self.video_share}
        return shares.get(medium, max(0.0, 1 - self.audio_share - self.video_share - 1e-12))

    def cues_of(self, medium: Medium) -> tuple[str, ...]:
        """Return the cues of a medium."""
        return tuple(name for name in self.all_cues if CUES[name].medium == medium)

    def length(self, group: int) -> int:
        """Return the number of steps in the episodes of a group; see `medium`."""
        place = (_start(self.seed, "length") + group * _PLASTIC[1]) % 1
        return 1 + int(place * self.max_steps)

    def medium(self, group: int, step: int) -> Medium:
        """Return the medium that decides a step.

        Together with `length` a sequence of low discrepancy (Kronecker's, by the powers of the
        plastic number), so that even a few hundred steps have the wanted shares.
        """
        place = (_start(self.seed, "medium") + group * _PLASTIC[0] + step * _GOLDEN) % 1
        if place < self.audio_share:
            return "audio"
        seen = place < self.audio_share + self.video_share or self.share("screen") == 0
        return "video" if seen else "screen"

    def as_dict(self) -> Mapping[str, Any]:
        """Return the settings as JSON values, with the cues by name."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in {**asdict(self), "cues": self.all_cues}.items()
        }


@lru_cache(maxsize=16)
def _start(seed: int, name: str) -> float:
    return random.Random(f"{seed}/{name}").random()


def _check_within(where: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise UsageError(
            f"{value:g} is out of range", where=where, expected=f"{low:g} to {round(high, 6):g}"
        )


def _check_names(
    where: str, names: Sequence[str], known: Mapping[str, Any] | Sequence[str]
) -> None:
    for name in names:
        if name not in known:
            raise UsageError(
                f'there is no "{name}"', where=where, expected=f"one of {', '.join(known)}"
            )
    if not names or len(set(names)) < len(names):
        raise UsageError(
            "no value is given, or one is given twice", where=where, expected="each at most once"
        )

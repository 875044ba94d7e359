"""The made-up apps: names, colours, type, arrangement and language, each by its number."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from omnidata.actions import Screen
from omnidata.data.sample.canvas import ICONS, Rect, Theme
from omnidata.loaders.language_check import Language

# What a step can say and what it can ask, with the words of the instruction.
#
# A cue says one of four things, the codes 0 to 3, in one medium. A question has four possible
# answers. The instruction tells which code stands for which answer, so that any cue can go with any
# question.

Medium = Literal["audio", "video", "screen"]
MEDIA: tuple[Medium, ...] = ("audio", "video", "screen")

CODES = 4
"""What a cue can say, the answers of a question, and the episodes of a group of twins."""


@dataclass(frozen=True, slots=True)
class CueKind:
    """A way to say a code.

    Attributes:
        medium: the only one in which it is said.
        en, zh: what to look or listen for.
        codes: what each code is called, in English and Chinese.
        frames: pictures that a clip needs for it to be seen; 0 for other media.
        seconds: that it takes, and a little more.
    """

    medium: Medium
    en: str
    zh: str
    codes: tuple[tuple[str, str], ...]
    frames: int = 0
    seconds: float = 0.0


_NUMBERS = (("one", "一"), ("two", "二"), ("three", "三"), ("four", "四"))
_COLOURS = (("red", "红色"), ("green", "绿色"), ("blue", "蓝色"), ("yellow", "黄色"))
_WAYS = (("up", "向上"), ("down", "向下"), ("left", "向左"), ("right", "向右"))

CUES: Mapping[str, CueKind] = {
    "pitch": CueKind(
        "audio",
        "Listen to how high the tone is",
        "听提示音的高低",
        (
            ("lowest", "最低"),
            ("second lowest", "第二低"),
            ("second highest", "第二高"),
            ("highest", "最高"),
        ),
    ),
    "count": CueKind(
        "audio",
        "Count the beeps",
        "数一数提示音的次数",
        tuple((en, f"{zh}次") for en, zh in _NUMBERS),
    ),
    "glide": CueKind(
        "audio",
        "Listen to how the tone moves",
        "听提示音的音调变化",
        (
            ("it rises", "上升"),
            ("it falls", "下降"),
            ("it rises, then falls", "先升后降"),
            ("it falls, then rises", "先降后升"),
        ),
    ),
    "timbre": CueKind(
        "audio",
        "Listen to the kind of sound",
        "听声音的种类",
        (
            ("a steady tone", "平稳的长音"),
            ("a fast trill", "急促的颤音"),
            ("a bell that dies away", "渐弱的铃声"),
            ("a hiss", "嘶嘶声"),
        ),
    ),
    "speech": CueKind(
        "audio",
        "Listen to the number that is spoken",
        "听读出的数字",
        _NUMBERS,
        seconds=1.0,
    ),
    "lamp": CueKind(
        "video",
        "Watch which of four lamps lights up",
        "看四盏灯中哪一盏亮起",
        (
            ("the first", "第一"),
            ("the second", "第二"),
            ("the third", "第三"),
            ("the last", "最后"),
        ),
        frames=3,
    ),
    "colour": CueKind(
        "video",
        "Watch the colour of the badge that flashes",
        "看闪烁标记的颜色",
        _COLOURS,
        frames=4,
    ),
    "move": CueKind(
        "video",
        "Watch where the ball moves",
        "看小球移动的方向",
        _WAYS,
        frames=6,
    ),
    "blink": CueKind(
        "video",
        "Count how often the badge blinks",
        "数一数标记闪烁的次数",
        tuple((en, f"{zh}次") for en, zh in _NUMBERS),
        frames=16,
    ),
    "number": CueKind(
        "video",
        "Watch the changing number; what counts is the last one",
        "看变化的数字，以最后一个为准",
        tuple((digit, digit) for digit in "1234"),
        frames=12,
    ),
    "digit": CueKind(
        "screen",
        "Look at the number on the screen",
        "看屏幕上的数字",
        tuple((digit, digit) for digit in "1234"),
    ),
    "badge": CueKind(
        "screen",
        "Look at the colour of the badge on the screen",
        "看屏幕上标记的颜色",
        _COLOURS,
    ),
    "arrow": CueKind(
        "screen",
        "Look where the arrow on the screen points",
        "看屏幕上箭头的方向",
        _WAYS,
    ),
    "dots": CueKind(
        "screen",
        "Count the dots on the screen",
        "数一数屏幕上的圆点",
        tuple((en, f"{zh}个") for en, zh in _NUMBERS),
    ),
}
"""By name: tones, patterns and speech; things that are seen for a moment; signs that stay."""

QuestionKind = Literal["tap", "swipe", "touch", "input", "leave"]
QUESTIONS: tuple[QuestionKind, ...] = ("tap", "swipe", "touch", "input", "leave")
"""Which button; which way; how to touch; what to type; how to go on without a touch."""

FIXED: Mapping[QuestionKind, tuple[tuple[str, str], ...]] = {
    "swipe": (
        ("swipe up", "向上滑动"),
        ("swipe down", "向下滑动"),
        ("swipe left", "向左滑动"),
        ("swipe right", "向右滑动"),
    ),
    "touch": (
        ("tap the big button", "点击大按钮"),
        ("double-tap the big button", "双击大按钮"),
        ("long-press the big button", "长按大按钮"),
        ("wait", "等待"),
    ),
    "leave": (
        ("go back", "返回"),
        ("go to the home screen", "回到主屏幕"),
        ("report the task as complete", "报告任务完成"),
        ("report the task as impossible", "报告任务无法完成"),
    ),
}
"""The wording of answers that are always the same."""

# Pillow's built-in font has the letters of ASCII alone, so the words do without others.
_LABELS = {
    "en": "Mail Music Photos Maps Clock Books Films Games Notes Radio Sport Travel",
    "de": "Post Musik Bilder Karten Uhr Wetter Filme Spiele Notizen Sport Reise",
    "es": "Correo Radio Fotos Mapas Reloj Libros Cine Juegos Notas Viajes Tienda",
    "fr": "Courrier Musique Photos Cartes Livres Films Jeux Notes Sport Voyages",
    "it": "Posta Musica Mappe Orologio Libri Giochi Note Sport Viaggi Negozio",
    "nl": "Muziek Kaarten Klok Boeken Films Spellen Notities Sport Reizen Winkel",
    "pt": "Correio Rede Fotos Mapas Livros Filmes Jogos Notas Viagens Loja",
}
WORDS: Mapping[str, tuple[str, ...]] = {
    language: tuple(labels.split()) for language, labels in _LABELS.items()
}
"""Labels of buttons and texts to type, by the language of the screen."""


def of_medium(medium: Medium) -> tuple[str, ...]:
    """The names of the cues of a medium.

    Examples:
        >>> of_medium("audio")
        ('pitch', 'count', 'glide', 'timbre', 'speech')
    """
    return tuple(name for name, kind in CUES.items() if kind.medium == medium)


_FIRST = (
    "Ara",
    "Belo",
    "Ciro",
    "Dova",
    "Elki",
    "Fino",
    "Gala",
    "Hilo",
    "Juno",
    "Kavi",
    "Luma",
    "Miro",
)
_LAST = ("ly", "tor", "nest", "wave", "dash", "mint", "hub", "pad")

Arrangement = Literal["grid", "column", "row", "stairs"]
_ARRANGEMENTS: tuple[Arrangement, ...] = ("grid", "column", "row", "stairs")
Style = Literal["filled", "tinted", "outlined"]
_STYLES: tuple[Style, ...] = ("filled", "tinted", "outlined")
Type = Literal["plain", "bold", "pixel"]
_TYPES: tuple[Type, ...] = ("plain", "bold", "pixel")


@dataclass(frozen=True, slots=True)
class Look:
    """How an app looks.

    Attributes:
        name: of the app.
        language: of its instructions.
        words: the language of its screens, a key of `WORDS`.
        theme: its colours.
        arrangement: how four buttons lie.
        style: of the buttons.
        type: of the texts.
        radius: of corners, in [0, 0.5] of the shorter side.
        stage_first: whether the stage, where signs and motions are, lies above the buttons.
        title, navigation: whether there is a bar at the top, at the bottom.
        icons: whether the buttons have one.
    """

    name: str
    language: Language
    words: str
    theme: Theme
    arrangement: Arrangement
    style: Style
    type: Type
    radius: float
    stage_first: bool
    title: bool
    navigation: bool
    icons: bool


@lru_cache(maxsize=128)
def look(seed: int, number: int) -> Look:
    """The app of a number from 0 on; it does not depend on how many there are."""
    rng = random.Random(f"{seed}/app/{number}")
    numbers = list(range(len(_FIRST) * len(_LAST)))
    random.Random(f"{seed}/names").shuffle(numbers)
    name = _FIRST[numbers[number] // len(_LAST)] + _LAST[numbers[number] % len(_LAST)]
    theme = (Theme.light, Theme.dark)[rng.random() < 0.4](name, hue=rng.random())
    language: Language = "zh" if rng.random() < 0.4 else "en"
    return Look(
        name=name,
        language=language,
        words="en" if rng.random() < 0.4 else rng.choice(tuple(WORDS)),
        theme=theme,
        arrangement=rng.choice(_ARRANGEMENTS),
        style=rng.choice(_STYLES),
        type=rng.choice(_TYPES),
        radius=rng.choice((0.0, 0.12, 0.25, 0.5)),
        stage_first=rng.random() < 0.7,
        title=rng.random() < 0.8,
        navigation=rng.random() < 0.6,
        icons=rng.random() < 0.7,
    )


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are on a screen of an app, in pixels.

    Attributes:
        title, navigation: the bars; None where there is none.
        progress: a line that tells how far the episode has come.
        stage: for signs and motions.
        panel: for what is touched.
        options: four buttons in the panel.
        unit: a hundredth of the width of a phone's screen, for the size of texts.
    """

    title: Rect | None
    navigation: Rect | None
    progress: Rect
    stage: Rect
    panel: Rect
    options: tuple[Rect, ...]
    unit: float


def places(look: Look, size: Screen) -> Places:
    """Lay out a screen of any size."""
    width, height = size
    top = round(height * 0.1) if look.title else round(height * 0.03)
    bottom = height - (round(height * 0.08) if look.navigation else round(height * 0.02))
    edge = round(width * 0.04)
    gap = max(1, round(min(2 * width, height) * 0.02))
    split = 0.42 if look.arrangement != "row" else 0.6
    high = bottom - top - 3 * gap
    stage_high = round(high * split)
    first = (edge, top + gap)
    if look.stage_first:
        stage_top, panel_top = first[1], first[1] + stage_high + gap
    else:
        panel_top, stage_top = first[1], first[1] + high - stage_high + gap
    panel = (edge, panel_top, width - edge, panel_top + high - stage_high)
    return Places(
        title=(0, 0, width, top) if look.title else None,
        navigation=(0, bottom, width, height) if look.navigation else None,
        progress=(edge, top, width - edge, top + max(1, gap // 2)),
        stage=(edge, stage_top, width - edge, stage_top + stage_high),
        panel=panel,
        options=_options(look.arrangement, panel, gap),
        unit=min(width, height * 0.6) / 100,
    )


def _options(arrangement: Arrangement, panel: Rect, gap: int) -> tuple[Rect, ...]:
    left, top, right, bottom = panel
    columns = {"grid": 2, "column": 1, "row": CODES, "stairs": 1}[arrangement]
    rows = CODES // columns
    wide = (right - left - gap * (columns - 1)) / columns
    high = (bottom - top - gap * (rows - 1)) / rows
    boxes = []
    for number in range(CODES):
        x = left + (number % columns) * (wide + gap)
        y = top + (number // columns) * (high + gap)
        if arrangement == "stairs":  # every second one keeps to the right
            half = wide * 0.6
            x, reach = (x, half) if number % 2 == 0 else (right - half, half)
        else:
            reach = wide
        boxes.append((round(x), round(y), round(x + reach), round(y + high)))
    return tuple(boxes)


ICON_NAMES = tuple(sorted(ICONS))
"""What buttons may show."""

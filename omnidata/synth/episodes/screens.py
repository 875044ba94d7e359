"""Screens of the made-up apps: how each app looks, where things are, and signs on the stage."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from PIL import Image, ImageDraw

from omnidata.actions import Screen
from omnidata.loaders.instructions import Language
from omnidata.synth.drawing import (
    BADGES,
    ICONS,
    KEYBOARD,
    WHITE,
    Colour,
    Rect,
    Span,
    Theme,
    ink_on,
    paint_disc,
    paint_mark,
    paint_text,
    shade,
)
from omnidata.synth.episodes.settings import CODES, WORDS, QuestionKind

ICON_NAMES = tuple(sorted(ICONS))
"""What buttons may show."""

_FINE_BELOW = 400 * 900  # pixels of a screen that is drawn at twice the size: Pillow has steps
_SMALLEST_ROUND = 12  # pixels: Pillow finds no room for corners and outlines in less

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
class Layout:
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


def layout(look: Look, size: Screen) -> Layout:
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
    return Layout(
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


@dataclass(frozen=True, slots=True)
class Page:
    """What a screen shows.

    Attributes:
        look: of the app.
        layout: where things are.
        question: what can be touched.
        labels: of the buttons, or the text in the field; as many as the question needs.
        icons: of the buttons and the panel, names of `ICONS`.
        heading: the text of the bar at the top.
        passed: share of the episode's steps up to this one; two steps in a row never look the same.
    """

    look: Look
    layout: Layout
    question: QuestionKind
    labels: Sequence[str]
    icons: Sequence[str]
    heading: str
    passed: float


class Drawing:
    """A page as pixels; signs are put on copies of it.

    Args:
        page: what to draw.
        size: of the screen in pixels.
    """

    def __init__(self, page: Page, size: Screen) -> None:
        self._page = page
        self._fine = 2 if size[0] * size[1] < _FINE_BELOW else 1
        theme = page.look.theme
        self._large = Image.new("RGB", (size[0] * self._fine, size[1] * self._fine), theme.ground)
        pen = _Pen(ImageDraw.Draw(self._large), page, self._fine)
        pen.bars()
        pen.card(page.layout.stage)
        pen.answers()
        self.plain = self._large.reduce(self._fine) if self._fine > 1 else self._large

    def with_sign(self, kind: str, code: int) -> Image.Image:
        """The screen with a sign on the stage; `kind` is a screen cue."""
        left, top, right, bottom = self._page.layout.stage
        fine = self._fine
        stage = self._large.crop((left * fine, top * fine, right * fine, bottom * fine))
        draw = ImageDraw.Draw(stage)
        _paint_sign(draw, kind, code, (0, 0, *stage.size), self._page.look)
        picture = self.plain.copy()
        picture.paste(stage.reduce(fine) if fine > 1 else stage, (left, top))
        return picture


class _Pen:
    """Draws the parts of a page, at `fine` times the size."""

    def __init__(self, draw: ImageDraw.ImageDraw, page: Page, fine: int) -> None:
        self._draw = draw
        self._page = page
        self._fine = fine

    def bars(self) -> None:
        page, theme = self._page, self._page.look.theme
        if page.layout.title is not None:
            box = self._scaled(page.layout.title)
            self._draw.rectangle(box, fill=theme.accent)
            middle = ((box[0] + box[2]) / 2, box[1] + (box[3] - box[1]) * 0.6)
            self._text(page.heading, middle, size=5.5, fill=ink_on(theme.accent))
        left, top, right, bottom = self._scaled(page.layout.progress)
        end = left + (right - left) * page.passed
        self._draw.rectangle((left, top, end, bottom), fill=theme.faint)
        if page.layout.navigation is not None:
            box = self._scaled(page.layout.navigation)
            self._draw.rectangle(box, fill=theme.card)
            for number, name in enumerate(("home", "search", "bell", "person")):
                x = box[0] + (box[2] - box[0]) * (number + 0.5) / 4
                paint_mark(
                    self._draw,
                    name,
                    centre=(x, (box[1] + box[3]) / 2),
                    size=(box[3] - box[1]) * 0.5,
                    fill=theme.accent if number == 0 else theme.faint,
                )

    def card(self, rect: Rect) -> None:
        box = self._scaled(rect)
        theme = self._page.look.theme
        self._rounded(box, fill=theme.card, outline=theme.soft, radius=0.08)

    def answers(self) -> None:
        page = self._page
        if page.question == "tap":
            rects: Sequence[Rect] = page.layout.options
        else:
            rects = (page.layout.panel,)
        for number, rect in enumerate(rects):
            if page.question == "input":
                self._field(rect)
            else:
                self._button(rect, number)

    def _button(self, rect: Rect, number: int) -> None:
        look = self._page.look
        theme = look.theme
        box = self._scaled(rect)
        fill, ink, outline = {
            "filled": (theme.accent, ink_on(theme.accent), None),
            "tinted": (shade(number * 0.23 + 0.05, 0.5, 0.5), WHITE, None),
            "outlined": (theme.card, theme.ink, theme.accent),
        }[look.style]
        self._rounded(box, fill=fill, outline=outline, radius=look.radius)
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        high = box[3] - box[1]
        size = min(high, box[2] - box[0]) * 0.4
        if look.icons or not self._page.labels:
            place = (x, y - (high * 0.14 if self._page.labels else 0))
            paint_mark(self._draw, self._page.icons[number], centre=place, size=size, fill=ink)
        if self._page.labels:
            self._text(
                self._page.labels[number],
                (x, y + (high * 0.3 if look.icons else 0)),
                size=4.6,
                fill=ink,
            )

    def _field(self, rect: Rect) -> None:
        """A text field with the focus, and keys below it."""
        theme = self._page.look.theme
        left, top, right, bottom = self._scaled(rect)
        high = (bottom - top) / 4
        field = (left, top, right, top + high * 0.9)
        self._rounded(field, fill=theme.card, outline=theme.accent, radius=self._page.look.radius)
        x = left + high * 0.4
        self._draw.line(
            (x, top + high * 0.2, x, top + high * 0.7), fill=theme.ink, width=self._fine
        )
        wide = (right - left) / 10
        for row, keys in enumerate(KEYBOARD, 1):
            start = left + (10 - len(keys)) * wide / 2
            for number, key in enumerate(keys):
                box = (
                    start + number * wide + wide * 0.06,
                    top + row * high + high * 0.06,
                    start + (number + 1) * wide - wide * 0.06,
                    top + (row + 1) * high - high * 0.06,
                )
                self._draw.rectangle(box, fill=theme.soft)
                middle = ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
                self._text(key, middle, size=4.2, fill=theme.ink)

    def _rounded(self, box: Span, *, fill: Colour, outline: Colour | None, radius: float) -> None:
        shorter = min(box[2] - box[0], box[3] - box[1])
        if shorter < _SMALLEST_ROUND:
            self._draw.rectangle(box, fill=fill)
            return
        self._draw.rounded_rectangle(
            box,
            shorter * radius,
            fill=fill,
            outline=outline,
            width=max(1, round(self._fine * self._page.layout.unit * 0.4)) if outline else 0,
        )

    def _text(self, text: str, at: tuple[float, float], *, size: float, fill: Colour) -> None:
        pixels = max(5, round(size * self._page.layout.unit)) * self._fine
        paint_text(self._draw, text, at, pixels=pixels, fill=fill, face=self._page.look.type)

    def _scaled(self, rect: Rect) -> Span:
        left, top, right, bottom = (value * self._fine for value in rect)
        return (left, top, right - 1, bottom - 1)


def _paint_sign(draw: ImageDraw.ImageDraw, kind: str, code: int, box: Span, look: Look) -> None:
    """A sign that says a code: a digit, a coloured badge, an arrow, dots.

    Args:
        draw: where.
        kind: a screen cue.
        code: 0 to 3.
        box: the stage.
        look: of the app.
    """
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    size = min(box[2] - box[0], box[3] - box[1]) * 0.7
    ink = look.theme.ink
    if kind == "digit":
        paint_text(draw, str(code + 1), (x, y), pixels=round(size), fill=ink, face=look.type)
    elif kind == "badge":
        paint_disc(draw, (x, y), size / 2, BADGES[code])
    elif kind == "arrow":
        _paint_arrow(draw, (x, y), size / 2, code, ink)
    else:
        for number in range(code + 1):
            place = x + (number - code / 2) * size * 0.4
            paint_disc(draw, (place, y), size * 0.15, look.theme.accent)


def _paint_arrow(
    draw: ImageDraw.ImageDraw, at: tuple[float, float], reach: float, code: int, fill: Colour
) -> None:
    """Up, down, left, right."""
    shape = ((0, -1), (0.8, 0), (0.3, 0), (0.3, 1), (-0.3, 1), (-0.3, 0), (-0.8, 0))
    turned = [((u, v), (u, -v), (v, u), (-v, u))[code % CODES] for u, v in shape]
    draw.polygon([(at[0] + u * reach, at[1] + v * reach) for u, v in turned], fill=fill)

"""The look of each invented app, the layout of its screens, and a pen for their parts."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from omnidata.actions import Screen
from omnidata.loaders.instructions import Language
from omnidata.synth.drawing import (
    ICONS,
    KEYBOARD,
    WHITE,
    Canvas,
    Colour,
    Face,
    Rect,
    Span,
    Spot,
    Theme,
    font,
    ink_on,
    shade,
)
from omnidata.synth.episodes.settings import CODES, LANGUAGES, Kind, QuestionKind

ICON_NAMES = tuple(sorted(ICONS))
"""The icons of buttons."""

_FINE_BELOW = 2048 * 2048  # pixels of a screen that is drawn at twice the size: Pillow has steps
_RICH = 3.0  # pixels of a unit; smaller screens show only the touched parts and the deciding sign

_FIRST = (
    "Ara", "Belo", "Ciro", "Dova", "Elki", "Fino", "Gala", "Hilo", "Juno", "Kavi", "Luma", "Miro",
)  # fmt: skip
_LAST = ["ly", "tor", "nest", "wave", "dash", "mint", "hub", "pad"]

Arrangement = Literal["grid", "column", "row", "stairs"]
_ARRANGEMENTS: tuple[Arrangement, ...] = ("grid", "column", "row", "stairs")
Style = Literal["filled", "tinted", "outlined"]
_STYLES: tuple[Style, ...] = ("filled", "tinted", "outlined")
_FACES: tuple[Face, ...] = ("plain", "bold", "pixel")

_KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Look:
    """How an app looks.

    Attributes:
        name: of the app.
        kind: decides the pages.
        language: of its instructions.
        words: the language of its screens, one of `LANGUAGES`.
        theme: colours.
        arrangement, style: of the four buttons.
        face: of the texts.
        radius: of corners, in [0, 0.5] of the shorter side.
        stage_first: whether the stage, with signs and motions, is above the buttons.
        title, navigation: whether there is a bar at the top, at the bottom.
        icons: whether the buttons have icons.
    """

    name: str
    kind: Kind
    language: Language
    words: str
    theme: Theme
    arrangement: Arrangement
    style: Style
    face: Face
    radius: float
    stage_first: bool
    title: bool
    navigation: bool
    icons: bool


@lru_cache(maxsize=128)
def look(seed: int, number: int) -> Look:
    """Return the app of a number from 0 on; it does not depend on how many there are."""
    rng = random.Random(f"{seed}/app/{number}")
    numbers = list(range(len(_FIRST) * len(_LAST)))
    random.Random(f"{seed}/names").shuffle(numbers)
    name = _FIRST[numbers[number] // len(_LAST)] + _LAST[numbers[number] % len(_LAST)]
    theme = (Theme.light, Theme.dark)[rng.random() < 0.4](name, hue=rng.random())
    language: Language = "zh" if rng.random() < 0.4 else "en"
    return Look(
        name=name,
        kind=_KINDS[number % len(_KINDS)],
        language=language,
        words="en" if rng.random() < 0.4 else rng.choice(LANGUAGES),
        theme=theme,
        arrangement=rng.choice(_ARRANGEMENTS),
        style=rng.choice(_STYLES),
        face=rng.choice(_FACES),
        radius=rng.choice((0.0, 0.12, 0.25, 0.5)),
        stage_first=rng.random() < 0.7,
        title=rng.random() < 0.8,
        navigation=rng.random() < 0.6,
        icons=rng.random() < 0.7,
    )


@lru_cache(maxsize=16)
def demo_looks(seed: int) -> tuple[Look, ...]:
    """Return the five apps of the demo, whose colours depend on the seed."""
    rng = random.Random(f"{seed}/demo")

    def app(
        name: str, kind: Kind, language: Language, hue: float, arrangement: Arrangement
    ) -> Look:
        bright = kind not in ("music", "films")
        theme = (Theme.light if bright else Theme.dark)(name, hue=hue + rng.uniform(-0.03, 0.03))
        drawn: tuple[Style, Face, float] = ("outlined", "plain", 0.2)
        return Look(name, kind, language, "en", theme, arrangement, *drawn, True, True, True, True)

    return (
        app("Chirp", "calls", "en", 0.58, "column"),
        app("Sonora", "music", "en", 0.77, "column"),
        app("Reelio", "films", "zh", 0.97, "column"),
        app("Parcelo", "shop", "zh", 0.07, "grid"),
        app("Homely", "home", "en", 0.45, "grid"),
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of an app's screen, in pixels.

    Attributes:
        title, navigation: the bars, if any.
        progress: a line for the progress of the episode.
        stage: for signs and motions.
        head: for a heading; None on small screens.
        page: all below the heading.
        panel: the part of the page that is touched.
        options: the four buttons; on large screens followed by some that no answer touches.
        unit: a hundredth of the width of a phone's screen, for the size of texts.
    """

    title: Rect | None
    navigation: Rect | None
    progress: Rect
    stage: Rect
    head: Rect | None
    page: Rect
    panel: Rect
    options: tuple[Rect, ...]
    unit: float

    @property
    def rich(self) -> bool:
        """Whether there is space for more than the touched parts and the deciding sign."""
        return self.unit >= _RICH


_SHARES: Mapping[QuestionKind, float] = {
    "tap": 0.28, "swipe": 0.36, "touch": 0.36, "input": 0.3, "leave": 0.3,
}  # fmt: skip
"""Of the height of a large screen, that of the stage."""


def layout(look: Look, size: Screen, question: QuestionKind = "tap") -> Layout:
    """Lay out a screen of any size."""
    width, height = size
    unit = min(width, height * 0.6) / 100
    rich = unit >= _RICH
    top = round(height * 0.1) if look.title else round(height * 0.03)
    bottom = height - (round(height * 0.08) if look.navigation else round(height * 0.02))
    edge = round(width * 0.04)
    gap = max(1, round(min(2 * width, height) * (0.015 if rich else 0.02)))
    high = bottom - top - 3 * gap
    head = round(min(14 * unit, high * 0.1)) if rich and question != "input" else 0
    narrow = look.arrangement in ("row", "stairs") and question == "tap"
    share = 0.42 if look.arrangement != "row" else 0.6
    stage = round(high * ((0.4 if narrow else _SHARES[question]) if rich else share))
    stage_top, page_top = top + gap, top + 2 * gap + stage + head
    if not look.stage_first:
        stage_top, page_top = bottom - gap - stage, top + gap + head
    page = (edge, page_top, width - edge, page_top + high - stage - head)
    wide = rich and look.kind == "films" and look.stage_first  # as wide as the screen
    left, upper = (0, top) if wide else (edge, stage_top)
    return Layout(
        title=(0, 0, width, top) if look.title else None,
        navigation=(0, bottom, width, height) if look.navigation else None,
        progress=(edge, top, width - edge, top + max(1, gap // 2)),
        stage=(left, upper, width - left, stage_top + stage),
        head=(edge, page_top - head, width - edge, page_top) if head else None,
        page=page,
        panel=_panel(page, question) if rich else page,
        options=_options(look.arrangement, page, gap if not rich else max(1, gap * 2 // 3), rich),
        unit=unit,
    )


def _panel(page: Rect, question: QuestionKind) -> Rect:
    """Return the part of a large page that is swiped over, or the big button."""
    left, top, right, bottom = page
    if question == "swipe":
        return (left, top, right, top + round((bottom - top) * 0.56))
    if question == "touch":
        x, reach = (left + right) // 2, round(min((right - left) * 0.19, (bottom - top) * 0.22))
        return (x - reach, top + reach // 6, x + reach, top + reach // 6 + 2 * reach)
    return page


def _options(arrangement: Arrangement, page: Rect, gap: int, more: bool) -> tuple[Rect, ...]:
    """Lay out four buttons; `more` leaves space for another row of tiles or entries."""
    left, top, right, bottom = page
    columns = {"grid": 2, "column": 1, "row": CODES, "stairs": 1}[arrangement]
    rows = CODES // columns + (more and arrangement in ("grid", "column"))
    wide = (right - left - gap * (columns - 1)) / columns
    high = (bottom - top - gap * (rows - 1)) / rows
    boxes = []
    for number in range(rows * columns):
        x = left + (number % columns) * (wide + gap)
        y = top + (number // columns) * (high + gap)
        if arrangement == "stairs":  # every second one keeps to the right
            half = wide * 0.7
            x, reach = (x, half) if number % 2 == 0 else (right - half, half)
        else:
            reach = wide
        boxes.append((round(x), round(y), round(x + reach), round(y + high)))
    return tuple(boxes)


class Pen:
    """Draws the parts of a page."""

    def __init__(self, look: Look, layout: Layout, size: Screen) -> None:
        self.look = look
        self._layout = layout
        self.unit = layout.unit
        self.rich = layout.rich
        fine = 2 if size[0] * size[1] < _FINE_BELOW else 1
        self._width, self._height = size
        self.canvas = Canvas.blank(size, look.theme.ground, fine=fine)

    def bars(self, passed: float, title: str, icons: Sequence[str], chosen: int) -> None:
        """Draw all bars; `icons` are of the navigation, and one for the right end of the title."""
        theme, layout, unit = self.look.theme, self._layout, self.unit
        ink = theme.ink
        if layout.title is not None:
            left, top, right, bottom = layout.title
            ink = ink_on(theme.accent)
            self.canvas.rect(layout.title, theme.accent)
            y = top + (bottom - top) * (0.66 if self.rich else 0.6)
            if self.rich:
                start = 5 * unit
                if chosen:
                    self.canvas.icon("back", (6.7 * unit, y), size=6.7 * unit, fill=ink)
                    start = 13.3 * unit
                self.label(title, (start, y), 5.6, ink, anchor="lm")
                self.canvas.icon(icons[-1], (right - 10 * unit, y), size=6.4 * unit, fill=ink)
            else:
                self.label(self.look.name, ((left + right) / 2, y), 5.5, ink)
        if self.rich:
            self.status(ink)
        left, top, right, bottom = layout.progress
        if self.rich:  # on the lower edge of the title
            top, bottom = top - round(0.8 * unit), top
        self.canvas.rect((left, top, left + (right - left) * passed, bottom), theme.faint)
        if layout.navigation is not None:
            self.navigation(layout.navigation, icons, chosen)

    def status(self, ink: Colour) -> None:
        """Draw the time and the battery."""
        high, unit, right = self._height * 0.019, self.unit, self._width
        self.label("9:41", (5 * unit, high), 3.3, ink, anchor="lm")
        for k in range(4):
            x = right - unit * (22 - 1.4 * k)
            self.canvas.rect((x, high + unit * (0.9 - 0.7 * k), x + unit, high + 1.6 * unit), ink)
        battery = (right - 13 * unit, high - 1.5 * unit, right - 6.6 * unit, high + 1.6 * unit)
        self.canvas.rect(battery, None, outline=ink, width=0.3 * unit)
        inner = (battery[0] + unit * 0.6, battery[1] + unit * 0.6)
        self.canvas.rect((*inner, battery[2] - 2 * unit, battery[3] - unit * 0.6), ink)

    def navigation(self, bar: Rect, icons: Sequence[str], chosen: int) -> None:
        """Draw the bar at the bottom."""
        theme, (left, top, right, bottom) = self.look.theme, bar
        self.canvas.rect(bar, theme.card)
        for number, name in enumerate(icons[:4]):
            at = (left + (right - left) * (number + 0.5) / 4, top + (bottom - top) * 0.45)
            fill = theme.accent if number == chosen else theme.faint
            self.canvas.icon(name, at, size=(bottom - top) * 0.4, fill=fill)
        if self.rich:
            x, y = (left + right) / 2, bottom - 2.2 * self.unit
            strip = (x - 14 * self.unit, y, x + 14 * self.unit, y + 1.1 * self.unit)
            self.canvas.rect(strip, theme.faint)

    def card(self, rect: Span) -> None:
        """Draw an empty card."""
        theme = self.look.theme
        self.round_box(rect, theme.card, outline=theme.soft, radius=0.08)

    def colours(self, number: int) -> tuple[Colour, Colour, Colour | None]:
        """Return the fill, the text and the outline of a button."""
        theme = self.look.theme
        if self.look.style == "filled":
            return theme.accent, ink_on(theme.accent), None
        if self.look.style == "tinted":
            return shade(number * 0.23 + 0.05, 0.5, 0.5), WHITE, None
        return theme.card, theme.ink, theme.soft if self.rich else theme.accent

    def option(self, rect: Rect, number: int, label: str, icon: str) -> None:
        """Draw a button of a small screen."""
        look = self.look
        fill, ink, outline = self.colours(number)
        left, top, right, bottom = rect
        x, y, high, wide = (left + right) / 2, (top + bottom) / 2, bottom - top, right - left
        self.round_box(rect, fill, outline=outline, radius=look.radius)
        if look.icons:
            size = min(high, wide) * 0.4
            self.canvas.icon(icon, (x, y - high * 0.14), size=size, fill=ink)
        at = (x, y + (high * 0.3 if look.icons else 0))
        self.label(label, at, 4.6, ink, wide=wide - 2)

    def panel(self, rect: Rect, icon: str) -> None:
        """Draw what is swiped over, touched, or left on a small screen."""
        left, top, right, bottom = rect
        fill, ink, outline = self.colours(0)
        self.round_box(rect, fill, outline=outline, radius=self.look.radius)
        size = min(bottom - top, right - left) * 0.4
        self.canvas.icon(icon, ((left + right) / 2, (top + bottom) / 2), size=size, fill=ink)

    def field(self, rect: Rect, hint: str, *, low: bool) -> Rect:
        """Draw a field with a hint, and a keyboard; return the space between or above.

        A `low` field is right above the keyboard, another one at the top.
        """
        theme, canvas = self.look.theme, self.canvas
        left, upper, right, bottom = rect
        high, wide = (bottom - upper) / 5, (right - left) / 10
        if self.rich:
            high = min(high, 13 * self.unit)
        keys = bottom - 4 * high
        top = keys - high if low else upper
        field = (left, top, right, top + high * 0.86)
        self.round_box(field, theme.card, outline=theme.accent, radius=0.5)
        x = left + high * 0.5
        if self.rich:
            icon = "plus" if low else "search"
            canvas.icon(icon, (x, top + high * 0.43), size=high * 0.4, fill=theme.faint)
            x += high * 0.5
            at = (x + 1.4 * self.unit, top + high * 0.43)
            self.label(hint, at, 4.2, theme.faint, anchor="lm", thin=True)
        canvas.line(((x, top + high * 0.2), (x, top + high * 0.66)), theme.ink)
        for row, letters in enumerate(KEYBOARD):
            start = left + (10 - len(letters)) * wide / 2
            for number, key in enumerate(letters):
                self._key((start + number * wide, keys + row * high, wide, high), key)
        self._key((left + 2 * wide, keys + 3 * high, 6 * wide, high), "")
        enter = (left + 8 * wide, keys + 3 * high, 2 * wide, high)
        self._key(enter, "", theme.accent)
        at = (enter[0] + wide, enter[1] + high / 2)
        canvas.icon("check", at, size=high * 0.5, fill=ink_on(theme.accent))
        ends = (upper, top) if low else (top + high, keys)
        return (left, round(ends[0]), right, round(ends[1]))

    def _key(self, place: Span, text: str, fill: Colour | None = None) -> None:
        """Draw a key; `place` is its left and upper edge, width and height."""
        left, top, wide, high = place
        theme, gap = self.look.theme, min(wide, high) * 0.06
        box = (left + gap, top + gap, left + wide - gap, top + high - gap)
        self.round_box(box, fill or theme.soft, radius=0.16)
        if text:
            self.label(text, (left + wide / 2, top + high / 2), 4.2, theme.ink, thin=True)

    def round_box(
        self, box: Span, fill: Colour, *, outline: Colour | None = None, radius: float
    ) -> None:
        """Draw a rectangle; `radius` is a share of its shorter side."""
        shorter = min(box[2] - box[0], box[3] - box[1])
        corner = min(shorter * radius, 6 * self.unit)
        self.canvas.rect(box, fill, radius=corner, outline=outline, width=0.4 * self.unit)

    def label(
        self,
        text: str,
        at: Spot,
        size: float,
        fill: Colour,
        *,
        canvas: Canvas | None = None,
        anchor: Literal["lm", "mm", "rm"] = "mm",
        thin: bool = False,
        wide: float = 0,
    ) -> None:
        """Draw a text; `size` is in units; it shrinks where it is too wide."""
        face = self.look.face
        if self.rich and face == "plain" and not thin:
            face = "bold"
        pixels = max(5, round(size * self.unit))
        if wide and (length := font(pixels).getlength(text)) > wide:
            face, pixels = "plain", max(5, int(pixels * wide / length))
        (canvas or self.canvas).text(text, at, pixels=pixels, fill=fill, face=face, anchor=anchor)

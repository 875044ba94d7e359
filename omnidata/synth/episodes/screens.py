"""Screens of the invented apps: how each app looks, where things are, and signs on the stage."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal

from PIL import Image

from omnidata.actions import Screen
from omnidata.loaders.instructions import Language
from omnidata.synth.drawing import (
    BADGES,
    GREEN,
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
    ink_on,
    mix,
    shade,
)
from omnidata.synth.episodes.settings import CODES, WORDS, QuestionKind

ICON_NAMES = tuple(sorted(ICONS))
"""What buttons may show."""

_FINE_BELOW = 2048 * 2048  # pixels of a screen that is drawn at twice the size: Pillow has steps
_RICH = 3.0  # pixels of a unit; smaller screens show no more than what is touched and what decides
_DARK: Colour = (16, 16, 22)

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
_FACES: tuple[Face, ...] = ("plain", "bold", "pixel")

Kind = Literal["calls", "music", "films", "shop", "home"]
_ART: dict[Kind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "calls": (("person",), ("Ada Brook", "Ben Adler", "Cleo Marsh", "Dario Vale")),
    "music": (
        ("note", "headphones"),
        ("Paper Lanterns", "Night Ferry", "Copper Rain", "Slow Orbit"),
    ),
    "films": (("play",), ("Harbour at Dawn", "Two Left Shoes", "The Clockmaker", "Windmill Road")),
    "shop": (
        ("bag", "lamp", "headphones", "clock"),
        ("Travel bag", "Desk lamp", "Headphones", "Wall clock"),
    ),
    "home": (
        ("camera", "oven", "fan", "door"),
        ("Hall camera", "Kitchen", "Fan", "Front door"),
    ),
}
"""By kind of app: the icons of its pictures, and their captions."""
_KINDS = tuple(_ART)
_TIMES = ("8:02", "9:30", "12:20", "18:05")


@dataclass(frozen=True, slots=True)
class Look:
    """How an app looks.

    Attributes:
        name: of the app.
        kind: decides the pictures.
        language: of its instructions.
        words: the language of its screens, a key of `WORDS`.
        theme: its colours.
        arrangement: how four buttons lie.
        style: of the buttons.
        face: of the texts.
        radius: of corners, in [0, 0.5] of the shorter side.
        stage_first: whether the stage, where signs and motions are, lies above the buttons.
        title, navigation: whether there is a bar at the top, at the bottom.
        icons: whether the buttons have one.
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
    """The app of a number from 0 on; it does not depend on how many there are."""
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
        words="en" if rng.random() < 0.4 else rng.choice(tuple(WORDS)),
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
        name: str,
        kind: Kind,
        language: Language,
        hue: float,
        arrangement: Arrangement,
        style: Style,
    ) -> Look:
        bright = kind not in ("music", "films")
        theme = (Theme.light if bright else Theme.dark)(name, hue=hue + rng.uniform(-0.03, 0.03))
        bars = {"title": True, "navigation": True, "icons": True, "stage_first": True}
        return Look(name, kind, language, "en", theme, arrangement, style, "plain", 0.2, **bars)

    return (
        app("Chirp", "calls", "en", 0.58, "stairs", "filled"),
        app("Sonora", "music", "en", 0.77, "row", "outlined"),
        app("Reelio", "films", "zh", 0.97, "column", "outlined"),
        app("Parcelo", "shop", "zh", 0.07, "grid", "outlined"),
        app("Homely", "home", "en", 0.45, "grid", "outlined"),
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


class Drawing:
    """A screen of an app as pixels.

    Args:
        look: of the app.
        layout: where things are.
        size: of the screen in pixels.
        question: what can be touched.
        labels: of the buttons; as many as the question needs.
        icons: of the buttons and the panel, names of `ICONS`.
        passed: share of the episode's steps up to this one; two steps in a row never look the same.

    Attributes:
        signs: the place of signs and motions, in pixels.
    """

    def __init__(
        self,
        look: Look,
        layout: Layout,
        size: Screen,
        *,
        question: QuestionKind,
        labels: Sequence[str],
        icons: Sequence[str],
        passed: float,
    ) -> None:
        self._look = look
        self._layout = layout
        self._picture = ICON_NAMES.index(icons[0])
        self._pen = pen = _Pen(look, layout, size)
        pen.bars(passed)
        pen.card(layout.stage)
        if question == "tap":
            for number, rect in enumerate(layout.options):
                pen.option(rect, number, labels[number], icons[number])
        elif question == "input":
            pen.field(layout.panel)
        else:
            pen.panel(layout.panel, question, icons[0])
        self.signs = _inner(layout)
        self._bare = pen.canvas.finish()

    @cached_property
    def plain(self) -> Image.Image:
        """The screen with a picture on its stage, where it is large enough for one."""
        return self._with_stage(self._paint_picture) if self._pen.rich else self._bare

    @cached_property
    def blank(self) -> Image.Image:
        """The screen with an empty place for signs and motions."""
        return self._with_stage(self._paint_plate) if self._pen.rich else self._bare

    def with_sign(self, kind: str, code: int) -> Image.Image:
        """Return the screen with a sign on the stage; `kind` is a screen cue."""

        def paint(canvas: Canvas) -> None:
            self._paint_plate(canvas)
            _paint_sign(canvas, kind, code, self.signs, self._look)

        return self._with_stage(paint)

    def _with_stage(self, paint: Callable[[Canvas], None]) -> Image.Image:
        place = self._layout.stage
        stage = self._pen.canvas.part(place)
        paint(stage)
        picture = self._bare.copy()
        picture.paste(stage.finish(), place[:2])
        return picture

    def _paint_plate(self, canvas: Canvas) -> None:
        if self._pen.rich:
            self._paint_frame(canvas)
            theme, unit = self._look.theme, self._layout.unit
            canvas.rect(self.signs, theme.card, radius=2.4 * unit)

    def _paint_frame(self, canvas: Canvas) -> tuple[Rect, int]:
        """Draw the frame of a picture and a caption; return the frame and the picture's number."""
        look, unit = self._look, self._layout.unit
        left, top, right, bottom = self._layout.stage
        theme, edge = look.theme, round(2.2 * unit)
        frame = (left + edge, top + edge, right - edge, round(bottom - 12 * unit))
        light = mix(theme.accent, WHITE, 0.72)
        canvas.gradient(frame, light, mix(theme.accent, WHITE, 0.15), radius=3 * unit)
        captions = _ART[look.kind][1]
        number = self._picture % len(captions)
        y = (frame[3] + bottom) / 2
        at = (frame[0] + unit, y)
        self._pen.label(captions[number], at, 5, theme.ink, canvas=canvas, anchor="lm")
        for k, name in enumerate(("share", "heart")):
            place = (frame[2] - unit * (3.5 + 8 * k), y)
            canvas.icon(name, place, size=5.5 * unit, fill=theme.accent)
        return frame, number

    def _paint_picture(self, canvas: Canvas) -> None:
        kind, accent = self._look.kind, self._look.theme.accent
        (left, top, right, bottom), number = self._paint_frame(canvas)
        x, y, high = (left + right) / 2, (top + bottom) / 2, bottom - top
        size, dark = min(high, right - left) * 0.62, mix(accent, _DARK, 0.35)
        if kind == "films":
            sun = (left + (right - left) * 0.77, y - size * 0.4)
            canvas.disc(sun, size * 0.18, mix(accent, WHITE, 0.9))
            wide = (right - left) / 6
            for k, share in enumerate((0.3, 0.5, 0.22, 0.4, 0.62, 0.34)):
                house = (left + wide * k, bottom - high * share, left + wide * (k + 1), bottom)
                canvas.rect(house, mix(accent, _DARK, 0.55 + 0.08 * (k * (number + 1) % 4)))
            canvas.disc((x, y), size * 0.3, _DARK)
            size, dark = size * 0.75, WHITE
        elif kind != "shop":
            for share in (0.62, 0.5, 0.38):
                canvas.disc((x, y), size * share, mix(accent, WHITE, 1.1 - share * 1.1))
        names = _ART[kind][0]
        scale = 1.0 if kind == "shop" else 0.42
        canvas.icon(names[number % len(names)], (x, y), size=size * scale, fill=dark)


def _inner(layout: Layout) -> Span:
    """Return the place of signs and motions on the stage."""
    left, top, right, bottom = layout.stage
    if layout.unit < _RICH:
        return layout.stage
    edge = 4.6 * layout.unit
    return (left + edge, top + edge, right - edge, bottom - 14.4 * layout.unit)


class _Pen:
    """Draws the parts of a page."""

    def __init__(self, look: Look, layout: Layout, size: Screen) -> None:
        self._look = look
        self._layout = layout
        self._unit = layout.unit
        self.rich = layout.unit >= _RICH
        fine = 2 if size[0] * size[1] < _FINE_BELOW else 1
        self._width, self._height = size
        self.canvas = Canvas(size, look.theme.ground, fine=fine)

    def bars(self, passed: float) -> None:
        theme, layout, unit = self._look.theme, self._layout, self._unit
        ink = theme.ink
        if layout.title is not None:
            left, top, right, bottom = layout.title
            ink = ink_on(theme.accent)
            self.canvas.rect(layout.title, theme.accent)
            y = top + (bottom - top) * (0.66 if self.rich else 0.6)
            if self.rich:
                self.canvas.icon("back", (6.7 * unit, y), size=6.7 * unit, fill=ink)
                self.label(self._look.name, (13.3 * unit, y), 5.6, ink, anchor="lm")
            else:
                self.label(self._look.name, ((left + right) / 2, y), 5.5, ink)
        if self.rich:
            self.status(ink)
        left, top, right, bottom = layout.progress
        self.canvas.rect((left, top, left + (right - left) * passed, bottom), theme.faint)
        if layout.navigation is not None:
            self.navigation(layout.navigation)

    def status(self, ink: Colour) -> None:
        high, unit, right = self._height * 0.019, self._unit, self._width
        self.label("9:41", (5 * unit, high), 3.3, ink, anchor="lm")
        for k in range(4):
            x = right - unit * (22 - 1.4 * k)
            self.canvas.rect((x, high + unit * (0.9 - 0.7 * k), x + unit, high + 1.6 * unit), ink)
        battery = (right - 13 * unit, high - 1.5 * unit, right - 6.6 * unit, high + 1.6 * unit)
        self.canvas.rect(battery, None, outline=ink, width=0.3 * unit)
        inner = (battery[0] + unit * 0.6, battery[1] + unit * 0.6)
        self.canvas.rect((*inner, battery[2] - 2 * unit, battery[3] - unit * 0.6), ink)

    def navigation(self, bar: Rect) -> None:
        theme, (left, top, right, bottom) = self._look.theme, bar
        self.canvas.rect(bar, theme.card)
        for number, name in enumerate(("home", "search", "bell", "person")):
            at = (left + (right - left) * (number + 0.5) / 4, top + (bottom - top) * 0.45)
            fill = theme.accent if number == 0 else theme.faint
            self.canvas.icon(name, at, size=(bottom - top) * 0.4, fill=fill)
        if self.rich:
            x, y = (left + right) / 2, bottom - 2.2 * self._unit
            strip = (x - 14 * self._unit, y, x + 14 * self._unit, y + 1.1 * self._unit)
            self.canvas.rect(strip, theme.faint)

    def card(self, rect: Span) -> None:
        theme = self._look.theme
        self._round_box(rect, theme.card, outline=theme.soft, radius=0.08)

    def _colours(self, number: int) -> tuple[Colour, Colour, Colour | None]:
        """Return the fill, the text and the outline of a button."""
        theme = self._look.theme
        if self._look.style == "filled":
            return theme.accent, ink_on(theme.accent), None
        if self._look.style == "tinted":
            return shade(number * 0.23 + 0.05, 0.5, 0.5), WHITE, None
        return theme.card, theme.ink, theme.soft if self.rich else theme.accent

    def option(self, rect: Rect, number: int, label: str, icon: str) -> None:
        look, unit = self._look, self._unit
        fill, ink, outline = self._colours(number)
        left, top, right, bottom = rect
        x, y, high, wide = (left + right) / 2, (top + bottom) / 2, bottom - top, right - left
        self._round_box(rect, fill, outline=outline, radius=look.radius)
        if not self.rich:
            if look.icons:
                size = min(high, wide) * 0.4
                self.canvas.icon(icon, (x, y - high * 0.14), size=size, fill=ink)
            self.label(label, (x, y + (high * 0.3 if look.icons else 0)), 4.6, ink)
            return
        tall = look.arrangement in ("row", "grid")
        disc = min(wide * 0.3, high * 0.26, 9 * unit) if tall else min(high * 0.32, 6 * unit)
        below = high * 0.5 - 9 * unit
        at = (x, y - high * 0.12) if tall else (left + high * 0.14 + disc + unit, y)
        tint = shade(0.13 * number + 0.07, 0.55, 0.5) if outline else mix(fill, ink, 0.18)
        if look.icons:
            self.canvas.disc(at, disc, tint)
            self.canvas.icon(icon, at, size=disc * 1.15, fill=WHITE if outline else ink)
        if tall:
            under = min(below, high * 0.12 + disc + 2 * unit) if look.icons else 0
            self.label(label, (x, y + under), 4.3, ink)
            return
        start = at[0] + disc + 3 * unit if look.icons else left + 5 * unit
        note = mix(fill, ink, 0.6)
        self.label(label, (start, y - 2.4 * unit), 4.4, ink, anchor="lm")
        self.label(_TIMES[number], (start, y + 3.4 * unit), 3.4, note, anchor="lm", thin=True)

    def panel(self, rect: Rect, question: QuestionKind, icon: str) -> None:
        """Draw what is swiped over, touched, or left."""
        look, theme = self._look, self._look.theme
        left, top, right, bottom = rect
        x, y, high = (left + right) / 2, (top + bottom) / 2, bottom - top
        size = min(high, right - left)
        fill, ink, outline = self._colours(0)
        self._round_box(rect, fill, outline=outline, radius=look.radius)
        if not self.rich:
            self.canvas.icon(icon, (x, y), size=size * 0.4, fill=ink)
            return
        round_ = min(size * 0.24, 18 * self._unit)
        self.canvas.disc((x, y), round_ * 1.25, mix(fill, theme.accent if outline else ink, 0.16))
        self.canvas.disc((x, y), round_, theme.accent if outline else mix(fill, ink, 0.3))
        self.canvas.icon(icon, (x, y), size=round_ * 1.1, fill=ink_on(theme.accent))
        if question == "swipe":
            faint, reach = mix(fill, ink, 0.5), 2.4 * self._unit
            far = (size * 0.5 - 5 * self._unit, (right - left) / 2 - 6 * self._unit)
            spots = ((x, y - far[0]), (x, y + far[0]), (x - far[1], y), (x + far[1], y))
            for code, at in enumerate(spots):
                _paint_arrow(self.canvas, at, reach, code, faint)
        elif question == "leave":
            for k, share in enumerate((0.62, 0.5, 0.56)):
                upper = top + (3 + 4 * k) * self._unit
                end = left + (right - left) * share
                strip = (left + 5 * self._unit, upper, end, upper + self._unit)
                self.canvas.rect(strip, mix(fill, ink, 0.35))

    def field(self, rect: Rect) -> None:
        theme, canvas = self._look.theme, self.canvas
        left, top, right, bottom = rect
        high, wide = (bottom - top) / 5, (right - left) / 10
        field = (left, top, right, top + high * 0.86)
        self._round_box(field, theme.card, outline=theme.accent, radius=0.5)
        x = left + high * 0.5
        if self.rich:
            canvas.icon("search", (x, top + high * 0.43), size=high * 0.4, fill=theme.faint)
            x += high * 0.4
        canvas.line(((x, top + high * 0.2), (x, top + high * 0.66)), theme.ink)
        for row, keys in enumerate(KEYBOARD, 1):
            start = left + (10 - len(keys)) * wide / 2
            for number, key in enumerate(keys):
                self._key((start + number * wide, top + row * high, wide, high), key)
        self._key((left + 2 * wide, top + 4 * high, 6 * wide, high), "")
        enter = (left + 8 * wide, top + 4 * high, 2 * wide, high)
        self._key(enter, "", theme.accent)
        at = (enter[0] + wide, enter[1] + high / 2)
        canvas.icon("check", at, size=high * 0.5, fill=ink_on(theme.accent))

    def _key(self, place: Span, text: str, fill: Colour | None = None) -> None:
        """Draw a key; `place` is its left and upper edge, width and height."""
        left, top, wide, high = place
        theme, gap = self._look.theme, min(wide, high) * 0.06
        box = (left + gap, top + gap, left + wide - gap, top + high - gap)
        self._round_box(box, fill or theme.soft, radius=0.16)
        if text:
            self.label(text, (left + wide / 2, top + high / 2), 4.2, theme.ink, thin=True)

    def _round_box(
        self, box: Span, fill: Colour, *, outline: Colour | None = None, radius: float
    ) -> None:
        shorter = min(box[2] - box[0], box[3] - box[1])
        corner = min(shorter * radius, 6 * self._unit)
        self.canvas.rect(box, fill, radius=corner, outline=outline, width=0.4 * self._unit)

    def label(
        self,
        text: str,
        at: Spot,
        size: float,
        fill: Colour,
        *,
        canvas: Canvas | None = None,
        anchor: Literal["lm", "mm"] = "mm",
        thin: bool = False,
    ) -> None:
        """Draw a text; `size` is in units."""
        face = self._look.face
        if self.rich and face == "plain" and not thin:
            face = "bold"
        pixels = max(5, round(size * self._unit))
        (canvas or self.canvas).text(text, at, pixels=pixels, fill=fill, face=face, anchor=anchor)


def _paint_sign(canvas: Canvas, kind: str, code: int, box: Span, look: Look) -> None:
    """Draw a sign that says a code from 0 to 3: a digit, a coloured badge, an arrow, dots."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    size = min(box[2] - box[0], box[3] - box[1]) * 0.7
    ink = look.theme.ink
    if kind == "digit":
        canvas.text(str(code + 1), (x, y), pixels=round(size), fill=ink, face=look.face)
    elif kind == "badge":
        canvas.disc((x, y), size / 2, BADGES[code])
    elif kind == "arrow":
        _paint_arrow(canvas, (x, y), size / 2, code, ink)
    else:
        for number in range(code + 1):
            place = x + (number - code / 2) * size * 0.4
            canvas.disc((place, y), size * 0.15, look.theme.accent)


def _paint_arrow(canvas: Canvas, at: Spot, reach: float, code: int, fill: Colour) -> None:
    shape = ((0, -1), (0.8, 0), (0.3, 0), (0.3, 1), (-0.3, 1), (-0.3, 0), (-0.8, 0))
    turned = [((u, v), (u, -v), (v, u), (-v, u))[code % CODES] for u, v in shape]
    canvas.polygon([(at[0] + u * reach, at[1] + v * reach) for u, v in turned], fill)


# The first and the last screen of an episode of the demo.


def launcher(looks: Sequence[Look], size: Screen) -> tuple[Image.Image, list[Rect]]:
    """Draw the phone's start page; return it and the place of each app."""
    look = replace(looks[1], title=False, navigation=False)
    pen = _Pen(look, layout(look, size), size)
    width, height, canvas, unit = *size, pen.canvas, layout(look, size).unit
    accent = look.theme.accent
    canvas.gradient((0, 0, width, height), mix(accent, _DARK, 0.8), mix(accent, WHITE, 0.1))
    pen.status(WHITE)
    middle = width / 2
    canvas.text("9:41", (middle, height * 0.17), pixels=round(18 * unit), fill=WHITE)
    canvas.text("Tuesday, 3 June", (middle, height * 0.235), pixels=round(4.7 * unit), fill=WHITE)
    places = []
    for number, app in enumerate(looks):
        x, y = width * (0.18 + 0.32 * (number % 3)), height * (0.4 + 0.165 * (number // 3))
        reach = 9.4 * unit
        box = (round(x - reach), round(y - reach), round(x + reach), round(y + reach))
        colour = app.theme.accent
        canvas.gradient(box, mix(colour, WHITE, 0.3), mix(colour, _DARK, 0.2), radius=5 * unit)
        canvas.icon(_ART[app.kind][0][0], (x, y), size=11.6 * unit, fill=WHITE)
        canvas.text(app.name, (x, y + 14 * unit), pixels=round(3.8 * unit), fill=WHITE)
        places.append((box[0], box[1], box[2], round(y + 16.4 * unit)))
    return canvas.finish(), places


def closing(look: Look, size: Screen) -> Image.Image:
    """Draw the page that says that the task is over."""
    pen = _Pen(look, layout(look, size), size)
    pen.bars(1.0)
    x, y, unit = size[0] / 2, size[1] * 0.39, layout(look, size).unit
    pen.canvas.disc((x, y), 18 * unit, GREEN)
    pen.canvas.icon("check", (x, y), size=23.6 * unit, fill=WHITE)
    pen.label("Done", (x, size[1] * 0.525), 6.7, look.theme.ink)
    button = (x - 23.6 * unit, size[1] * 0.66, x + 23.6 * unit, size[1] * 0.725)
    pen.canvas.rect(button, look.theme.accent, radius=3.3 * unit)
    pen.label("Back to start", (x, size[1] * 0.6925), 4.4, ink_on(look.theme.accent))
    return pen.canvas.finish()

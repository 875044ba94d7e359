"""A phone screen to draw on, and the widgets that every made-up app shares.

All lengths are pixels of the finished screenshot. Shapes are drawn at twice the size and reduced,
because Pillow does not smooth edges itself. Text is in Pillow's built-in font: a system font would
make the sample differ between machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw

from omnidata.actions import Box
from omnidata.media import png
from omnidata.synth.drawing import (
    GREEN,
    KEYBOARD,
    WHITE,
    Colour,
    Rect,
    Theme,
    font,
    paint_icon,
    shade,
)

WIDTH, HEIGHT = 720, 1600
_FINE = 2


@dataclass(frozen=True, slots=True, eq=False)
class Screen:
    """A finished screen; compared by identity.

    Attributes:
        image: RGB, `WIDTH` x `HEIGHT`.
        half: the same in half the size, as clips show it.
        targets: what can be touched, by name.
    """

    image: Image.Image
    half: Image.Image
    targets: Mapping[str, Box]

    def encode(self) -> bytes:
        """The screenshot as a PNG file."""
        return png(np.asarray(self.image))


class Canvas:
    """A screen that is being drawn.

    Args:
        theme: its colours.
        title: the text of the app bar; None = no app bar.
        back: whether the app bar has an arrow (target `back`).
    """

    def __init__(self, theme: Theme, *, title: str | None = None, back: bool = False) -> None:
        self.theme = theme
        self.targets: dict[str, Box] = {}
        self._image = Image.new("RGB", (WIDTH * _FINE, HEIGHT * _FINE), theme.ground)
        self._draw = ImageDraw.Draw(self._image)
        bar = theme.ground if title is None else theme.accent
        ink = theme.ink if title is None else WHITE
        if title is not None:
            self.fill((0, 0, WIDTH, 160), bar)
            self.text(title, (96 if back else 36, 108), size=40, fill=WHITE, anchor="lm", bold=True)
        if back:
            self.icon("back", (48, 108), size=48, fill=WHITE)
            self.target("back", (12, 68, 84, 148))
        self.status_bar(ink)

    @classmethod
    def over(cls, below: Screen, theme: Theme) -> Canvas:
        """A canvas with a darkened screen on it, whose widgets can no longer be touched."""
        canvas = cls(theme)
        dark = Image.blend(below.image, Image.new("RGB", below.image.size), 0.55)
        canvas._image.paste(dark.resize(canvas._image.size, Image.Resampling.NEAREST))
        return canvas

    def status_bar(self, ink: Colour) -> None:
        """Clock, signal and battery."""
        self.text("9:41", (36, 30), size=24, fill=ink, anchor="lm", bold=True)
        for k in range(4):
            self.fill((560 + 10 * k, 38 - 5 * k, 566 + 10 * k, 42), ink, radius=1)
        self.fill((626, 20, 672, 42), None, radius=6, outline=ink)
        self.fill((630, 24, 658, 38), ink, radius=3)
        self.fill((674, 27, 678, 35), ink, radius=1)

    def fill(
        self,
        rect: Rect,
        colour: Colour | None,
        *,
        radius: float = 0,
        outline: Colour | None = None,
        width: int = 2,
    ) -> None:
        """A rectangle, with rounded corners and an outline where asked."""
        box = [value * _FINE for value in rect]
        self._draw.rounded_rectangle(
            (box[0], box[1], box[2], box[3]),
            radius * _FINE,
            fill=colour,
            outline=outline,
            width=width * _FINE if outline else 0,
        )

    def disc(self, centre: tuple[int, int], radius: int, colour: Colour) -> None:
        """A filled circle."""
        x, y = centre
        self.fill((x - radius, y - radius, x + radius, y + radius), colour, radius=radius)

    def text(
        self,
        text: str,
        at: tuple[int, int],
        *,
        size: int,
        fill: Colour,
        anchor: str = "mm",
        bold: bool = False,
    ) -> None:
        """A line of text; `anchor` as Pillow names it."""
        self._draw.text(
            (at[0] * _FINE, at[1] * _FINE),
            text,
            fill=fill,
            font=font(size * _FINE),
            anchor=anchor,
            stroke_width=1 if bold else 0,
        )

    def icon(self, name: str, centre: tuple[int, int], *, size: int, fill: Colour) -> None:
        """One of the icons."""
        middle = (centre[0] * _FINE, centre[1] * _FINE)
        paint_icon(self._draw, name, centre=middle, size=size * _FINE, fill=fill)

    def gradient(self, rect: Rect, top: Colour, bottom: Colour, *, radius: int = 0) -> None:
        """A rectangle whose colour goes from one to another, downwards."""
        left, upper, right, lower = (value * _FINE for value in rect)
        width, height = right - left, lower - upper
        ramp = Image.linear_gradient("L").resize((1, height))
        column = Image.composite(
            Image.new("RGB", ramp.size, bottom), Image.new("RGB", ramp.size, top), ramp
        )
        mask = None
        if radius:
            mask = Image.new("L", (width, height), 0)
            ImageDraw.Draw(mask).rounded_rectangle(
                (0, 0, width - 1, height - 1), radius * _FINE, fill=255
            )
        blend = column.resize((width, height), Image.Resampling.NEAREST)
        self._image.paste(blend, (left, upper), mask)

    def target(self, name: str, rect: Rect) -> None:
        """Name a rectangle that can be touched."""
        left, top, right, bottom = rect
        self.targets[name] = Box(left, top, right, bottom, "px")

    def button(
        self,
        name: str,
        rect: Rect,
        label: str,
        *,
        colour: Colour | None = None,
        icon: str | None = None,
    ) -> None:
        """A wide button with a label; plain where no colour is given."""
        ink = WHITE if colour else self.theme.ink
        outline = None if colour else self.theme.faint
        self.fill(rect, colour or self.theme.card, radius=24, outline=outline)
        x, y = (rect[0] + rect[2]) // 2, (rect[1] + rect[3]) // 2
        if icon:
            half = round(font(32 * _FINE).getlength(label) / _FINE / 2)
            self.icon(icon, (x - half - 8, y), size=40, fill=ink)
            x += 28
        self.text(label, (x, y), size=32, fill=ink, bold=True)
        self.target(name, rect)

    def round_button(
        self,
        name: str,
        centre: tuple[int, int],
        icon: str,
        *,
        radius: int,
        colour: Colour,
        label: str | None = None,
    ) -> None:
        """A disc with an icon, and a label beneath."""
        x, y = centre
        self.disc(centre, radius, colour)
        self.icon(icon, centre, size=round(radius * 1.1), fill=WHITE)
        if label:
            self.text(label, (x, y + radius + 30), size=26, fill=self.theme.faint)
        self.target(name, (x - radius, y - radius, x + radius, y + radius))

    def row(
        self,
        name: str,
        top: int,
        *,
        icon: str,
        title: str,
        note: str,
        tint: Colour,
    ) -> None:
        """A list entry, 132 px high, on a card of its own."""
        theme = self.theme
        self.fill((24, top, WIDTH - 24, top + 132), theme.card, radius=22)
        self.disc((90, top + 66), 42, tint)
        self.icon(icon, (90, top + 66), size=46, fill=WHITE)
        self.text(title, (156, top + 46), size=31, fill=theme.ink, anchor="lm", bold=True)
        self.text(note, (156, top + 92), size=25, fill=theme.faint, anchor="lm")
        self.target(name, (24, top, WIDTH - 24, top + 132))

    def bar(self, rect: Rect, share: float) -> None:
        """A progress bar; `share` in [0, 1]."""
        left, top, right, bottom = rect
        radius = (bottom - top) / 2
        self.fill(rect, self.theme.soft, radius=radius)
        end = round(left + (right - left) * share)
        self.fill(
            (left, top, max(end, left + bottom - top), bottom), self.theme.accent, radius=radius
        )

    def navigation(self, icons: tuple[str, ...], *, active: int) -> None:
        """The bar at the bottom; targets `nav0`, `nav1`, ..."""
        theme = self.theme
        self.fill((0, 1472, WIDTH, HEIGHT), theme.card)
        self.fill((0, 1472, WIDTH, 1474), theme.soft)
        step = WIDTH // len(icons)
        for k, name in enumerate(icons):
            x = step * k + step // 2
            ink = theme.accent if k == active else theme.faint
            self.icon(name, (x, 1522), size=50, fill=ink)
            self.target(f"nav{k}", (step * k, 1476, step * (k + 1) - 1, 1568))
        self.fill((260, 1580, 460, 1588), theme.faint, radius=4)

    def finish(self) -> Screen:
        """The screen at its final size."""
        image = self._image.reduce(_FINE)
        return Screen(image, image.reduce(2), dict(self.targets))


# Screens that belong to the phone or that every app has.

APPS = {"Chirp": "phone", "Sonora": "note", "Reelio": "film", "Parcelo": "bag", "Homely": "home"}
"""The made-up apps and their icons."""


@lru_cache(maxsize=1)
def launcher(hue: float) -> Screen:
    """The phone's start page; one target per app."""
    canvas = Canvas(Theme.dark("Phone", hue=hue))
    canvas.gradient((0, 0, WIDTH, HEIGHT), shade(hue, 0.16, 0.5), shade(hue + 0.12, 0.42, 0.5))
    canvas.status_bar(WHITE)
    canvas.text("9:41", (WIDTH // 2, 270), size=130, fill=WHITE)
    canvas.text("Tuesday, 3 June", (WIDTH // 2, 376), size=34, fill=WHITE)
    for k, (name, icon) in enumerate(APPS.items()):
        x, y = 132 + 228 * (k % 3), 700 + 260 * (k // 3)
        canvas.gradient(
            (x - 68, y - 68, x + 68, y + 68),
            shade(hue + 0.19 * k, 0.62, 0.7),
            shade(hue + 0.19 * k, 0.44, 0.7),
            radius=36,
        )
        canvas.icon(icon, (x, y), size=84, fill=WHITE)
        canvas.text(name, (x, y + 100), size=27, fill=WHITE)
        canvas.target(name, (x - 68, y - 68, x + 68, y + 118))
    canvas.fill((260, 1580, 460, 1588), WHITE, radius=4)
    return canvas.finish()


def done(theme: Theme, *, title: str, note: str) -> Screen:
    """A page that says that the task is over."""
    canvas = Canvas(theme, title=theme.name)
    canvas.disc((WIDTH // 2, 620), 130, GREEN)
    canvas.icon("check", (WIDTH // 2, 620), size=170, fill=WHITE)
    canvas.text(title, (WIDTH // 2, 840), size=48, fill=theme.ink, bold=True)
    canvas.text(note, (WIDTH // 2, 910), size=30, fill=theme.faint)
    canvas.button("home", (190, 1060, 530, 1160), "Back to start", colour=theme.accent)
    canvas.navigation(("home", "search", "bell", "person"), active=0)
    return canvas.finish()


def rows(
    theme: Theme,
    *,
    title: str,
    entries: Sequence[tuple[str, str, str]],
    first: int = 0,
    back: bool = False,
) -> Screen:
    """A list; targets `row0` ... for what is visible, and `search`.

    Args:
        theme: the app's colours.
        title: the text of the app bar.
        entries: icon, title and note of each row.
        first: the number of the first visible row; the list is scrolled this far.
        back: whether there is an arrow in the app bar.
    """
    canvas = Canvas(theme, title=title, back=back)
    canvas.icon("search", (648, 108), size=46, fill=WHITE)
    canvas.target("search", (608, 68, 688, 148))
    for k, (icon, name, note) in enumerate(entries[first : first + 8]):
        tint = shade(0.13 * (first + k) + 0.07, 0.55, 0.5)
        canvas.row(f"row{first + k}", 190 + 156 * k, icon=icon, title=name, note=note, tint=tint)
    canvas.target("list", (24, 190, 696, 1440))
    canvas.navigation(("home", "search", "bell", "person"), active=0)
    return canvas.finish()


def search(
    theme: Theme,
    *,
    query: str = "",
    results: Sequence[tuple[str, str, str]] = (),
    title: str = "Search",
    hint: str = "Type a name",
) -> Screen:
    """A page to type on; targets `field` and `result0` ..., a keyboard while there is no result."""
    canvas = Canvas(theme, title=title, back=True)
    canvas.fill((24, 190, 696, 282), theme.card, radius=46, outline=theme.accent, width=3)
    canvas.icon("search", (74, 236), size=40, fill=theme.faint)
    ink = theme.ink if query else theme.faint
    canvas.text(query or hint, (116, 236), size=31, fill=ink, anchor="lm")
    canvas.target("field", (24, 190, 696, 282))
    for k, (icon, name, note) in enumerate(results):
        tint = shade(0.13 * k + 0.3, 0.55, 0.5)
        canvas.row(f"result{k}", 320 + 156 * k, icon=icon, title=name, note=note, tint=tint)
    if not results:
        keyboard(canvas)
    return canvas.finish()


def keyboard(canvas: Canvas) -> None:
    """Draw a keyboard at the bottom."""
    theme = canvas.theme
    canvas.fill((0, 1120, WIDTH, HEIGHT), theme.soft)
    for line, keys in enumerate(KEYBOARD):
        left = (WIDTH - 70 * len(keys)) // 2
        for k, key in enumerate(keys):
            x, y = left + 70 * k, 1140 + 98 * line
            canvas.fill((x + 4, y, x + 66, y + 84), theme.card, radius=12)
            canvas.text(key, (x + 35, y + 42), size=32, fill=theme.ink)
    canvas.fill((174, 1434, 546, 1518), theme.card, radius=12)
    canvas.text("space", (360, 1476), size=26, fill=theme.faint)
    canvas.fill((562, 1434, 706, 1518), theme.accent, radius=12)
    canvas.icon("check", (634, 1476), size=44, fill=WHITE)


def dialog(below: Screen, theme: Theme, *, title: str, note: str, yes: str, no: str) -> Screen:
    """A question over a darkened page; targets `yes` and `no`."""
    canvas = Canvas.over(below, theme)
    canvas.fill((60, 610, 660, 990), theme.card, radius=36)
    canvas.text(title, (360, 690), size=38, fill=theme.ink, bold=True)
    canvas.text(note, (360, 770), size=27, fill=theme.faint)
    canvas.button("no", (90, 860, 350, 956), no)
    canvas.button("yes", (370, 860, 630, 956), yes, colour=theme.accent)
    return canvas.finish()

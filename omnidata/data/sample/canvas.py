"""A phone screen to draw on, and the widgets that every made-up app shares.

All lengths are pixels of the finished screenshot. Shapes are drawn at twice the size and reduced,
because Pillow does not smooth edges itself. Text is in Pillow's built-in font: a system font would
make the sample differ between machines.
"""

from __future__ import annotations

import colorsys
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from PIL import Image, ImageDraw, ImageFont

from omnidata.actions import Box
from omnidata.data.sample.icons import Colour, paint_icon

WIDTH, HEIGHT = 720, 1600
_FINE = 2

WHITE: Colour = (255, 255, 255)
GREEN: Colour = (46, 160, 92)
RED: Colour = (216, 63, 66)

Rect = tuple[int, int, int, int]
"""Left, top, right and bottom edge of a widget."""


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of an app.

    Attributes:
        name: the app's name.
        accent: bars and important buttons.
        soft: a tint of the accent for backgrounds of icons.
        ground, card, ink, faint: background, raised surfaces, text, secondary text.
    """

    name: str
    accent: Colour
    soft: Colour
    ground: Colour
    card: Colour
    ink: Colour
    faint: Colour

    @classmethod
    def light(cls, name: str, *, hue: float) -> Theme:
        """Dark text on a bright ground; `hue` in [0, 1)."""
        return cls(
            name,
            accent=shade(hue, 0.48, 0.72),
            soft=shade(hue, 0.9, 0.6),
            ground=shade(hue, 0.965, 0.35),
            card=WHITE,
            ink=(30, 33, 40),
            faint=(122, 128, 140),
        )

    @classmethod
    def dark(cls, name: str, *, hue: float) -> Theme:
        """Bright text on a dark ground; `hue` in [0, 1)."""
        return cls(
            name,
            accent=shade(hue, 0.6, 0.75),
            soft=shade(hue, 0.24, 0.4),
            ground=shade(hue, 0.075, 0.3),
            card=shade(hue, 0.14, 0.25),
            ink=(240, 241, 245),
            faint=(152, 157, 170),
        )


def shade(hue: float, lightness: float, saturation: float) -> Colour:
    """A colour from hue, lightness and saturation, each in [0, 1]; the hue wraps around."""
    red, green, blue = colorsys.hls_to_rgb(hue % 1, lightness, saturation)
    return round(red * 255), round(green * 255), round(blue * 255)


@dataclass(frozen=True, slots=True, eq=False)
class Screen:
    """A finished screen; compared by identity.

    Attributes:
        image: RGB, `WIDTH` x `HEIGHT`.
        targets: what can be touched, by name.
    """

    image: Image.Image
    targets: Mapping[str, Box]

    def encode(self) -> bytes:
        """The screenshot as a PNG file."""
        buffer = io.BytesIO()
        self.image.save(buffer, "png")
        return buffer.getvalue()


class Canvas:
    """A screen that is being drawn.

    Args:
        theme: its colours.
        title: the text of the app bar; None = no app bar.
        back: whether the app bar has an arrow (target `back`).
    """

    def __init__(self, theme: Theme, *, title: str | None = None, back: bool = False) -> None:
        """Draw the status bar and the app bar."""
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
            font=_font(size * _FINE),
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
        ramp = Image.linear_gradient("L").resize((right - left, lower - upper))
        mask = Image.new("L", ramp.size, 0)
        ImageDraw.Draw(mask).rounded_rectangle(
            (0, 0, ramp.width - 1, ramp.height - 1), radius * _FINE, fill=255
        )
        blend = Image.composite(
            Image.new("RGB", ramp.size, bottom), Image.new("RGB", ramp.size, top), ramp
        )
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
            half = round(_font(32 * _FINE).getlength(label) / _FINE / 2)
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
        ink: Colour = WHITE,
        label: str | None = None,
    ) -> None:
        """A disc with an icon, and a label beneath."""
        x, y = centre
        self.disc(centre, radius, colour)
        self.icon(icon, centre, size=round(radius * 1.1), fill=ink)
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
        return Screen(self._image.reduce(_FINE), dict(self.targets))


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)

"""What the made-up screens are drawn with: icons, colours of an app, text and simple shapes.

Text is in Pillow's built-in fonts, and icons are strokes, so that nothing differs between machines
and no picture files are needed.
"""

from __future__ import annotations

import colorsys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal

from PIL import Image, ImageDraw, ImageFont

from omnidata.actions import OPPOSITE, Action, Box, Direction

Colour = tuple[int, int, int]

Rect = tuple[int, int, int, int]
"""Left, top, right and bottom edge of a widget, in pixels."""

Span = tuple[float, float, float, float]
"""A rectangle with edges between pixels."""

WHITE: Colour = (255, 255, 255)
GREEN: Colour = (46, 160, 92)
RED: Colour = (216, 63, 66)

BADGES: tuple[Colour, ...] = ((214, 48, 49), (39, 174, 96), (41, 98, 255), (245, 203, 20))
"""Red, green, blue, yellow."""

KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
"""The rows of keys."""

_PIXEL_FONT = 11  # height of Pillow's bitmap font
_SMALLEST_BOLD = 14  # pixels; below that letters would run together
_SMALLEST_ICON = 10  # pixels; below that its strokes have no inside
_BRIGHT = 165

Stroke = tuple[str, float, tuple[float, ...]]
"""A kind (line, circle, box, arc), a width (0 = filled) and numbers.

line: x, y, x, y, ...; circle: x, y, radius; box: left, top, right, bottom, corner radius;
arc: x, y, radius, from and to in degrees, clockwise from three o'clock.
"""

ICONS: Mapping[str, tuple[Stroke, ...]] = {
    "back": (("line", 2, (15, 5, 8, 12, 15, 19)),),
    "search": (("circle", 2, (11, 11, 6)), ("line", 2, (15.5, 15.5, 20, 20))),
    "plus": (("line", 2.4, (12, 5, 12, 19)), ("line", 2.4, (5, 12, 19, 12))),
    "close": (("line", 2.4, (6, 6, 18, 18)), ("line", 2.4, (18, 6, 6, 18))),
    "check": (("line", 2.8, (5, 12.5, 10, 17.5, 19, 7)),),
    "home": (("line", 0, (12, 3, 21, 11, 18, 11, 18, 20, 6, 20, 6, 11, 3, 11)),),
    "person": (("circle", 0, (12, 8, 4.2)), ("arc", 0, (12, 21, 7.5, 180, 360))),
    "phone": (
        ("arc", 4.5, (12, 19, 10.5, 205, 335)),
        ("box", 0, (1, 12.5, 7.5, 17.5, 1.6)),
        ("box", 0, (16.5, 12.5, 23, 17.5, 1.6)),
    ),
    "heart": (
        ("circle", 0, (8, 9, 4.7)),
        ("circle", 0, (16, 9, 4.7)),
        ("line", 0, (3.9, 11.4, 20.1, 11.4, 12, 20.5)),
    ),
    "share": (
        ("line", 2, (7, 12, 17, 6)),
        ("line", 2, (7, 12, 17, 18)),
        ("circle", 0, (6, 12, 3)),
        ("circle", 0, (18, 5.5, 3)),
        ("circle", 0, (18, 18.5, 3)),
    ),
    "save": (("line", 0, (6, 3, 18, 3, 18, 21, 12, 16, 6, 21)),),
    "play": (("line", 0, (7, 4, 20, 12, 7, 20)),),
    "pause": (("box", 0, (6, 4, 10, 20, 1)), ("box", 0, (14, 4, 18, 20, 1))),
    "next": (("line", 0, (5, 5, 15, 12, 5, 19)), ("box", 0, (16, 5, 19, 19, 1))),
    "previous": (("line", 0, (19, 5, 9, 12, 19, 19)), ("box", 0, (5, 5, 8, 19, 1))),
    "note": (
        ("circle", 0, (7.5, 18, 3)),
        ("circle", 0, (17, 16, 3)),
        ("line", 2, (9.7, 18, 9.7, 5, 19, 3.5, 19, 16)),
    ),
    "headphones": (
        ("arc", 2, (12, 13, 8, 180, 360)),
        ("box", 0, (3, 13, 8, 20, 2)),
        ("box", 0, (16, 13, 21, 20, 2)),
    ),
    "send": (("line", 0, (3, 4, 22, 12, 3, 20, 6, 12)),),
    "cart": (
        ("line", 2, (2, 4, 5, 4, 8, 15, 18, 15, 21, 7, 6, 7)),
        ("circle", 0, (9, 19, 1.9)),
        ("circle", 0, (17, 19, 1.9)),
    ),
    "bag": (("box", 0, (4, 8, 20, 21, 3)), ("arc", 2, (12, 8, 4, 180, 360))),
    "bell": (
        ("arc", 0, (12, 11, 6.5, 180, 360)),
        ("box", 0, (5.5, 10, 18.5, 17, 1)),
        ("circle", 0, (12, 19.5, 2)),
    ),
    "lamp": (
        ("line", 0, (8, 3, 16, 3, 20, 13, 4, 13)),
        ("line", 2, (12, 13, 12, 20)),
        ("line", 2.4, (7, 20.5, 17, 20.5)),
    ),
    "door": (("box", 2, (6, 3, 18, 21, 1)), ("circle", 0, (14.8, 12, 1.4))),
    "oven": (
        ("box", 2, (4, 3, 20, 21, 2)),
        ("line", 2, (4, 8, 20, 8)),
        ("box", 0, (7, 11, 17, 18, 1)),
    ),
    "fan": tuple(
        ("arc", 0, (12 + dx, 12 + dy, 5, turn, turn + 180))
        for dx, dy, turn in ((0, -5, 90), (5, 0, 180), (0, 5, 270), (-5, 0, 0))
    ),
    "camera": (
        ("box", 2, (3, 7, 21, 20, 3)),
        ("circle", 2, (12, 13.5, 4)),
        ("box", 0, (8, 4, 16, 8, 1)),
    ),
    "shield": (("line", 0, (12, 2, 20, 5, 19, 14, 12, 22, 5, 14, 4, 5)),),
    "clock": (("circle", 2, (12, 12, 9)), ("line", 2, (12, 6.5, 12, 12, 16, 14))),
    "film": (("box", 2, (3, 5, 21, 19, 3)), ("line", 0, (10, 8.5, 16, 12, 10, 15.5))),
    "box": (
        ("line", 0, (12, 2, 21, 7, 12, 12, 3, 7)),
        ("line", 0, (3, 8.5, 11.2, 13, 11.2, 22, 3, 17.5)),
        ("line", 0, (21, 8.5, 12.8, 13, 12.8, 22, 21, 17.5)),
    ),
    "mic": (
        ("box", 0, (9, 3, 15, 14, 3)),
        ("arc", 2, (12, 11, 6, 0, 180)),
        ("line", 2, (12, 17, 12, 21)),
    ),
    "star": (
        (
            "line",
            0,
            (12, 2, 15, 8.6, 22, 9.3, 17, 14, 18.2, 21, 12, 17, 5.8, 21, 7, 14, 2, 9.3, 9, 8.6),
        ),
    ),
}


def paint_icon(
    draw: ImageDraw.ImageDraw,
    name: str,
    *,
    centre: tuple[float, float],
    size: float,
    fill: tuple[int, ...],
) -> None:
    """Draw an icon.

    Args:
        draw: where.
        name: a key of `ICONS`.
        centre: the middle, in pixels of the picture.
        size: the edge of the grid in pixels.
        fill: the colour.
    """
    origin = (centre[0] - size / 2, centre[1] - size / 2)
    for stroke in ICONS[name]:
        _paint(draw, stroke, origin=origin, unit=size / 24, fill=fill)


def _paint(
    draw: ImageDraw.ImageDraw,
    stroke: Stroke,
    *,
    origin: tuple[float, float],
    unit: float,
    fill: tuple[int, ...],
) -> None:
    kind, thickness, numbers = stroke
    width = max(1, round(thickness * unit)) if thickness else 0
    left, top = origin
    if kind == "line":
        places = zip(numbers[::2], numbers[1::2], strict=True)
        points = [(left + x * unit, top + y * unit) for x, y in places]
        if width:
            draw.line(points, fill=fill, width=width, joint="curve")
        else:
            draw.polygon(points, fill=fill)
        return
    style: dict[str, Any] = {"outline": fill, "width": width} if width else {"fill": fill}
    if kind == "box":
        x0, y0, x1, y1, radius = (number * unit for number in numbers)
        box = (left + x0, top + y0, left + x1, top + y1)
        draw.rounded_rectangle(box, radius, **style)
        return
    x, y, radius = left + numbers[0] * unit, top + numbers[1] * unit, numbers[2] * unit
    around = (x - radius, y - radius, x + radius, y + radius)
    if kind == "circle":
        draw.ellipse(around, **style)
    elif width:
        draw.arc(around, numbers[3], numbers[4], fill=fill, width=width)
    else:
        draw.chord(around, numbers[3], numbers[4], fill=fill)


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


def ink_on(ground: Colour) -> Colour:
    """White, or black on a ground that is too bright for it (by Rec. 601 luma)."""
    red, green, blue = ground
    return (20, 20, 24) if 0.299 * red + 0.587 * green + 0.114 * blue > _BRIGHT else WHITE


def paint_text(
    draw: ImageDraw.ImageDraw,
    text: str,
    at: tuple[float, float],
    *,
    pixels: int,
    fill: Colour,
    face: Literal["plain", "bold", "pixel"],
) -> None:
    """A line of text about a point.

    Args:
        draw: where.
        text: ASCII; Pillow's built-in fonts have nothing else.
        at: the middle.
        pixels: height of the type.
        fill: colour.
        face: the built-in outline font, the same with thicker strokes, or the bitmap font.
    """
    if face == "pixel":
        mask = _pixel_text(text, max(1, round(pixels / _PIXEL_FONT)))
        place = (round(at[0] - mask.width / 2), round(at[1] - mask.height / 2))
        draw.bitmap(place, mask, fill=fill)
        return
    stroke = -(-pixels // 24) if face == "bold" and pixels >= _SMALLEST_BOLD else 0
    draw.text(at, text, fill=fill, font=font(pixels), anchor="mm", stroke_width=stroke)


@cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Pillow's built-in outline font, `size` pixels high."""
    return ImageFont.load_default(size)


@lru_cache(maxsize=256)
def _pixel_text(text: str, factor: int) -> Image.Image:
    font = ImageFont.load_default_imagefont()
    left, top, right, bottom = font.getbbox(text)
    mask = Image.new("L", (max(1, round(right - left)), max(1, round(bottom - top))))
    ImageDraw.Draw(mask).text((-left, -top), text, fill=255, font=font)
    return mask.resize((mask.width * factor, mask.height * factor), Image.Resampling.NEAREST)


def paint_mark(
    draw: ImageDraw.ImageDraw,
    name: str,
    *,
    centre: tuple[float, float],
    size: float,
    fill: tuple[int, ...],
) -> None:
    """An icon, or a disc where there is no room for one; arguments as for `paint_icon`."""
    if size < _SMALLEST_ICON:
        paint_disc(draw, centre, size / 2, fill)
    else:
        paint_icon(draw, name, centre=centre, size=size, fill=fill)


def paint_disc(
    draw: ImageDraw.ImageDraw, at: tuple[float, float], radius: float, fill: tuple[int, ...]
) -> None:
    """A filled circle."""
    draw.ellipse((at[0] - radius, at[1] - radius, at[0] + radius, at[1] + radius), fill=fill)


# What is done on the screens.

WAIT = Action("none")
BACK = Action("back")
HOME = Action("home")
COMPLETE = Action("done", status="success")
IMPOSSIBLE = Action("done", status="failure")


def swipe(direction: Direction, start: Box, end: Box) -> Action:
    """Drag from one rectangle to another."""
    return Action("swipe", (start,), (end,), direction=direction)


def across(direction: Direction, area: Box) -> Action:
    """A swipe over an area, from one third of it to the opposite one."""
    wide, high = (area.right - area.left) // 3, (area.bottom - area.top) // 3
    first: Mapping[Direction, Box] = {
        "up": replace(area, top=area.bottom - high),
        "down": replace(area, bottom=area.top + high),
        "left": replace(area, left=area.right - wide),
        "right": replace(area, right=area.left + wide),
    }
    return swipe(direction, first[direction], first[OPPOSITE[direction]])


def type_in(text: str) -> Action:
    """Type into the field that has the focus."""
    return Action("type", text=text)

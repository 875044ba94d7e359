"""The drawing kit of all invented screens: a canvas, icons and the colours of an app.

It draws the phone apps of `synth.episodes` and the desktop apps of `synth.pool`. Text is in the
built-in fonts of Pillow, and icons are strokes, so that nothing differs between machines and no
picture files are needed.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

from msgspec.structs import replace
from PIL import Image, ImageDraw, ImageFont

from omnidata.actions import OPPOSITE, Action, Box, Direction, Screen

Colour = tuple[int, int, int]

Rect = tuple[int, int, int, int]
"""Left, top, right and bottom edge of a widget, in pixels."""

Span = tuple[float, float, float, float]
"""A rectangle with edges between pixels."""

Spot = tuple[float, float]
"""A point, in pixels."""

Face = Literal["plain", "bold", "pixel"]

WHITE: Colour = (255, 255, 255)
GREEN: Colour = (46, 160, 92)

BADGES: tuple[Colour, ...] = ((214, 48, 49), (39, 174, 96), (41, 98, 255), (245, 203, 20))
"""Red, green, blue, yellow."""

KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
"""The rows of keys."""

_PIXEL_FONT = 11  # height of Pillow's bitmap font
_SMALLEST_BOLD = 14  # pixels; below that letters would run together
_SMALLEST_ICON = 10  # pixels; below that its strokes have no inside
_SMALLEST_ROUND = 12  # pixels; Pillow has no space for corners in less
_BRIGHT = 165

Stroke = tuple[str, float, tuple[float, ...]]
"""A kind, a width (0 = filled) and numbers on a grid of 24 x 24.

line: x y x y ...; circle: x y radius; box: left top right bottom, corner radius;
arc: x y radius, from and to in degrees, clockwise from three o'clock.
"""

_ICONS = """\
back: line 2 15 5 8 12 15 19
search: circle 2 11 11 6; line 2 15.5 15.5 20 20
plus: line 2.4 12 5 12 19; line 2.4 5 12 19 12
close: line 2.4 6 6 18 18; line 2.4 18 6 6 18
check: line 2.8 5 12.5 10 17.5 19 7
home: line 0 12 3 21 11 18 11 18 20 6 20 6 11 3 11
person: circle 0 12 8 4.2; arc 0 12 21 7.5 180 360
phone: arc 4.5 12 19 10.5 205 335; box 0 1 12.5 7.5 17.5 1.6; box 0 16.5 12.5 23 17.5 1.6
heart: circle 0 8 9 4.7; circle 0 16 9 4.7; line 0 3.9 11.4 20.1 11.4 12 20.5
share: line 2 7 12 17 6; line 2 7 12 17 18; circle 0 6 12 3; circle 0 18 5.5 3; circle 0 18 18.5 3
save: line 0 6 3 18 3 18 21 12 16 6 21
play: line 0 7 4 20 12 7 20
pause: box 0 6 4 10 20 1; box 0 14 4 18 20 1
next: line 0 5 5 15 12 5 19; box 0 16 5 19 19 1
previous: line 0 19 5 9 12 19 19; box 0 5 5 8 19 1
note: circle 0 7.5 18 3; circle 0 17 16 3; line 2 9.7 18 9.7 5 19 3.5 19 16
headphones: arc 2 12 13 8 180 360; box 0 3 13 8 20 2; box 0 16 13 21 20 2
send: line 0 3 4 22 12 3 20 6 12
cart: line 2 2 4 5 4 8 15 18 15 21 7 6 7; circle 0 9 19 1.9; circle 0 17 19 1.9
bag: box 0 4 8 20 21 3; arc 2 12 8 4 180 360
bell: arc 0 12 11 6.5 180 360; box 0 5.5 10 18.5 17 1; circle 0 12 19.5 2
lamp: line 0 8 3 16 3 20 13 4 13; line 2 12 13 12 20; line 2.4 7 20.5 17 20.5
door: box 2 6 3 18 21 1; circle 0 14.8 12 1.4
oven: box 2 4 3 20 21 2; line 2 4 8 20 8; box 0 7 11 17 18 1
fan: arc 0 12 7 5 90 270; arc 0 17 12 5 180 360; arc 0 12 17 5 270 450; arc 0 7 12 5 0 180
camera: box 2 3 7 21 20 3; circle 2 12 13.5 4; box 0 8 4 16 8 1
shield: line 0 12 2 20 5 19 14 12 22 5 14 4 5
clock: circle 2 12 12 9; line 2 12 6.5 12 12 16 14
film: box 2 3 5 21 19 3; line 0 10 8.5 16 12 10 15.5
box: line 0 12 2 21 7 12 12 3 7; line 0 3 8.5 11.2 13 11.2 22 3 17.5; \
    line 0 21 8.5 12.8 13 12.8 22 21 17.5
mic: box 0 9 3 15 14 3; arc 2 12 11 6 0 180; line 2 12 17 12 21
star: line 0 12 2 15 8.6 22 9.3 17 14 18.2 21 12 17 5.8 21 7 14 2 9.3 9 8.6
"""


def _strokes(text: str) -> Iterator[Stroke]:
    for stroke in text.split(";"):
        kind, width, *numbers = stroke.split()
        yield kind, float(width), tuple(map(float, numbers))


ICONS: Mapping[str, tuple[Stroke, ...]] = {
    name: tuple(_strokes(strokes))
    for name, _, strokes in (line.partition(": ") for line in _ICONS.splitlines())
}


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of an app.

    Attributes:
        name: of the app.
        accent, soft: of bars and important buttons; a tint of it.
        ground, card, ink, faint: of the background, raised surfaces, text, secondary text.
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
    """Return a colour from hue, lightness and saturation, each in [0, 1]; the hue wraps around."""
    red, green, blue = colorsys.hls_to_rgb(hue % 1, lightness, saturation)
    return round(red * 255), round(green * 255), round(blue * 255)


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """Return a colour between two; `share` in [0, 1] is the other's."""
    red, green, blue = (
        round(a + (b - a) * min(max(share, 0), 1)) for a, b in zip(one, other, strict=True)
    )
    return red, green, blue


def ink_on(ground: Colour) -> Colour:
    """White, or black on a ground that is too bright for it (by Rec. 601 luma)."""
    red, green, blue = ground
    return (20, 20, 24) if 0.299 * red + 0.587 * green + 0.114 * blue > _BRIGHT else WHITE


class Canvas:
    """A picture that is being drawn; all lengths are pixels of the finished one.

    Args:
        image: what is drawn on.
        fine: how many times larger it is: Pillow's shapes have no smooth edges until reduced.
        origin: its left upper corner, where it is a part of a picture.
    """

    def __init__(self, image: Image.Image, *, fine: int = 1, origin: Spot = (0, 0)) -> None:
        self.fine = fine
        self._origin = origin
        self._image = image
        self._draw = ImageDraw.Draw(image)

    @classmethod
    def blank(cls, size: Screen, ground: Colour, *, fine: int = 1) -> Canvas:
        """Return an empty canvas of a width and height."""
        return cls(Image.new("RGB", (size[0] * fine, size[1] * fine), ground), fine=fine)

    def part(self, rect: Rect) -> Canvas:
        """Return a copy of a part, which is drawn on with the coordinates of the whole."""
        left, top, right, bottom = (value * self.fine for value in rect)
        image = self._image.crop((left, top, right, bottom))
        return Canvas(image, fine=self.fine, origin=(left, top))

    def finish(self) -> Image.Image:
        """Return the picture at its final size."""
        return self._image.reduce(self.fine) if self.fine > 1 else self._image

    def rect(
        self,
        rect: Span,
        fill: Colour | None,
        *,
        radius: float = 0,
        outline: Colour | None = None,
        width: float = 1,
    ) -> None:
        """Draw a rectangle; its right and bottom edge are outside."""
        left, top = self._spot(rect[:2])
        right, bottom = self._spot(rect[2:])
        style: dict[str, Any] = {"fill": fill, "outline": outline}
        style["width"] = max(1, round(width * self.fine)) if outline else 0
        box = (left, top, max(left, right - 1), max(top, bottom - 1))
        if min(right - left, bottom - top) < _SMALLEST_ROUND * self.fine or not radius:
            self._draw.rectangle(box, **style)
        else:
            self._draw.rounded_rectangle(box, radius * self.fine, **style)

    def gradient(self, rect: Rect, top: Colour, bottom: Colour, *, radius: float = 0) -> None:
        """Draw a rectangle whose colour changes downwards."""
        left, upper = (round(value) for value in self._spot(rect[:2]))
        size = ((rect[2] - rect[0]) * self.fine, (rect[3] - rect[1]) * self.fine)
        column = Image.composite(
            Image.new("RGB", (1, size[1]), bottom),
            Image.new("RGB", (1, size[1]), top),
            Image.linear_gradient("L").resize((1, size[1])),
        )
        mask = Image.new("L", size)
        ImageDraw.Draw(mask).rounded_rectangle(
            (0, 0, size[0] - 1, size[1] - 1), radius * self.fine, fill=255
        )
        self._image.paste(column.resize(size, Image.Resampling.NEAREST), (left, upper), mask)

    def disc(self, at: Spot, radius: float, fill: Colour) -> None:
        """Draw a filled circle."""
        self._draw.ellipse(self._around(at, radius), fill=fill)

    def polygon(self, points: Sequence[Spot], fill: Colour) -> None:
        """Draw a filled polygon."""
        self._draw.polygon([self._spot(point) for point in points], fill=fill)

    def line(self, points: Sequence[Spot], fill: Colour) -> None:
        """Draw a line, one pixel wide."""
        self._draw.line([self._spot(point) for point in points], fill, self.fine)

    def text(
        self,
        text: str,
        at: Spot,
        *,
        pixels: int,
        fill: Colour,
        face: Face = "plain",
        anchor: Literal["lm", "mm", "rm"] = "mm",
    ) -> None:
        """Draw a line of ASCII text, which is all that Pillow's built-in fonts have.

        Args:
            text: the line.
            at: its left end, middle or right end, by the anchor.
            pixels: height of the type.
            fill: colour.
            face: the outline font, the same with thicker strokes, or the bitmap font.
            anchor: as in Pillow.
        """
        (x, y), high = self._spot(at), pixels * self.fine
        if face == "pixel":
            mask = _pixel_text(text, max(1, round(high / _PIXEL_FONT)))
            left = x - mask.width * {"l": 0.0, "m": 0.5, "r": 1.0}[anchor[0]]
            self._draw.bitmap((round(left), round(y - mask.height / 2)), mask, fill=fill)
            return
        bold = face == "bold" and high >= _SMALLEST_BOLD
        stroke = max(1, high // 60) if bold else 0
        self._draw.text((x, y), text, fill, font(high), anchor=anchor, stroke_width=stroke)

    def icon(self, name: str, at: Spot, *, size: float, fill: Colour) -> None:
        """Draw one of `ICONS` about a point, or a disc where it would be too small to see."""
        if size * self.fine < _SMALLEST_ICON:
            self.disc(at, size / 2, fill)
            return
        for stroke in ICONS[name]:
            self._stroke(stroke, (at[0] - size / 2, at[1] - size / 2), size / 24, fill)

    def _stroke(self, stroke: Stroke, origin: Spot, unit: float, fill: Colour) -> None:
        kind, thickness, numbers = stroke
        draw, grid = self._draw, unit * self.fine
        left, top = self._spot(origin)
        width = max(1, round(thickness * grid)) if thickness else 0
        style: dict[str, Any] = {"outline": fill, "width": width} if width else {"fill": fill}
        if kind == "line":
            places = zip(numbers[::2], numbers[1::2], strict=True)
            points = [(left + x * grid, top + y * grid) for x, y in places]
            if width:
                draw.line(points, fill=fill, width=width, joint="curve")
            else:
                draw.polygon(points, fill=fill)
        elif kind == "box":
            x0, y0, x1, y1, radius = (number * grid for number in numbers)
            draw.rounded_rectangle((left + x0, top + y0, left + x1, top + y1), radius, **style)
        else:
            at = (origin[0] + numbers[0] * unit, origin[1] + numbers[1] * unit)
            around = self._around(at, numbers[2] * unit)
            if kind == "circle":
                draw.ellipse(around, **style)
            elif width:
                draw.arc(around, numbers[3], numbers[4], fill=fill, width=width)
            else:
                draw.chord(around, numbers[3], numbers[4], fill=fill)

    def _around(self, at: Spot, radius: float) -> Span:
        (x, y), reach = self._spot(at), radius * self.fine
        return (x - reach, y - reach, x + reach, y + reach)

    def _spot(self, at: Spot) -> Spot:
        return at[0] * self.fine - self._origin[0], at[1] * self.fine - self._origin[1]


@cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return Pillow's built-in outline font, `size` pixels high."""
    return ImageFont.load_default(size)


@lru_cache(maxsize=256)
def _pixel_text(text: str, factor: int) -> Image.Image:
    font = ImageFont.load_default_imagefont()
    left, top, right, bottom = font.getbbox(text)
    mask = Image.new("L", (max(1, round(right - left)), max(1, round(bottom - top))))
    ImageDraw.Draw(mask).text((-left, -top), text, fill=255, font=font)
    return mask.resize((mask.width * factor, mask.height * factor), Image.Resampling.NEAREST)


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
    """Return a swipe over an area, from one third of it to the opposite one."""
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

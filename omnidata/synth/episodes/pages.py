"""Screens of the made-up apps, and signs on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from PIL import Image, ImageDraw, ImageFont

from omnidata.actions import Screen
from omnidata.data.sample.canvas import WHITE, Colour, Rect, paint_icon, shade
from omnidata.synth.episodes.theme import CODES, Look, Places, QuestionKind

_FINE_BELOW = 400 * 900  # pixels of a screen that is drawn at twice the size: Pillow has steps
_PIXEL_FONT = 11  # height of Pillow's bitmap font
_SMALLEST_ROUND = 12  # pixels: Pillow finds no room for corners and outlines in less
_BRIGHT = 165
_SMALLEST_BOLD = 14  # pixels; below that letters would run together
_SMALLEST_ICON = 10  # pixels; below that its strokes have no inside

BADGES: tuple[Colour, ...] = ((214, 48, 49), (39, 174, 96), (41, 98, 255), (245, 203, 20))
"""Red, green, blue, yellow."""

Span = tuple[float, float, float, float]
"""A rectangle with edges between pixels."""


@dataclass(frozen=True, slots=True)
class Page:
    """What a screen shows.

    Attributes:
        look: of the app.
        places: where things are.
        question: what can be touched.
        labels: of the buttons, or the text in the field; as many as the question needs.
        icons: of the buttons and the panel, names of `ICONS`.
        heading: the text of the bar at the top.
        passed: share of the episode's steps up to this one; two steps in a row never look the same.
    """

    look: Look
    places: Places
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
        pen.card(page.places.stage)
        pen.answers()
        self.plain = self._large.reduce(self._fine) if self._fine > 1 else self._large

    def with_sign(self, kind: str, code: int) -> Image.Image:
        """The screen with a sign on the stage; `kind` is a screen cue."""
        left, top, right, bottom = self._page.places.stage
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
        if page.places.title is not None:
            box = self._scaled(page.places.title)
            self._draw.rectangle(box, fill=theme.accent)
            middle = ((box[0] + box[2]) / 2, box[1] + (box[3] - box[1]) * 0.6)
            self._text(page.heading, middle, size=5.5, fill=_ink_on(theme.accent))
        left, top, right, bottom = self._scaled(page.places.progress)
        end = left + (right - left) * page.passed
        self._draw.rectangle((left, top, end, bottom), fill=theme.faint)
        if page.places.navigation is not None:
            box = self._scaled(page.places.navigation)
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
            rects: Sequence[Rect] = page.places.options
        else:
            rects = (page.places.panel,)
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
            "filled": (theme.accent, _ink_on(theme.accent), None),
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
        for row, keys in enumerate(("qwertyuiop", "asdfghjkl", "zxcvbnm"), 1):
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
            width=max(1, round(self._fine * self._page.places.unit * 0.4)) if outline else 0,
        )

    def _text(self, text: str, at: tuple[float, float], *, size: float, fill: Colour) -> None:
        pixels = max(5, round(size * self._page.places.unit)) * self._fine
        paint_text(self._draw, text, at, pixels=pixels, fill=fill, face=self._page.look.type)

    def _scaled(self, rect: Rect) -> Span:
        left, top, right, bottom = (value * self._fine for value in rect)
        return (left, top, right - 1, bottom - 1)


def _ink_on(ground: Colour) -> Colour:
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
    draw.text(at, text, fill=fill, font=_font(pixels), anchor="mm", stroke_width=stroke)


@lru_cache(maxsize=64)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


@lru_cache(maxsize=256)
def _pixel_text(text: str, factor: int) -> Image.Image:
    font = ImageFont.load_default_imagefont()
    left, top, right, bottom = font.getbbox(text)
    mask = Image.new("L", (max(1, round(right - left)), max(1, round(bottom - top))))
    ImageDraw.Draw(mask).text((-left, -top), text, fill=255, font=font)
    return mask.resize((mask.width * factor, mask.height * factor), Image.Resampling.NEAREST)


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


def _paint_arrow(
    draw: ImageDraw.ImageDraw, at: tuple[float, float], reach: float, code: int, fill: Colour
) -> None:
    """Up, down, left, right."""
    shape = ((0, -1), (0.8, 0), (0.3, 0), (0.3, 1), (-0.3, 1), (-0.3, 0), (-0.8, 0))
    turned = [((u, v), (u, -v), (v, u), (-v, u))[code % CODES] for u, v in shape]
    draw.polygon([(at[0] + u * reach, at[1] + v * reach) for u, v in turned], fill=fill)

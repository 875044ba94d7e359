"""The pages of the invented apps: lists, tiles, players, chats, and a stage for what decides.

Small screens show only the deciding sign and what is touched. On large ones each kind of app has
its own pages, which are tables of blocks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from PIL import Image

from omnidata.actions import Screen
from omnidata.synth.drawing import (
    BADGES,
    GREEN,
    WHITE,
    Canvas,
    Colour,
    Rect,
    Span,
    Spot,
    ink_on,
    mix,
    shade,
)
from omnidata.synth.episodes.screens import ICON_NAMES, Layout, Look, Pen, layout
from omnidata.synth.episodes.settings import CODES, Kind, QuestionKind
from omnidata.synth.episodes.settings import labels as labels_of

_DARK: Colour = (16, 16, 22)
_RED: Colour = (214, 61, 66)


@dataclass(frozen=True, slots=True)
class _Kit:
    """The content of the pages of a kind of app; parts of a text are separated by bars.

    Attributes:
        icons: of the labels, in their order; one for all if there is one.
        notes, tails: second lines, and texts at the right end.
        pages: by question the title, a heading and its second line; {} is a label.
        big, buttons: icons and names of the big button and of small ones.
        bars: icons of the navigation, and one for the title.
        results: messages at the end.
        lines: comments or messages.
        pad: the icon of a swiped card; empty = that of the label.
        wide: the name of a wide button.
    """

    icons: str
    notes: str
    tails: str
    pages: Mapping[QuestionKind, str]
    big: str
    buttons: str
    bars: str
    results: str
    lines: str = ""
    pad: str = ""
    wide: str = ""


_KITS: Mapping[Kind, _Kit] = {
    "calls": _Kit(
        icons="person",
        notes="See you at six|Photo|Thanks a lot!|Call me back|On the train|Ok",
        tails="9:38|9:12|8:47|8:30|Mon|Sun",
        pages={
            "tap": "|Chats|A new photo",
            "swipe": "Incoming call|{}|Incoming video call",
            "touch": "On the line|{}|On the line  02:14",
            "leave": "{}|{}|Online",
        },
        big="mic|Hold to talk",
        buttons="camera|Video|phone|End|plus|Add",
        bars="home|search|phone|person|search",
        results="Message sent|Call ended|All answered",
        lines="Are you there?|.On my way|Look at this photo|.Great, see you!|Call me|.In a minute",
        pad="phone",
    ),
    "music": _Kit(
        icons="note",
        notes="Mira Sol|Juno Field|The Low Tides|Olive Street|Halden|Pale Fox",
        tails="3:00|2:41|4:12|3:37|5:02|2:58",
        pages={
            "tap": "|Library|24 tracks",
            "swipe": "Now playing|{}|Juno Field",
            "touch": "Ear training|Listen closely|Round 3 of 5",
            "leave": "Now playing|{}|The Low Tides",
        },
        big="headphones|Hold to hear it again",
        buttons="heart|Like|save|Save|share|Share",
        bars="home|search|note|person|search",
        results="Added to library|Well heard|Now playing",
    ),
    "films": _Kit(
        icons="play",
        notes="2.4k views|980 views|12k views|640 views|5.1k views|310 views",
        tails="8:20|12:05|4:48|21:30|3:15|9:59",
        pages={
            "tap": "|{}|2.4k views",
            "swipe": "|{}|12k views",
            "touch": "|{}|980 views",
            "leave": "Comments|{}|5.1k views",
        },
        big="heart|Like",
        buttons="heart|Like|share|Share|save|Save",
        bars="home|search|film|person|search",
        results="Saved for later|Comment posted|You liked this",
        lines="Lovely light|Who made this?|Again!|So calm|The ending...",
    ),
    "shop": _Kit(
        icons="lamp|clock|camera|fan|bell|headphones|bag|mic",
        notes="Ships tomorrow|Free returns|Made to last|New|Last ones|Two colours",
        tails="$39|$28|$240|$52|$19|$85|$64|$73",
        pages={
            "tap": "|For you|Offers of the day",
            "swipe": "{}|{}|4.8 of 5 stars",
            "touch": "{}|{}|Made by hand",
            "leave": "Cart|Your cart|Ships tomorrow",
        },
        big="cart|Add to cart",
        buttons="heart|Like|share|Share",
        bars="home|search|cart|person|cart",
        results="Order placed|Parcel is on its way|Thank you",
        lines="Ships within two days|Free returns for a month|Made to last",
        wide="Pay",
    ),
    "home": _Kit(
        icons="lamp|clock|camera|fan|bell|door|oven|shield",
        notes="Hall|Kitchen|Bedroom|Garden|Garage|Attic",
        tails="9:40|9:31|8:55|8:02|7:30|6:58",
        pages={
            "tap": "|All devices|Hall camera is live",
            "swipe": "Hall camera|Hall camera|Swipe to turn it",
            "touch": "Alert|Your home wants you|Somebody is at the door",
            "leave": "Event log|Today|No alarms",
        },
        big="bell|Answer",
        buttons="camera|Record|mic|Talk|shield|Lock",
        bars="home|bell|shield|person|bell",
        results="All is well|Good morning|The house is quiet",
        pad="camera",
        wide="Clear the log",
    ),
}


def _pick(texts: str, number: int) -> str:
    parts = texts.split("|")
    return parts[number % len(parts)]


def _tint(look: Look, number: int, lightness: float = 0.55) -> Colour:
    dark = sum(look.theme.ground) < 3 * 128
    return shade(0.13 * number + 0.07, lightness * (0.6 if dark and lightness > 0.6 else 1), 0.5)


class Drawing:
    """A screen of an app as pixels.

    Args:
        look: of the app.
        layout: of the screen.
        size: of the screen in pixels.
        question: what can be touched.
        labels: of the buttons; as many as the question needs.
        icons: of the buttons and the panel of a small screen, names of `ICONS`.
        passed: share of the episode's steps up to this one; two steps in a row never look the same.
        seed: of everything else on the page.
        result: the message at the end of an episode.

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
        seed: int,
        result: str = "",
    ) -> None:
        self._look, self._layout, self._result = look, layout, result
        self._pen = pen = Pen(look, layout, size)
        self._unit = pen.unit
        self._kit = kit = _KITS[look.kind]
        rng = random.Random(seed)
        known = labels_of(look.kind, look.words)
        rest = [label for label in known if question != "tap" or label not in labels]
        self._rest = rng.sample(rest, len(rest))
        self._about = self._rest[0]  # the label that the page is about
        self._turn = rng.randrange(100)
        title = _pick(kit.pages.get(question, ""), 0).format(self._about) or look.name
        pen.bars(passed, title, kit.bars.split("|"), 0 if question == "tap" else 2)
        self.signs = _inner(layout)
        if pen.rich:
            self._draw_page(question, labels)
        else:
            self._draw_small(question, labels, icons)
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

    # The stage of a large screen.

    def _paint_plate(self, canvas: Canvas) -> None:
        if self._pen.rich:
            self._paint_scene(canvas)
            theme, unit = self._look.theme, self._unit
            canvas.rect(
                self.signs, theme.card, radius=2.4 * unit, outline=theme.soft, width=0.5 * unit
            )

    def _paint_picture(self, canvas: Canvas) -> None:
        self._paint_scene(canvas)
        (left, top, right, bottom), unit = self._layout.stage, self._unit
        kind, x, y = self._look.kind, (left + right) / 2, (top + bottom) / 2
        size = min(bottom - top, right - left)
        if kind == "films":
            canvas.disc((x, y), 8 * unit, _DARK)
            canvas.icon("pause" if self._turn % 2 else "play", (x, y), size=8 * unit, fill=WHITE)
        elif kind == "shop":
            ink = self._hue(0.03, 0.42)
            canvas.icon(self._icon(self._about), (x, y), size=size * 0.62, fill=ink)
        elif kind == "home":
            canvas.icon("person", (x, y + size * 0.12), size=size * 0.4, fill=_DARK)
        else:
            inner = self._hue(0.1, 0.75)
            for share in (0.46, 0.37, 0.28) if kind == "calls" else (0.28,):
                canvas.disc((x, y), size * share, mix(inner, WHITE, (share - 0.28) * 3))
            icon = self._icon(self._about)
            canvas.icon(icon, (x, y), size=size * 0.34, fill=self._hue(0, 0.3))

    def _hue(self, turn: float, lightness: float) -> Colour:
        """Return a colour of the picture, which differs from page to page."""
        return shade(self._turn / 100 + turn, lightness, 0.5)

    def _paint_scene(self, canvas: Canvas) -> None:
        """Draw what is behind a picture, a sign or a motion."""
        stage, unit, kind = self._layout.stage, self._unit, self._look.kind
        left, top, right, bottom = stage
        wide, high = right - left, bottom - top
        radius = 0 if left == 0 else 4 * unit
        if kind == "home":
            canvas.gradient(stage, shade(0.58, 0.42, 0.2), shade(0.08, 0.3, 0.2), radius=radius)
            for x in (left + wide * 0.05, right - wide * 0.17):
                door = (x, top + high * 0.22, x + wide * 0.12, top + high * 0.84)
                canvas.rect(door, shade(0.07, 0.2, 0.4), radius=unit)
            floor = top + high * 0.84
            canvas.rect((left, floor, right, floor + 0.8 * unit), shade(0.08, 0.15, 0.2))
            canvas.disc((left + 5 * unit, top + 5 * unit), 1.4 * unit, _RED)
            at = (left + 8 * unit, top + 5 * unit)
            self._pen.label("LIVE", at, 3.4, WHITE, canvas=canvas, anchor="lm")
            return
        bright = kind in ("calls", "shop")
        ends = (0.9, 0.75) if bright else (0.62, 0.32)
        canvas.gradient(stage, self._hue(0, ends[0]), self._hue(0.12, ends[1]), radius=radius)
        if kind == "films":
            canvas.disc((right - wide * 0.13, top + high * 0.22), high * 0.13, self._hue(0.5, 0.85))
            for k, share in enumerate((0.3, 0.47, 0.22, 0.38, 0.55)):
                house = (left + wide * k / 5, bottom - high * share, left + wide * (k + 1) / 5)
                canvas.rect((*house, bottom), self._hue(0.05 * k, 0.22))
            self._bar(canvas, (left, bottom - unit, right, bottom), 0.2 + self._turn % 60 / 100)
        elif kind == "shop":
            tag = (left + 3 * unit, top + 3 * unit, left + 19 * unit, top + 10 * unit)
            canvas.rect(tag, _RED, radius=1.6 * unit)
            at = ((tag[0] + tag[2]) / 2, (tag[1] + tag[3]) / 2)
            self._pen.label(f"-{10 + self._turn % 5 * 5}%", at, 4, WHITE, canvas=canvas)
        elif kind == "music":  # the covers of the tracks before and behind
            for x in (left + wide * 0.02, right - wide * 0.14):
                box = (x, top + high * 0.2, x + wide * 0.12, bottom - high * 0.2)
                canvas.rect(box, self._hue(0.3, 0.45), radius=2 * unit)
        else:
            for k, name in enumerate(("camera", "heart")):
                at = (right - (6 + 9 * k) * unit, bottom - 6 * unit)
                canvas.icon(name, at, size=5.5 * unit, fill=self._hue(0, 0.4))

    def _bar(self, canvas: Canvas, box: Span, share: float) -> None:
        theme, (left, top, right, bottom) = self._look.theme, box
        canvas.rect(box, theme.soft)
        canvas.rect((left, top, left + (right - left) * share, bottom), theme.accent)

    # The page.

    def _draw_small(
        self, question: QuestionKind, labels: Sequence[str], icons: Sequence[str]
    ) -> None:
        pen, layout = self._pen, self._layout
        pen.card(layout.stage)
        if question == "tap":
            for number, rect in enumerate(layout.options):
                pen.option(rect, number, labels[number], icons[number])
        elif question == "input":
            pen.field(layout.page, "", low=False)
        else:
            pen.panel(layout.page, icons[0])

    def _draw_page(self, question: QuestionKind, labels: Sequence[str]) -> None:
        layout = self._layout
        if layout.head is not None:
            self._draw_head(layout.head, *self._kit.pages[question].split("|")[1:])
        left, _, right, bottom = layout.page
        if question == "tap":
            names = [*labels, *self._rest[1:]] if labels else self._rest
            for number, (rect, label) in enumerate(zip(layout.options, names, strict=False)):
                tall = rect[2] - rect[0] < 2 * (rect[3] - rect[1])
                (self._tile if tall else self._row)(rect, number, label)
        elif question == "input":
            chat = self._look.kind == "calls"
            between = self._pen.field(layout.page, "Message" if chat else "Search", low=chat)
            self._draw_blocks(between, question)
        elif question == "leave":
            self._draw_blocks(layout.page, question)
        else:
            (self._draw_pad if question == "swipe" else self._draw_big)(layout.panel)
            space = 2 * self._unit if question == "swipe" else 10 * self._unit
            below = (left, round(layout.panel[3] + space), right, bottom)
            self._draw_blocks(below, question)

    def _draw_blocks(self, page: Rect, question: QuestionKind) -> None:
        left, top, right, bottom = page
        blocks = _BLOCKS[self._look.kind].get(question, ((Drawing._rows, 1),))
        part = (bottom - top) / sum(share for _, share in blocks)
        at = 0
        for draw, share in blocks:
            ends = round(top + part * at), round(top + part * (at + share))
            draw(self, (left, ends[0], right, ends[1]))
            at += share

    def _draw_head(self, rect: Rect, title: str, note: str) -> None:
        theme, unit = self._look.theme, self._unit
        left, top, right, bottom = rect
        high = bottom - top
        if self._result:
            title, note = self._result, self._about
            at = (left + 6 * unit, (top + bottom) / 2)
            self._pen.canvas.disc(at, 5 * unit, GREEN)
            self._pen.canvas.icon("check", at, size=6.6 * unit, fill=WHITE)
        x = left + (13 if self._result else 1) * unit
        title = title.format(self._about)
        self._pen.label(title, (x, top + high * 0.36), 5.6, theme.ink, anchor="lm")
        at = (x, top + high * 0.76)
        self._pen.label(note, at, 3.5, theme.faint, anchor="lm", thin=True)
        if self._look.kind == "shop" and title == self._about:
            at = (right - unit, top + high * 0.5)
            self._pen.label(self._price(title), at, 6.4, theme.accent, anchor="rm")

    def _icon(self, label: str) -> str:
        """Return the icon of a label."""
        return _pick(self._kit.icons, self._number(label))

    def _price(self, label: str) -> str:
        return _pick(self._kit.tails, self._number(label))

    def _number(self, label: str) -> int:
        return labels_of(self._look.kind, self._look.words).index(label)

    def _row(self, rect: Rect, number: int, label: str) -> None:
        """Draw an entry of a list: a picture, a name, a second line, and what is at the right."""
        pen, kit, unit = self._pen, self._kit, self._unit
        left, top, right, bottom = rect
        high, y = bottom - top, (top + bottom) / 2
        fill, ink, outline = pen.colours(number)
        pen.round_box(rect, fill, outline=outline, radius=self._look.radius)
        size = min(high * 0.68, 14 * unit)
        wide = size * (1.5 if self._look.kind == "films" else 1)
        start = left + (high - size) / 2
        self._thumb((start, y - size / 2, start + wide, y + size / 2), number, label)
        x, turn = start + wide + 3 * unit, number + self._turn
        shop = self._look.kind == "shop"
        tail = self._price(label) if shop else _pick(kit.tails, number)
        faint, space = mix(fill, ink, 0.6), right - x - 14 * unit
        off = min(high * 0.19, 3.2 * unit)
        pen.label(label, (x, y - off), 4.3, ink, anchor="lm", wide=space)
        note = _pick(kit.notes, turn)
        pen.label(note, (x, y + off), 3.4, faint, anchor="lm", thin=True, wide=space)
        at = (right - 3.4 * unit, y - off)
        pen.label(tail, at, 3.2, faint, anchor="rm", thin=True)
        if self._look.kind == "calls" and turn % 3 == 0:
            pen.canvas.disc((right - 5 * unit, y + off), 1.3 * unit, self._look.theme.accent)

    def _tile(self, rect: Rect, number: int, label: str) -> None:
        """Draw a tile: a picture above a name, and a price or a state."""
        pen, kit, unit, kind = self._pen, self._kit, self._unit, self._look.kind
        left, top, right, bottom = rect
        high, edge = bottom - top, 2.2 * unit
        turn = number + self._turn
        fill, ink, outline = pen.colours(number)
        note = _pick(kit.notes, turn)
        lit = kind == "home" and turn % 3 == 0
        if kind == "home":
            note = f"{note}  On" if lit else f"{note}  Off"
            if lit:
                fill = mix(self._look.theme.accent, WHITE, 0.05)
                ink, outline = ink_on(fill), None
        elif kind == "shop":
            note = self._price(label)
        pen.round_box(rect, fill, outline=outline, radius=min(self._look.radius, 0.15))
        text = min(13 * unit, high * 0.42)
        picture = (left + edge, top + edge, right - edge, bottom - text)
        if kind not in ("shop", "films"):
            size = min(picture[3] - picture[1], right - left - 2 * edge)
            picture = (picture[0], picture[1], picture[0] + size, picture[1] + size)
        self._thumb(picture, number, label, lit=lit)
        space, x = right - left - 2 * edge, left + edge + 0.6 * unit
        pen.label(label, (x, bottom - text * 0.68), 4.2, ink, anchor="lm", wide=space)
        price = kind == "shop" and self._look.style == "outlined"
        faint = self._look.theme.accent if price else mix(fill, ink, 0.65)
        at = (x, bottom - text * 0.28)
        pen.label(note, at, 3.8 if price else 3.2, faint, anchor="lm", thin=not price, wide=space)

    def _thumb(
        self, box: Span, number: int, label: str, *, lit: bool = False, icon: str = ""
    ) -> None:
        """Draw the small picture of a label."""
        canvas, look, unit = self._pen.canvas, self._look, self._unit
        left, top, right, bottom = box
        at, size = ((left + right) / 2, (top + bottom) / 2), min(right - left, bottom - top)
        icon, kind = icon or self._icon(label), look.kind
        if kind in ("calls", "home"):
            soft = look.theme.soft if kind == "home" else _tint(look, number)
            canvas.disc(at, size / 2, WHITE if lit else soft)
            ink = look.theme.accent if kind == "home" else WHITE
            canvas.icon(icon, at, size=size * 0.58, fill=ink)
            return
        whole = (round(left), round(top), round(right), round(bottom))
        pale = kind == "shop"
        light, dark = _tint(look, number, 0.85 if pale else 0.6), _tint(look, number + 1, 0.32)
        radius = min(size * 0.14, 3 * unit)
        canvas.gradient(whole, light, light if pale else dark, radius=radius)
        if kind == "films":
            canvas.disc((right - size * 0.3, top + size * 0.28), size * 0.13, WHITE)
            canvas.icon("play", at, size=size * 0.36, fill=WHITE)
        else:
            ink = _tint(look, number, 0.4) if pale else WHITE
            canvas.icon(icon, at, size=size * (0.62 if pale else 0.5), fill=ink)

    def _draw_pad(self, rect: Rect) -> None:
        """Draw a card that is swiped over, with arrows at its edges."""
        pen, unit, theme = self._pen, self._unit, self._look.theme
        left, top, right, bottom = rect
        x, y, high = (left + right) / 2, (top + bottom) / 2, bottom - top
        pen.round_box(rect, theme.card, outline=theme.soft, radius=min(self._look.radius, 0.2))
        size = high - 17 * unit
        wide = size if self._look.kind in ("calls", "music", "home") else size * 1.5
        box = (x - wide / 2, y - size / 2, x + wide / 2, y + size / 2)
        self._thumb(box, self._turn % 7, self._about, icon=self._kit.pad)
        far = (high * 0.5 - 4.5 * unit, (right - left) / 2 - 6 * unit)
        spots = ((x, y - far[0]), (x, y + far[0]), (x - far[1], y), (x + far[1], y))
        for code, at in enumerate(spots):
            _paint_arrow(pen.canvas, at, 2.2 * unit, code, theme.faint)

    def _draw_big(self, rect: Rect) -> None:
        """Draw the big button, with a smaller one at each side and its name below."""
        pen, unit, theme = self._pen, self._unit, self._look.theme
        left, top, right, bottom = rect
        x, y, reach = (left + right) / 2, (top + bottom) / 2, (right - left) / 2
        pen.canvas.disc((x, y), reach, mix(theme.accent, theme.ground, 0.6))
        pen.canvas.disc((x, y), reach * 0.82, theme.accent)
        icon, name = self._kit.big.split("|")
        pen.canvas.icon(icon, (x, y), size=reach * 0.9, fill=ink_on(theme.accent))
        pen.label(name, (x, bottom + 4 * unit), 3.8, theme.faint, thin=True)
        page = self._layout.page
        for number, x in ((0, (page[0] + left) / 2), (-1, (page[2] + right) / 2)):
            self._button((x, y), reach * 0.5, number)

    def _button(self, at: Spot, reach: float, number: int) -> None:
        """Draw a round button with its name below."""
        pen, theme = self._pen, self._look.theme
        icon, name = (_pick(self._kit.buttons, 2 * number + k) for k in range(2))
        fill = _RED if name == "End" else theme.soft
        pen.canvas.disc(at, reach, fill)
        ink = WHITE if name == "End" else theme.ink
        pen.canvas.icon(icon, at, size=reach * 1.05, fill=ink)
        below = (at[0], at[1] + reach + 3 * self._unit)
        pen.label(name, below, 3.4, theme.faint, thin=True)

    # Blocks of pages: each draws into a rectangle.

    def _buttons(self, rect: Rect) -> None:
        left, top, right, bottom = rect
        reach = min((bottom - top) * 0.28, 8 * self._unit)
        for k in range(3):
            x = left + (right - left) * (k + 0.5) / 3
            self._button((x, (top + bottom) / 2 - 2.4 * self._unit), reach, k)

    def _rows(self, rect: Rect) -> None:
        left, top, right, bottom = rect
        high = 17 * self._unit
        for k in range(min(int((bottom - top) / (high + 2 * self._unit)), len(self._rest) - 1)):
            upper = round(top + k * (high + 2 * self._unit))
            self._row((left, upper, right, round(upper + high)), k, self._rest[k + 1])

    def _player(self, rect: Rect) -> None:
        """Draw how far a track has come, and buttons to steer it."""
        pen, unit, theme = self._pen, self._unit, self._look.theme
        left, top, right, bottom = rect
        high, share = bottom - top, 0.1 + self._turn / 130
        y = top + high * 0.12
        self._bar(pen.canvas, (left, y, right, y + 1.4 * unit), share)
        pen.canvas.disc((left + (right - left) * share, y + 0.7 * unit), 1.7 * unit, theme.accent)
        passed = f"{int(share * 3)}:{int(share * 180) % 60:02d}"
        pen.label(passed, (left, y + 5 * unit), 3.3, theme.faint, anchor="lm", thin=True)
        pen.label("3:00", (right, y + 5 * unit), 3.3, theme.faint, anchor="rm", thin=True)
        reach, y = min(high * 0.26, 10 * unit), top + high * 0.64
        for k, name in enumerate(("previous", "pause", "next")):
            x = (left + right) / 2 + (k - 1) * 24 * unit
            fill, size = (theme.accent, reach) if k == 1 else (theme.card, reach * 0.7)
            pen.canvas.disc((x, y), size, fill)
            pen.canvas.icon(name, (x, y), size=size, fill=ink_on(fill))

    def _bubbles(self, rect: Rect) -> None:
        """Draw messages; one's own begin with a dot."""
        pen, unit, theme = self._pen, self._unit, self._look.theme
        left, top, right, bottom = rect
        for k in range(min(int((bottom - top) / (15 * unit)), 5)):
            line = _pick(self._kit.lines, k + self._turn)
            own, text = line.startswith("."), line.lstrip(".")
            wide, y = (12 + 2.3 * len(text)) * unit, top + (15 * k + 7) * unit
            x = right - wide if own else left
            fill = theme.accent if own else theme.card
            box = (x, y - 6 * unit, x + wide, y + 6 * unit)
            pen.canvas.rect(box, fill, radius=5 * unit)
            ink = ink_on(fill)
            pen.label(text, (x + wide / 2, y), 4.1, ink, thin=True, wide=wide - 4 * unit)

    def _lines(self, rect: Rect) -> None:
        """Draw comments on a film, or stars and what is good about a product."""
        pen, unit, theme = self._pen, self._unit, self._look.theme
        left, top, _, bottom = rect
        shop = self._look.kind == "shop"
        if shop:
            for k in range(5):
                at = (left + (4 + 6.4 * k) * unit, top + 4 * unit)
                pen.canvas.icon("star", at, size=5.6 * unit, fill=theme.accent)
        else:
            pen.label("Comments", (left, top + 4 * unit), 4.4, theme.ink, anchor="lm")
        pitch = 9 if shop else 14
        for k in range(min(int((bottom - top - 8 * unit) / (pitch * unit)), 3 if shop else 5)):
            at = (left + 5 * unit, top + (pitch * k + 15) * unit)
            if not shop:
                pen.canvas.disc(at, 4.4 * unit, _tint(self._look, k + self._turn))
            icon, ink = ("check", theme.accent) if shop else ("person", WHITE)
            pen.canvas.icon(icon, at, size=5.2 * unit, fill=ink)
            line = _pick(self._kit.lines, k + self._turn)
            at = (left + 12 * unit, at[1])
            pen.label(line, at, 4, theme.faint if shop else theme.ink, anchor="lm", thin=True)

    def _total(self, rect: Rect) -> None:
        """Draw the sum of the first entries, and a button to pay it."""
        theme, (left, top, right, bottom) = self._look.theme, rect
        unit, y = self._unit, (3 * top + bottom) / 4
        shown = max(1, round((top - self._layout.page[1]) / (19 * unit)))
        cost = sum(int(self._price(label)[1:]) for label in self._rest[1 : shown + 1])
        self._pen.label("Total", (left + unit, y), 4.8, theme.ink, anchor="lm", thin=True)
        self._pen.label(f"${cost}", (right - unit, y), 6.4, theme.ink, anchor="rm")
        self._wide((left, (top + bottom) // 2, right, bottom))

    def _wide(self, rect: Rect) -> None:
        theme, (left, top, right, bottom) = self._look.theme, rect
        middle, reach = (top + bottom) / 2, min((bottom - top) * 0.42, 7 * self._unit)
        box = (left, middle - reach, right, middle + reach)
        self._pen.canvas.rect(box, theme.accent, radius=3.2 * self._unit)
        name = "Back to start" if self._result else self._kit.wide
        self._pen.label(name, ((left + right) / 2, middle), 4.4, ink_on(theme.accent))

    def _entry(self, rect: Rect) -> None:
        """Draw a field for a message."""
        theme, unit, (left, top, right, bottom) = self._look.theme, self._unit, rect
        y, reach = (top + bottom) / 2, min((bottom - top) * 0.42, 6 * unit)
        box = (left, y - reach, right - 15 * unit, y + reach)
        self._pen.canvas.rect(box, theme.card, radius=reach, outline=theme.soft, width=0.4 * unit)
        hint = "Message" if self._look.kind == "calls" else "Add a comment"
        self._pen.label(hint, (left + 5 * unit, y), 4, theme.faint, anchor="lm", thin=True)
        self._pen.canvas.disc((right - 6 * unit, y), reach, theme.accent)
        ink = ink_on(theme.accent)
        self._pen.canvas.icon("send", (right - 6 * unit, y), size=reach, fill=ink)


_Block = Callable[[Drawing, Rect], None]
_BLOCKS: Mapping[Kind, Mapping[QuestionKind, Sequence[tuple[_Block, int]]]] = {
    "calls": {
        "input": ((Drawing._bubbles, 1),),
        "swipe": ((Drawing._buttons, 1),),
        "touch": ((Drawing._bubbles, 1),),
        "leave": ((Drawing._bubbles, 5), (Drawing._entry, 1)),
    },
    "music": {
        "swipe": ((Drawing._player, 1),),
        "leave": ((Drawing._player, 2), (Drawing._buttons, 1), (Drawing._rows, 2)),
    },
    "films": {
        "swipe": ((Drawing._lines, 1),),
        "touch": ((Drawing._lines, 1),),
        "leave": ((Drawing._buttons, 2), (Drawing._lines, 5), (Drawing._entry, 1)),
    },
    "shop": {
        "swipe": ((Drawing._lines, 1),),
        "touch": ((Drawing._lines, 1),),
        "leave": ((Drawing._rows, 5), (Drawing._total, 2)),
    },
    "home": {
        "swipe": ((Drawing._buttons, 1),),
        "leave": ((Drawing._rows, 5), (Drawing._wide, 1)),
    },
}
"""The parts of a page from top to bottom, with their shares of the height; others are lists."""


def _inner(layout: Layout) -> Span:
    """Return the place of signs and motions on the stage."""
    left, top, right, bottom = layout.stage
    if not layout.rich:
        return layout.stage
    aside, above = (right - left) * 0.19, (bottom - top) * 0.1
    return (left + aside, top + above, right - aside, bottom - above)


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
    pen = Pen(looks[1], layout(looks[1], size), size)
    width, height, canvas, unit = *size, pen.canvas, pen.unit
    accent = looks[1].theme.accent
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
        icon = "home" if app.kind == "home" else _pick(_KITS[app.kind].bars, 2)
        canvas.icon(icon, (x, y), size=11.6 * unit, fill=WHITE)
        canvas.text(app.name, (x, y + 14 * unit), pixels=round(3.8 * unit), fill=WHITE)
        places.append((box[0], box[1], box[2], round(y + 16.4 * unit)))
    return canvas.finish(), places


def closing(look: Look, size: Screen, number: int) -> Image.Image:
    """Draw a page of the app that says that the task is over; `number` gives others."""
    question: QuestionKind = "tap" if look.kind == "home" else "leave"
    return Drawing(
        look,
        layout(look, size, question),
        size,
        question=question,
        labels=(),
        icons=ICON_NAMES[:1],
        passed=1.0,
        seed=number,
        result=_pick(_KITS[look.kind].results, number),
    ).plain

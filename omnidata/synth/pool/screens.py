"""Screens of the invented desktop: apps, and drawings with the rectangles of their controls."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from PIL import Image

from omnidata.synth.drawing import WHITE, Canvas, Colour, Rect, Span, Spot, Theme, shade

# The made-up desktop apps: names, categories of Table 10, buttons and what they list.

Listed = Literal["people", "topics", "dishes", "windows", "files", "none"]
"""The list in an app's window; the pool's seed chooses its words."""


@dataclass(frozen=True, slots=True)
class App:
    """An invented app.

    Attributes:
        name: of the app.
        category: of Table 10 (OmniBench, appendix A.4).
        buttons: of the tool bar, at most six.
        listed: the list in its window.
        icon: a name of `omnidata.synth.drawing.ICONS`.
    """

    name: str
    category: str
    buttons: tuple[str, ...]
    listed: Listed
    icon: str


_APPS: tuple[tuple[str, str, str, Listed, str], ...] = (
    ("Slidora", "Office", "New Open Insert Paste Notes Export", "none", "film"),
    ("Pagewell", "Office", "New Open Insert Paste Style Export", "none", "bag"),
    ("Gridley", "Office", "New Open Sort Total Copy Chart", "none", "box"),
    ("Pixelry", "Multimedia Editing", "Open Filter Crop Caption Copy Save", "none", "camera"),
    ("Reelsmith", "Multimedia Editing", "Open Slides Trim Music Sound Render", "none", "play"),
    ("Tunebox", "Multimedia Playback", "Open Play Loop Rate", "none", "headphones"),
    ("Postling", "Social Communication", "New Attach Save Copy Send", "people", "send"),
    ("Cabinet", "System Management", "Go Copy Eject Sort", "files", "door"),
    ("Packrat", "Utility Tools", "Create Add Extract Pack", "none", "cart"),
    ("Wordhop", "Utility Tools", "Paste Open Translate Copy", "none", "share"),
    ("Jotwell", "Note Management", "New Paste Attach Copy", "topics", "note"),
    ("Tickoff", "Task Management", "Add Star Import Due", "topics", "check"),
    ("Snaplet", "Screen Capture", "Shot Record Clip Save", "windows", "shield"),
    ("Webway", "Web Browsing", "Search Picture Summary Data Song", "topics", "search"),
    ("Codewright", "Programming", "Open Format Run Deploy", "none", "lamp"),
    ("Larder", "Lifestyle", "Shopping Export Photo Share", "dishes", "oven"),
)

APPS: Mapping[str, App] = {
    name: App(name, category, tuple(buttons.split()), listed, icon)
    for name, category, buttons, listed, icon in _APPS
}
"""By name: 16 apps of all 12 categories."""

PEOPLE = ("Emily", "Noor", "Tomas", "Aiko", "Lena", "Kofi", "Marta", "Ravi", "Sven", "Ines")
TOPICS = ("harbours", "bridges", "glaciers", "bees", "tea", "kites", "rivers", "owls", "clay")
DISHES = ("lentil soup", "plum tart", "rice salad", "bean stew", "nut bread", "fig cake")
WINDOWS = ("Weather", "Calendar", "Timetable", "Budget", "Gallery", "Player", "Inbox")
STEMS = ("spring", "north", "river", "amber", "delta", "lunar", "cedar", "quartz", "maple", "orbit")
FILTERS = ("Cartoon", "Sepia", "Mist", "Ink", "Noon", "Frost")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
LANGUAGES = ("German", "Spanish", "French", "Italian", "Dutch")


SIZE = (640, 400)
"""Width and height of a screenshot in pixels."""

VISIBLE = 5
"""Entries of a list that fit into a window."""

FIELD, OK, CANCEL, CONTENT = "Text field", "OK", "Cancel", "Content"
"""Controls that are no buttons of an app."""

_COLUMNS = 6
_WINDOW: Rect = (20, 14, 620, 386)
_LIST: Rect = (30, 92, 230, 352)
_SHEET: Rect = (240, 92, 610, 352)
_DIALOG: Rect = (130, 120, 510, 276)
_TEXT, _SMALL = 13, 11


@dataclass(frozen=True, slots=True)
class View:
    """The content of a screen.

    Attributes:
        app: the open one; "" = the desktop.
        file: the open file, for the title.
        entries: of the list; empty if the app has none.
        first: number of the entry at the top of the list.
        chosen: the marked entry.
        question: of the dialog; "" = no dialog.
        typed: in the dialog's field.
        says: the status bar.
    """

    app: str = ""
    file: str = ""
    entries: tuple[str, ...] = ()
    first: int = 0
    chosen: str = ""
    question: str = ""
    typed: str = ""
    says: str = ""


Controls = Mapping[str, Rect]
"""What can be clicked, by its text: left, top, right and bottom in pixels, all of them inside."""


class Screen(NamedTuple):
    """A screenshot of `SIZE`, and its controls."""

    image: Image.Image
    controls: Controls


def draw(view: View, *, seed: int) -> Screen:
    """Return the screen of a view; the seed decides the colours."""
    return _Painter(view, seed).screen()


@lru_cache(maxsize=64)
def _theme(seed: int, app: str) -> Theme:
    rng = random.Random(f"{seed}/theme/{app}")
    kind = (Theme.light, Theme.dark)[rng.random() < 0.3]
    return kind(app, hue=rng.random())


class _Painter:
    def __init__(self, view: View, seed: int) -> None:
        self._view = view
        self._seed = seed
        self._theme = _theme(seed, view.app)
        ground = shade(random.Random(f"{seed}/wall").random(), 0.32, 0.35)
        self._canvas = Canvas.blank(SIZE, ground)
        self._controls: dict[str, Rect] = {}

    def screen(self) -> Screen:
        if not self._view.app:
            for number, app in enumerate(APPS.values()):
                column, row = number % _COLUMNS, number // _COLUMNS
                left, top = 22 + column * 100, 20 + row * 122
                colour = _theme(self._seed, app.name).accent
                badge = (left + 20, top + 4, left + 75, top + 59)
                self._rect(badge, fill=colour, outline=WHITE, radius=12)
                self._canvas.icon(app.icon, (left + 47.5, top + 31.5), size=34, fill=WHITE)
                self._text(app.name, (left + 47.5, top + 78), WHITE)
                self._controls[app.name] = (left, top, left + 95, top + 95)
        else:
            self._window()
            if self._view.question:
                self._controls.clear()  # the dialog is modal
                self._dialog()
        return Screen(self._canvas.finish(), self._controls)

    def _window(self) -> None:
        view, theme = self._view, self._theme
        left, top, right, bottom = _WINDOW
        self._rect(_WINDOW, fill=theme.ground, outline=theme.faint)
        self._rect((left, top, right, top + 28), fill=theme.accent)
        title = f"{view.app} - {view.file}" if view.file else view.app
        self._text(title, ((left + right) / 2, top + 14), WHITE)
        for number, name in enumerate(APPS[view.app].buttons):
            x = left + 10 + number * 98
            self._button(name, (x, top + 36, x + 90, top + 66))
        if view.entries:
            self._list()
            self._sheet(_SHEET)
        else:
            self._sheet((_LIST[0], _SHEET[1], _SHEET[2], _SHEET[3]))
        self._canvas.line(((left, bottom - 26), (right, bottom - 26)), theme.faint)
        says = view.says or "Ready"
        self._text(says, ((left + right) / 2, bottom - 13), theme.faint, pixels=_SMALL)

    def _list(self) -> None:
        view, theme = self._view, self._theme
        self._rect(_LIST, fill=theme.card, outline=theme.faint)
        self._controls[CONTENT] = _LIST
        left, top, right, _ = _LIST
        for number, entry in enumerate(view.entries[view.first : view.first + VISIBLE]):
            box = (left + 4, top + 4 + number * 51, right - 4, top + 50 + number * 51)
            fill = theme.soft if entry == view.chosen else theme.ground
            self._rect(box, fill=fill, outline=theme.faint)
            self._text(entry, ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2), theme.ink)
            self._controls[entry] = box

    def _sheet(self, box: Rect) -> None:
        """Draw the document: its name, and lines that stand for its text."""
        view, theme = self._view, self._theme
        left, top, right, _ = box
        self._rect(box, fill=theme.card, outline=theme.faint)
        self._controls.setdefault(CONTENT, box)
        shown = view.file or view.chosen
        middle = ((left + right) / 2, top + 24)
        self._text(shown or "Nothing is open", middle, theme.ink, pixels=16)
        lengths = random.Random(f"lines of {shown}")
        for y in range(top + 56, top + 248, 24) if shown else ():
            end = left + 24 + (right - left - 48) * lengths.uniform(0.4, 1)
            self._rect((left + 24, y, end, y + 6), fill=theme.soft)

    def _dialog(self) -> None:
        view, theme = self._view, self._theme
        left, top, right, _ = _DIALOG
        self._rect(_DIALOG, fill=theme.card, outline=theme.accent, width=2)
        self._text(view.question, ((left + right) / 2, top + 24), theme.ink)
        field = (left + 20, top + 46, right - 20, top + 82)
        self._rect(field, fill=theme.ground, outline=theme.ink)
        self._canvas.line(((left + 27, top + 54), (left + 27, top + 74)), theme.ink)
        self._text(view.typed, ((left + right) / 2, top + 64), theme.ink)
        self._controls[FIELD] = field
        self._button(CANCEL, (left + 20, top + 104, left + 140, top + 138))
        self._button(OK, (right - 140, top + 104, right - 20, top + 138), strong=True)

    def _button(self, name: str, box: Rect, *, strong: bool = False) -> None:
        theme = self._theme
        fill, ink = (theme.accent, WHITE) if strong else (theme.card, theme.ink)
        self._rect(box, fill=fill, outline=theme.faint, radius=6)
        self._text(name, ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2), ink)
        self._controls[name] = box

    def _rect(self, box: Span, **style: Any) -> None:
        """Draw a rectangle whose right and bottom edge are inside, as a recorder keeps them."""
        self._canvas.rect((box[0], box[1], box[2] + 1, box[3] + 1), **style)

    def _text(self, text: str, at: Spot, fill: Colour, *, pixels: int = _TEXT) -> None:
        if text:
            self._canvas.text(text, at, pixels=pixels, fill=fill)

"""The made-up desktop apps: names, categories of Table 10, buttons and what they list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Listed = Literal["people", "topics", "dishes", "windows", "files", "none"]
"""What an app's window lists; the words are chosen by the pool's seed."""


@dataclass(frozen=True, slots=True)
class App:
    """An app that nobody has made.

    Attributes:
        name: of the app.
        category: one of Table 10's (OmniBench, appendix A.4).
        buttons: of the tool bar, at most six.
        listed: what its window lists.
        icon: a name of `omnidata.data.sample.icons.ICONS`.
    """

    name: str
    category: str
    buttons: tuple[str, ...]
    listed: Listed
    icon: str


_APPS = (
    App("Slidora", "Office", ("New", "Open", "Insert", "Paste", "Notes", "Export"), "none", "film"),
    App("Pagewell", "Office", ("New", "Open", "Insert", "Paste", "Style", "Export"), "none", "bag"),
    App("Gridley", "Office", ("New", "Open", "Sort", "Total", "Copy", "Chart"), "none", "box"),
    App(
        "Pixelry",
        "Multimedia Editing",
        ("Open", "Filter", "Crop", "Caption", "Copy", "Save"),
        "none",
        "camera",
    ),
    App(
        "Reelsmith",
        "Multimedia Editing",
        ("Open", "Slides", "Trim", "Music", "Sound", "Render"),
        "none",
        "play",
    ),
    App(
        "Tunebox",
        "Multimedia Playback",
        ("Open", "Play", "Loop", "Rate"),
        "none",
        "headphones",
    ),
    App(
        "Postling",
        "Social Communication",
        ("New", "Attach", "Save", "Copy", "Send"),
        "people",
        "send",
    ),
    App("Cabinet", "System Management", ("Go", "Copy", "Eject", "Sort"), "files", "door"),
    App("Packrat", "Utility Tools", ("Create", "Add", "Extract", "Pack"), "none", "cart"),
    App("Wordhop", "Utility Tools", ("Paste", "Open", "Translate", "Copy"), "none", "share"),
    App("Jotwell", "Note Management", ("New", "Paste", "Attach", "Copy"), "topics", "note"),
    App("Tickoff", "Task Management", ("Add", "Star", "Import", "Due"), "topics", "check"),
    App("Snaplet", "Screen Capture", ("Shot", "Record", "Clip", "Save"), "windows", "shield"),
    App(
        "Webway",
        "Web Browsing",
        ("Search", "Picture", "Summary", "Data", "Song"),
        "topics",
        "search",
    ),
    App("Codewright", "Programming", ("Open", "Format", "Run", "Deploy"), "none", "lamp"),
    App("Larder", "Lifestyle", ("Shopping", "Export", "Photo", "Share"), "dishes", "oven"),
)

APPS: Mapping[str, App] = {app.name: app for app in _APPS}
"""By name: 16 apps of all 12 categories."""

PEOPLE = ("Emily", "Noor", "Tomas", "Aiko", "Lena", "Kofi", "Marta", "Ravi", "Sven", "Ines")
TOPICS = ("harbours", "bridges", "glaciers", "bees", "tea", "kites", "rivers", "owls", "clay")
DISHES = ("lentil soup", "plum tart", "rice salad", "bean stew", "nut bread", "fig cake")
WINDOWS = ("Weather", "Calendar", "Timetable", "Budget", "Gallery", "Player", "Inbox")
STEMS = ("spring", "north", "river", "amber", "delta", "lunar", "cedar", "quartz", "maple", "orbit")
FILTERS = ("Cartoon", "Sepia", "Mist", "Ink", "Noon", "Frost")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
LANGUAGES = ("German", "Spanish", "French", "Italian", "Dutch")

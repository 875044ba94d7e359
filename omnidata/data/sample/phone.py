"""Screens that belong to the phone or that every app has."""

from __future__ import annotations

from collections.abc import Sequence

from omnidata.data.sample.canvas import GREEN, HEIGHT, WHITE, WIDTH, Canvas, Screen, Theme, shade

_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
APPS = {"Chirp": "phone", "Sonora": "note", "Reelio": "film", "Parcelo": "bag", "Homely": "home"}
"""The made-up apps and their icons."""


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
    for line, keys in enumerate(_KEYS):
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

"""Actions that a dialect or a benchmark cannot express.

A dialect writes each action of a catalogue or says that it cannot, and so does the benchmark.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, cast, get_args

from omnidata.actions import Action, Direction, Point
from omnidata.dialects import CannotSayError, Dialect, UnreadError, get_dialect
from omnidata.errors import UsageError, plural
from omnidata.tasks import get_task
from omnidata.tasks.asking_in_dialect import PLATFORMS, AskingInDialect
from omnidata.types import Step

_SCREEN: Final = (1000, 1000)
_HERE: Final = (Point(500, 400, "px"),)
_THERE: Final = (Point(300, 200, "px"),)
CATALOGUE: Final[tuple[tuple[str, Action], ...]] = (
    ("tap", Action("tap", _HERE)),
    ("double tap", Action("tap", _HERE, count=2)),
    ("triple click", Action("tap", _HERE, count=3)),
    ("right click", Action("tap", _HERE, button="right")),
    ("middle click", Action("tap", _HERE, button="middle")),
    ("click where the pointer is", Action("tap")),
    ("click with a key held", Action("tap", _HERE, held=("ctrl",))),
    ("long press", Action("long_press", _HERE)),
    *((f"swipe {way}", Action("swipe", direction=way)) for way in get_args(Direction)),
    ("swipe from place to place", Action("swipe", _HERE, _THERE)),
    *(
        (f"scroll {way}", Action("scroll", _HERE, direction=way, amount=3))
        for way in get_args(Direction)
    ),
    ("drag", Action("drag", _HERE, _THERE)),
    ("move", Action("move", _HERE)),
    ("press the button down", Action("hold", _HERE)),
    ("let the button go", Action("release", _HERE)),
    ("hold a key", Action("hold", keys=("shift",))),
    ("type", Action("type", text="text")),
    ("type at a place", Action("type", _HERE, text="text")),
    ("key", Action("keys", keys=("tab",))),
    ("hotkey", Action("hotkey", keys=("ctrl", "c"))),
    ("enter", Action("enter")),
    ("back", Action("back")),
    ("home", Action("home")),
    ("recent apps", Action("recent")),
    ("open an app", Action("open_app", app="Clock")),
    ("open a page", Action("open_url", url="https://example.org")),
    ("select from a list", Action("select", _HERE, text="one")),
    ("wait", Action("wait")),
    ("nothing", Action("none")),
    ("look at the screen", Action("look")),
    ("call the user", Action("ask", text="which one?")),
    ("done: success", Action("done", status="success")),
    ("done: failure", Action("done", status="failure")),
    ("done with an answer", Action("done", text="42", status="success")),
)
"""Actions of all kinds, each under a name; places are pixels of a screen of 1000 x 1000."""


def describe(dialect: Dialect) -> dict[str, Any]:
    """Return a dialect as JSON values: its checkpoints, platforms, places and pictures."""
    frame = dialect.frame
    limits = [
        f"sides in multiples of {frame.factor}" if frame.factor > 1 else "",
        f"at least {frame.min_pixels:,} pixels" if frame.min_pixels else "",
        f"at most {frame.max_pixels:,} pixels" if frame.max_pixels else "",
        f"longest side {frame.longest} pixels" if frame.longest else "",
    ]
    past: dict[str, list[str]] = {}
    for platform in dialect.says:
        layout = dialect.layout_on(platform)
        parts = ["turns" if layout.turns else "text", plural(layout.screenshots, "screenshot")]
        if layout.actions is not None:
            parts.append(plural(layout.actions, "action"))
        past.setdefault(", ".join(parts), []).append(platform)
    by_platform = "; ".join(f"{', '.join(where)}: {layout}" for layout, where in past.items())
    return {
        "title": dialect.title,
        "checkpoints": list(dialect.checkpoints),
        "platforms": list(dialect.says),
        "places": frame.space,
        "pictures": [limit for limit in limits if limit],
        "past": by_platform if len(past) > 1 else next(iter(past)),
        "strict": dialect.source,
    }


def find_gaps(task: str, name: str) -> dict[str, Any]:
    """Return the actions of `CATALOGUE` that one side expresses and the other cannot.

    Args:
        task: the benchmark's name.
        name: of the dialect.

    Returns:
        "title"; if the dialect can ask about the task at all, "dialect_cannot_say" of the task's
        actions and "task_cannot_express" of the dialect's; else "refused", with the reason.

    Raises:
        UsageError: there is no such task or dialect.
    """
    dialect = get_dialect(name)
    get_task(task)
    try:
        spoken = cast("AskingInDialect", get_task(task, {"dialect": name}))
    except UsageError as error:
        return {"title": dialect.title, "refused": error.what}
    if spoken.speech.asked == "point":
        return {"title": dialect.title, "dialect_cannot_say": [], "task_cannot_express": []}
    tags = {} if spoken.benchmark.card.platform in PLATFORMS else {"platform": "web"}
    step = Step("catalogue", "catalogue", 0, 1, "", _SCREEN, {}, (), (), None, tags, {})
    platform, fed = spoken.platform_of(step), dialect.frame.fed_size(_SCREEN)
    by_dialect, by_task = set(), set()
    for title, action in CATALOGUE:
        placed = spoken.in_dialect_unit(action, _SCREEN)
        with suppress(CannotSayError, UnreadError):
            spoken.dialect.read(spoken.dialect.write([placed], fed, platform), fed)
            by_dialect.add(title)
        with suppress(CannotSayError):
            spoken.speech.adopt([spoken.reader.in_unit(placed, _SCREEN)], step, None)
            by_task.add(title)
    return {
        "title": dialect.title,
        "dialect_cannot_say": [title for title, _ in CATALOGUE if title in by_task - by_dialect],
        "task_cannot_express": [title for title, _ in CATALOGUE if title in by_dialect - by_task],
    }

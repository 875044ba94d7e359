"""What a dialect cannot say of a benchmark's actions, and the benchmark of the dialect's.

Both are asked: a dialect writes each action of a catalogue or says that it cannot, and so does the
benchmark. Nothing is told from names.
"""

from __future__ import annotations

from typing import Any, Final, cast, get_args

from omnidata.actions import Action, Direction, Point
from omnidata.dialects import CannotSayError, Dialect, Platform, UnreadError, get_dialect
from omnidata.errors import UsageError, plural
from omnidata.tasks import get_task
from omnidata.tasks.base import Benchmark
from omnidata.tasks.dialect_option import PLATFORMS, InDialect
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


def described(dialect: Dialect) -> dict[str, Any]:
    """A dialect as JSON values: for whom it is, how it reads, how pictures are fed."""
    frame = dialect.frame
    limits = [
        f"sides in multiples of {frame.factor}" if frame.factor > 1 else "",
        f"at least {frame.min_pixels:,} pixels" if frame.min_pixels else "",
        f"at most {frame.max_pixels:,} pixels" if frame.max_pixels else "",
        f"longest side {frame.longest} pixels" if frame.longest else "",
    ]
    return {
        "title": dialect.title,
        "checkpoints": list(dialect.checkpoints),
        "platforms": list(dialect.says),
        "places": frame.space,
        "pictures": [limit for limit in limits if limit],
        "past": _past(dialect),
        "strict": dialect.source,
    }


def _past(dialect: Dialect) -> str:
    """How prompts tell of the past; by platform where it differs."""
    found: dict[str, list[str]] = {}
    for platform in dialect.says:
        layout = dialect.layout_on(platform)
        said = ["turns" if layout.turns else "text", plural(layout.screenshots, "screenshot")]
        if layout.actions is not None:
            said.append(plural(layout.actions, "action"))
        found.setdefault(", ".join(said), []).append(platform)
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{', '.join(platforms)}: {said}" for said, platforms in found.items())


def gaps(task: str, name: str) -> dict[str, Any]:
    """What one side says and the other cannot, by the names of `CATALOGUE`.

    Args:
        task: the benchmark's name.
        name: of the dialect.

    Returns:
        "title"; where the dialect can ask about the task at all, "dialect_cannot_say" of the task's
        actions and "task_cannot_express" of the dialect's; else "refused", which says why.

    Raises:
        UsageError: there is no such task or dialect.
    """
    dialect = get_dialect(name)
    get_task(task)
    try:
        spoken = cast("InDialect", get_task(task, {"dialect": name}))
    except UsageError as error:
        return {"title": dialect.title, "refused": error.what}
    own = cast("Benchmark", spoken.task)
    if own.asked == "point":
        return {"title": dialect.title, "dialect_cannot_say": [], "task_cannot_express": []}
    step = _step(own)
    platform = spoken.platform_of(step)
    said = {title for title, action in CATALOGUE if _says(spoken, step, action, platform)}
    known = {title for title, action in CATALOGUE if _expresses(spoken, own, step, action)}
    return {
        "title": dialect.title,
        "dialect_cannot_say": [title for title, _ in CATALOGUE if title in known - said],
        "task_cannot_express": [title for title, _ in CATALOGUE if title in said - known],
    }


def _step(own: Benchmark) -> Step:
    tags = {} if own.platform in PLATFORMS else {"platform": "web"}
    return Step("catalogue", "catalogue", 0, 1, "", _SCREEN, {}, (), (), None, tags, {})


def _says(spoken: InDialect, step: Step, action: Action, platform: Platform) -> bool:
    """Whether the dialect writes the action, and reads it again."""
    fed = spoken.dialect.frame.fed_size(step.screen)
    try:
        text = spoken.dialect.write([spoken.in_dialect_unit(action, step.screen)], fed, platform)
        spoken.dialect.read(text, fed)
    except (CannotSayError, UnreadError):
        return False
    return True


def _expresses(spoken: InDialect, own: Benchmark, step: Step, action: Action) -> bool:
    try:
        own.express([spoken.in_unit(spoken.in_dialect_unit(action, step.screen), step.screen)], step)
    except CannotSayError:
        return False
    return True

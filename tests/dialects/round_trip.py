"""Actions that a dialect may have to say, and what comes back of them."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st
from msgspec.structs import replace

from omnidata.actions import (
    Action,
    Button,
    Direction,
    Kind,
    Point,
    Screen,
    Sense,
    Status,
    finger_way,
)
from omnidata.dialects import CannotSayError, Dialect, Platform

SCREENS: tuple[Screen, ...] = ((1080, 2400), (1920, 1080), (3840, 2160))
"""Portrait, landscape, 4K."""
MOVES = ("swipe", "scroll", "drag")
KEYS = ("enter", "ctrl", "shift", "a", "f5", "pagedown", "+", "tab")


def points(dialect: Dialect, fed: Screen) -> st.SearchStrategy[Point]:
    """Places of a fed picture, whole or not, in the unit of the dialect."""
    width, height = dialect.frame.extent(fed)
    axes = [
        st.integers(0, int(edge)) | st.floats(0, edge).map(lambda value: round(value, 9))
        for edge in (width, height)
    ]
    return st.builds(Point, *axes, st.just(dialect.frame.space))


@st.composite
def actions(draw: st.DrawFn, dialect: Dialect, platform: Platform, fed: Screen) -> Action:
    """Actions of the kinds that the dialect has on a platform."""
    kind: Kind = draw(st.sampled_from(sorted(dialect.says[platform])))
    place = st.tuples(points(dialect, fed))
    maybe = place | st.just(())
    texts = st.text(max_size=30) | st.sampled_from(AWKWARD)
    if kind == "tap":
        return Action(
            kind, draw(place), count=draw(st.sampled_from((1, 1, 2))), button=draw(_BUTTON)
        )
    if kind in ("long_press", "move", "select"):
        return Action(kind, draw(place))
    if kind in MOVES:
        way = draw(st.sampled_from(get_args(Direction)))
        if kind == "drag" or (kind == "swipe" and draw(st.booleans())):
            return Action(kind, draw(place), draw(place))
        return Action(kind, draw(maybe), direction=way, sense=draw(_SENSE))
    if kind == "type":
        return Action(
            kind, draw(maybe), text=draw(texts), submit=draw(st.sampled_from((None, True)))
        )
    if kind in ("keys", "hotkey"):
        least = 2 if kind == "hotkey" else 1
        keys = draw(st.lists(st.sampled_from(KEYS), min_size=least, max_size=4, unique=True))
        return Action(kind, keys=tuple(keys))
    if kind in ("hold", "release"):
        return Action(kind, keys=(draw(st.sampled_from(KEYS)),))
    if kind in ("open_app", "open_url"):
        name = draw(texts)
        return Action(kind, app=name) if kind == "open_app" else Action(kind, url=name)
    if kind == "wait":
        return Action(kind, seconds=draw(st.none() | st.integers(1, 60)))
    if kind == "done":
        return Action(kind, status=draw(_STATUS), text=draw(st.none() | texts))
    return Action(kind)


_BUTTON: st.SearchStrategy[Button] = st.sampled_from(("left", "left", "right"))
_SENSE: st.SearchStrategy[Sense | None] = st.sampled_from((None, "finger", "wheel", "content"))
_STATUS: st.SearchStrategy[Status | None] = st.sampled_from((None, "success", "failure"))
AWKWARD = (
    *("it's", 'say "hi"', "a\nb", "tab\there", "C:\\new\\", "\\", "'", "f('a')", "')", "', x='1'"),
    *("]", "}]", "[1, 2]", "{'a': 1}", "Action: click(start_box='(1,2)')", "a)\n\nb", "\\n", "\n"),
    *(
        "<point>1 2</point>",
        "</function>",
        "</think>",
        "</answer>",
        "汉字",
        "no input text",
        "%",
        "",
    ),
    *("ends in two\n\n", " blanks ", "</parameter>", "<answer>", "', 'action': 'wait'"),
)


def written(dialect: Dialect, action: Action, platform: Platform, fed: Screen) -> str | None:
    """The text of an action; None where the dialect cannot say it."""
    try:
        return dialect.write((action,), fed, platform)
    except CannotSayError:
        return None


def same(said: Action, read: Action, *, silent: tuple[str, ...] = ()) -> bool:
    """Whether what was read is what was said.

    Of moves, it is the way that a finger would go, and the places that both name.

    Args:
        said, read: the two.
        silent: what the dialect leaves out.
    """
    if said.kind in MOVES:
        ends = all(getattr(said, name) in ((), getattr(read, name)) for name in ("start", "end"))
        if said.direction is None:
            return read.kind in MOVES and ends
        return read.kind in MOVES and ends and finger_way(said) == finger_way(read)
    blank: dict[str, Any] = dict.fromkeys(silent)
    return replace(said, **blank) == replace(read, **blank)

"""AndroidControl's accessibility forests: the elements of a screen, and where they are.

A forest is a message of android_env (`android_accessibility_forest.proto` and those it imports);
of its thirty fields per element only what is needed here is read:

    Forest  { repeated Window windows = 1; }
    Window  { Rect bounds_in_screen = 1; Tree tree = 11; }
    Tree    { repeated Node nodes = 1; }
    Node    { Rect bounds_in_screen = 2; string class_name = 3; content_description = 4;
              hint_text = 5; text = 7; bool is_checkable = 12; is_editable = 15; is_enabled = 16;
              is_visible_to_user = 23; }
    Rect    { int32 left = 1; top = 2; right = 3; bottom = 4; }
"""

from __future__ import annotations

from collections.abc import Iterator

from omnidata.loaders.tfrecord import VARINT, fields, inner, signed, whole
from omnidata.tasks.observation import MAX_BYTES, Element

Bounds = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels."""

_MOST = 20_000


def bounds_of(forest: bytes) -> list[Bounds]:
    """The places of windows and elements, each window before its elements.

    That is the order in which AgentCPM-GUI's preparation of the data finds them in the printed
    message. What states no bounds is left out.

    Raises:
        ValueError: the bytes are no forest, or one of more than 20,000 elements or 64 MB.
    """
    if len(forest) > MAX_BYTES:
        raise ValueError(f"the forest has more than {MAX_BYTES} bytes")
    found = []
    for bounds in _bounds(forest):
        found.append(bounds)
        if len(found) > _MOST:
            raise ValueError(f"the forest has more than {_MOST} elements")
    return found


def _bounds(forest: bytes) -> Iterator[Bounds]:
    for window in inner(forest, whole(forest), 1):
        for rect in inner(forest, window, 1):
            yield _rect(forest, rect)
        for tree in inner(forest, window, 11):
            for node in inner(forest, tree, 1):
                for rect in inner(forest, node, 2):
                    yield _rect(forest, rect)


def _rect(forest: bytes, rect: slice) -> Bounds:
    edges = [0, 0, 0, 0]
    for number, kind, value in fields(forest, rect):
        if kind == VARINT and 1 <= number <= 4 and isinstance(value, int):
            edges[number - 1] = signed(value, 32)
    return edges[0], edges[1], edges[2], edges[3]


_BOUNDS, _CLASS, _DESCRIPTION, _HINT, _TEXT = 2, 3, 4, 5, 7
_USABLE = frozenset({12, 15, 16})
_VISIBLE = 23
_PICTURES = ("ImageView", "ImageButton")


def elements_of(forest: bytes) -> list[Element]:
    """The elements of all windows, each before those within it, as the message has them.

    An element's role is its class without the package, its name the content description, and its
    text the text or else the hint.

    Raises:
        ValueError: the bytes are no forest, or one of more than 20,000 elements or 64 MB.
    """
    if len(forest) > MAX_BYTES:
        raise ValueError(f"the forest has more than {MAX_BYTES} bytes")
    found = []
    for window in inner(forest, whole(forest), 1):
        for tree in inner(forest, window, 11):
            for node in inner(forest, tree, 1):
                found.append(_element(forest, node))
                if len(found) > _MOST:
                    raise ValueError(f"the forest has more than {_MOST} elements")
    return found


def _element(forest: bytes, node: slice) -> Element:
    box = (0, 0, 0, 0)
    said: dict[int, str] = {}
    true: set[int] = set()
    for number, kind, value in fields(forest, node):
        if isinstance(value, slice):
            if number == _BOUNDS:
                box = _rect(forest, value)
            elif number in (_CLASS, _DESCRIPTION, _HINT, _TEXT):
                said[number] = forest[value].decode("utf-8", "replace")
        elif kind == VARINT and value:
            true.add(number)
    role = said.get(_CLASS, "").rpartition(".")[2]
    return Element(
        role,
        said.get(_DESCRIPTION, ""),
        said.get(_TEXT) or said.get(_HINT, ""),
        box,
        visible=_VISIBLE in true,
        usable=not _USABLE.isdisjoint(true),
        image=role.endswith(_PICTURES),
    )

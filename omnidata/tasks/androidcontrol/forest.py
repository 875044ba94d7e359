"""AndroidControl's accessibility forests: the elements of a screen, and where they are.

A forest is a message of android_env (`android_accessibility_forest.proto` and those it imports);
of its thirty fields per element only what is needed here is read:

    Forest  { repeated Window windows = 1; }
    Window  { Rect bounds_in_screen = 1; Tree tree = 11; }
    Tree    { repeated Node nodes = 1; }
    Node    { Rect bounds_in_screen = 2; string class_name = 3; content_description = 4;
              hint_text = 5; text = 7; bool is_checkable = 12; is_editable = 15; is_enabled = 16;
              is_scrollable = 21; is_visible_to_user = 23; repeated int32 child_ids = 25; }
    Rect    { int32 left = 1; top = 2; right = 3; bottom = 4; }
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import chain

from omnidata.loaders.protobuf import VARINT, fields, inner, to_signed, whole
from omnidata.tasks.observation import MAX_BYTES, Element

Bounds = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels."""

_MOST = 20_000


def bounds_of(forest: bytes) -> list[Bounds]:
    """Return the places of windows and elements, each window before its elements.

    That is the order in which AgentCPM-GUI's preparation of the data finds them in the printed
    message. Windows and elements without bounds are left out.

    Raises:
        ValueError: the bytes are no forest, or one of more than 20,000 elements or 64 MB.
    """
    found = []
    for window in _windows(forest):
        nodes = (node for tree in inner(forest, window, 11) for node in inner(forest, tree, 1))
        rects = (rect for node in nodes for rect in inner(forest, node, 2))
        for rect in chain(inner(forest, window, 1), rects):
            found.append(_rect(forest, rect))
            if len(found) > _MOST:
                raise ValueError(f"the forest has more than {_MOST} elements")
    return found


def _windows(forest: bytes) -> Iterator[slice]:
    if len(forest) > MAX_BYTES:
        raise ValueError(f"the forest has more than {MAX_BYTES} bytes")
    return inner(forest, whole(forest), 1)


def _rect(forest: bytes, rect: slice) -> Bounds:
    edges = [0, 0, 0, 0]
    for number, kind, value in fields(forest, rect):
        if kind == VARINT and 1 <= number <= 4 and isinstance(value, int):
            edges[number - 1] = to_signed(value, 32)
    return edges[0], edges[1], edges[2], edges[3]


_BOUNDS, _CLASS, _DESCRIPTION, _HINT, _TEXT = 2, 3, 4, 5, 7
_USABLE = frozenset({12, 15, 16})
_SCROLLABLE, _VISIBLE, _CHILDREN = 21, 23, 25
_PICTURES = ("ImageView", "ImageButton")


def elements_of(forest: bytes) -> list[Element]:
    """Return the elements of all windows, each before those within it, as the message has them.

    An element's role is its class without the package, its name the content description, and its
    text the text or else the hint.

    Raises:
        ValueError: the bytes are no forest, or one of more than 20,000 elements or 64 MB.
    """
    return list(map(_element, _nodes(forest)))


def bounds_for_uground(forest: bytes) -> list[Bounds]:
    """Return the places of the elements that UGround's preparation of the data keeps, in order.

    Of AndroidWorld's list, which has elements without children, with a description, or that scroll
    (`forest_to_ui_elements`), these are the ones that are seen, have a text or a description, and
    lie on a screen of 1080 x 2400, whatever the size of this one (`extract_raw.py`). Hints are no
    text, and windows are no elements.

    Raises:
        ValueError: the bytes are no forest, or one of more than 20,000 elements or 64 MB.
    """
    width, height = _UGROUND_SCREEN
    found = []
    for node in _nodes(forest):
        described = node.said.get(_DESCRIPTION)
        listed = _CHILDREN not in node.true or described or _SCROLLABLE in node.true
        left, top, right, bottom = node.box
        if (
            listed
            and _VISIBLE in node.true
            and (described or node.said.get(_TEXT))
            and max(left, 0) < right
            and max(top, 0) < bottom
            and left < width
            and top < height
        ):
            found.append(node.box)
    return found


_UGROUND_SCREEN = (1080, 2400)


@dataclass(frozen=True, slots=True)
class _Node:
    box: Bounds
    said: Mapping[int, str]
    true: Set[int]


def _nodes(forest: bytes) -> Iterator[_Node]:
    count = 0
    for window in _windows(forest):
        for tree in inner(forest, window, 11):
            for node in inner(forest, tree, 1):
                count += 1
                if count > _MOST:
                    raise ValueError(f"the forest has more than {_MOST} elements")
                yield _node(forest, node)


def _node(forest: bytes, node: slice) -> _Node:
    box = (0, 0, 0, 0)
    said: dict[int, str] = {}
    true: set[int] = set()
    for number, kind, value in fields(forest, node):
        if isinstance(value, slice):
            if number == _BOUNDS:
                box = _rect(forest, value)
            elif number in (_CLASS, _DESCRIPTION, _HINT, _TEXT):
                said[number] = forest[value].decode("utf-8", "replace")
            elif number == _CHILDREN and value.stop > value.start:
                true.add(number)
        elif kind == VARINT and (value or number == _CHILDREN):  # a child may have the number 0
            true.add(number)
    return _Node(box, said, true)


def _element(node: _Node) -> Element:
    role = node.said.get(_CLASS, "").rpartition(".")[2]
    return Element(
        role,
        node.said.get(_DESCRIPTION, ""),
        node.said.get(_TEXT) or node.said.get(_HINT, ""),
        node.box,
        visible=_VISIBLE in node.true,
        usable=not _USABLE.isdisjoint(node.true),
        image=role.endswith(_PICTURES),
    )

"""How prompts show a screen: its picture, its accessibility tree, both, or numbered marks.

Source: OSWorld (sections 2.3 and 4.1, Appendices C.3 to C.5, Table 11). A benchmark whose data hold
trees gives the `Element`s of a step's screen (`Benchmark.elements`) and allows `OPTIONS`; the rest
is the same for all of them. A mark stands for the same element whatever the pixels show: OSWorld's
release leaves out elements of one colour, so that its numbers depend on the picture.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from typing import Any, Final, Literal, get_args

from omnidata.actions import Pair, Point, Screen, Space, convert
from omnidata.errors import MediaError, UsageError
from omnidata.tasks.coordinates import Resizing, answer_space
from omnidata.tasks.published import Variation
from omnidata.types import Part, Step

Kind = Literal["screenshot", "a11y", "screenshot+a11y", "som"]

UNLIMITED: Final = "unlimited"
OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "observation": ("screenshot", "a11y", "screenshot+a11y", "som"),
    "a11y_tokens": ("10000", "1500", "3000", "6000", "20000", UNLIMITED),
}
"""The task options; 10,000 tokens are what OSWorld's release keeps of a tree."""

VARIATION: Final = Variation(
    "observation",
    "screenshot",
    {
        "screenshot": "Screenshot",
        "a11y": "A11y tree",
        "screenshot+a11y": "Screenshot + A11y tree",
        "som": "Set-of-Mark",
    },
    "Runs by observation",
    "Inputs",
    besides=frozenset({"a11y_tokens"}),
)
"""The table of `omnidata report`, whose rows OSWorld's Table 5 calls inputs."""

ROLE: Final = "a11y_tree"
"""What the receipt calls the text of a tree, or of the table of marks."""


def effective_options(given: Mapping[str, str], options: dict[str, str]) -> dict[str, str]:
    """Return the options, without these if only the screenshot is shown, as in older runs.

    Args:
        given: as the user wrote them.
        options: those in force.

    Raises:
        UsageError: tokens of no tree are limited, or marks go with a history of answers, in which
            the marks of earlier screens would be named.
    """
    if not OPTIONS.keys() <= options.keys():  # a task's own option may have either name
        return options
    if options["observation"] == "screenshot":
        if "a11y_tokens" in given:
            raise UsageError(
                "a11y_tokens needs an accessibility tree",
                where=f"-T a11y_tokens={given['a11y_tokens']}",
                remedy="leave out a11y_tokens, or add -T observation=a11y",
            )
        return {name: value for name, value in options.items() if name not in OPTIONS}
    if options["observation"] == "som" and options.get("history") == "predicted":
        raise UsageError(
            "answers that name marks cannot be shown as history: another screen has other marks",
            where="-T observation=som history=predicted",
            expected="history=gold or history=none",
        )
    return options


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a screen.

    Attributes:
        role: its kind, in the source's word: "push-button", "Button".
        name, text: its label and its content; empty where it has none.
        box: left, top, right and bottom in pixels of the screen; right and bottom are outside.
        visible: whether it is shown on the screen.
        usable: whether it is enabled, editable, expandable or checkable.
        image: whether it shows a picture, which needs neither name nor text.
    """

    role: str
    name: str
    text: str
    box: tuple[int, int, int, int]
    visible: bool = True
    usable: bool = True
    image: bool = False

    @property
    def centre(self) -> tuple[int, int]:
        """The place of a click, x and y in whole pixels, as OSWorld's release computes it."""
        left, top, right, bottom = self.box
        return left + (right - left) // 2, top + (bottom - top) // 2


def is_kept(element: Element) -> bool:
    """Return whether prompts list an element (Table 11, without its tags, which are the desktop's).

    Examples:
        >>> is_kept(Element("push-button", "Close", "", (1855, 12, 1891, 48)))
        True
        >>> is_kept(Element("push-button", "", "", (1855, 12, 1891, 48)))
        False
    """
    left, top, right, bottom = element.box
    return (
        element.visible
        and element.usable
        and bool(element.name or element.text or element.image)
        and min(left, top) >= 0
        and right > left
        and bottom > top
    )


_TOKEN: Final = re.compile(r" ?[A-Za-z]{1,8}|\d{1,3}|\s+|[^\w\s]{1,2}|.", re.DOTALL)


def tokens(text: str) -> int:
    r"""Return about how many tokens a text has, for no model in particular.

    A token is up to eight letters of a word with the space before it, three digits, two signs, a
    stretch of white space, or any other letter. A model's own count is in its usage.

    Examples:
        >>> tokens("push-button\tClose\t(1855, 12)\n")
        14
    """
    return len(_TOKEN.findall(text))


@dataclass(frozen=True, slots=True)
class Observation:
    """A tree as a prompt has it.

    Attributes:
        kind: the value of the option `observation`.
        text: the table, an element a line; of marks without places.
        elements: those of the lines, in order; the first one has mark 1.
        about: how many elements the tree has, how many the filter kept, how many of these are
            "told" and, where the budget cut some off, "left_out"; and about how many "tokens" the
            table has. With "pixels": "screen" its places are pixels of the screen itself.
    """

    kind: Kind
    text: str
    elements: Sequence[Element]
    about: Mapping[str, Any]


def describe_tree(
    elements: Sequence[Element],
    kind: Kind,
    *,
    step: Step,
    space: Space = "px",
    most: int | None = None,
) -> Observation:
    """Return the table of a tree: tag, name, text, position, size; or index, tag, name, text.

    Args:
        elements: all of the tree, in its order.
        kind: any but "screenshot".
        step: whose screen it is.
        space: the unit of positions and sizes.
        most: tokens of the table; None for no limit. Whole lines are left out at its end.

    Raises:
        MediaError: the tree has no element, or places in shares of a screen of unknown size are
            asked for.
    """
    if not elements:
        raise broken_tree(step, "the accessibility tree has no element")
    if kind != "som" and space != "px" and min(step.screen) < 1:
        raise broken_tree(step, "the size of the screen is unknown")
    kept = list(filter(is_kept, elements))
    head = _MARKED if kind == "som" else _PLACED
    lines = [
        "\t".join([str(number), *_words(one)]) + "\n"
        if kind == "som"
        else _tree_line(one, step.screen, space)
        for number, one in enumerate(kept, 1)
    ]
    lengths = accumulate(map(tokens, lines), initial=tokens(head))
    shown = len(list(takewhile(lambda length: most is None or length <= most, lengths))) - 1
    shown = max(shown, 0)
    table = "".join([head, *lines[:shown]])
    about: dict[str, Any] = {"role": ROLE, "elements": len(elements), "kept": len(kept)}
    about |= {"told": shown, "tokens": tokens(table)}
    if shown < len(kept):
        about["left_out"] = len(kept) - shown
        table += "[...]\n"
    if kind != "som" and space == "px":
        about["pixels"] = "screen"
    return Observation(kind, table, kept[:shown], about)


_PLACED: Final = "tag\tname\ttext\tposition (top-left x&y)\tsize (w&h)\n"
_MARKED: Final = "index\ttag\tname\ttext\n"


def _tree_line(element: Element, screen: Screen, space: Space) -> str:
    left, top, right, bottom = element.box
    sides: list[Pair] = [(left, top), (right - left, bottom - top)]
    if space != "px":
        found = (convert(Point(*side, "px"), space, screen) for side in sides)
        digits = 4 if space == "rel" else None
        sides = [(round(point.x, digits), round(point.y, digits)) for point in found]
    return "\t".join([*_words(element), *(f"({one:g}, {other:g})" for one, other in sides)]) + "\n"


def _words(element: Element) -> list[str]:
    return [" ".join(one.split()) for one in (element.role, element.name, element.text)]


MAX_BYTES: Final = 64 * 1024**2
"""Of a tree."""


def pack(tree: bytes) -> str:
    """Return a tree as a text for a row, a tenth of its size.

    Examples:
        >>> unpack(pack(bytes(1000))) == bytes(1000)
        True
    """
    return base64.b64encode(zlib.compress(tree, 1)).decode("ascii")


def unpack(text: str) -> bytes:
    """Return the tree of a text from `pack`.

    Raises:
        ValueError: the text is not from `pack`, or the tree has more than 64 MB.
    """
    try:
        inflate = zlib.decompressobj()
        tree = inflate.decompress(base64.b64decode(text, validate=True), MAX_BYTES + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"the text is not a packed tree ({error})") from None
    if not inflate.eof or len(tree) > MAX_BYTES:
        raise ValueError(f"the tree is cut, or has more than {MAX_BYTES} bytes")
    return tree


def broken_tree(step: Step, what: str) -> MediaError:
    """Return the error for a step without a readable tree."""
    return MediaError(
        what,
        where=step.sample_id,
        expected="an accessibility tree with at least one element",
        remedy="download or record the tree again, ask with -T observation=screenshot, or leave "
        "the step out with --exclude",
    )


# The words of a prompt, for a benchmark without its own.

TELLS_PLACES: Final = ("a11y", "screenshot+a11y")
"""The kinds that list positions: pixels are then those of the screen itself, whatever the size of
the sent screenshot."""
_NOUNS: Final[Mapping[Kind, tuple[str, str]]] = {
    "screenshot": ("a ", "screenshot"),
    "a11y": ("an ", "accessibility tree"),
    "screenshot+a11y": ("a ", "screenshot and accessibility tree"),
    "som": ("a ", "screenshot with numbered marks"),
}
_SHOT: Final = re.compile(r"\b(a )?screenshot\b")
_UNITS: Final[Mapping[Space, str]] = {
    "norm1000": "from 0 to 1000 of the screen's width and height",
    "rel": "from 0 to 1 of the screen's width and height",
    "px": "in pixels of the screen",
}
_TREE: Final = "Accessibility tree of the current screen; positions and sizes are {}:\n"
_TABLE: Final = (
    'The elements that have a numbered mark in the screenshot. Write "tag_N" in place of '
    "coordinates to name the element with mark N:\n"
)


def reword(text: str, kind: Kind) -> str:
    """Return a prompt with the word for this kind in place of "screenshot".

    OSWorld's own prompts differ in the same way (Appendix C.2.1).

    Examples:
        >>> reword("You get a screenshot. Look at the screenshot.", "a11y")
        'You get an accessibility tree. Look at the accessibility tree.'
    """
    article, noun = _NOUNS[kind]
    if kind in TELLS_PLACES:
        text = text.replace("of the screenshot", "of the screen")
    return _SHOT.sub(lambda found: (article if found[1] else "") + noun, text)


def texts(kind: Kind) -> Sequence[str]:
    """Return the texts around trees for the hash of a prompt; empty for screenshots."""
    return () if kind == "screenshot" else (_PLACED, _MARKED, _TREE, _TABLE, *_UNITS.values())


def parts_of(seen: Observation, media: Sequence[Part], space: Space) -> tuple[Part, ...]:
    """Return the media of a prompt with the observation in place of the screenshot.

    Args:
        seen: the tree.
        media: the parts of a prompt; the screenshot has the role of that name.
        space: the unit of positions and sizes.
    """
    head = _TABLE if seen.kind == "som" else _TREE.format(_UNITS[space])
    tree = Part("text", head + seen.text, about=seen.about)
    pictures = (
        screenshot_part(seen, part) if part.role == "screenshot" else part for part in media
    )
    return (*filter(None, pictures), tree)


def screenshot_part(seen: Observation, part: Part) -> Part | None:
    """Return the screenshot with its marks, unchanged, or None."""
    if seen.kind == "a11y":
        return None
    if seen.kind != "som" or part.media is None:
        return part
    marks = tuple(element.box for element in seen.elements)
    return replace(part, media=replace(part.media, marks=marks))


class ScreenDisplay:
    """How a prompt shows the screen of a step, by the options of `OPTIONS`.

    Attributes:
        kind: the value of the option `observation`.

    Args:
        options: of the benchmark; without these, prompts have only the screenshot.
        elements: returns the elements of a step's screen: its whole accessibility tree, in order.
            Raises a `MediaError` if the step has no readable tree.
    """

    def __init__(
        self, options: Mapping[str, str], elements: Callable[[Step], Sequence[Element]] | None
    ) -> None:
        named = options["observation"] if OPTIONS.keys() <= options.keys() else "screenshot"
        self.kind: Kind = next(kind for kind in get_args(Kind) if kind == named)
        self._space = answer_space(options) or "px"
        most = options.get("a11y_tokens", UNLIMITED)
        self._most = int(most) if most.isdecimal() else None
        self._elements = elements

    def observation(self, step: Step) -> Observation | None:
        """Return the tree as the prompt has it; None if the prompt has only the screenshot.

        Raises:
            MediaError: the step has no readable tree.
        """
        if self.kind == "screenshot" or self._elements is None:
            return None
        return describe_tree(
            self._elements(step), self.kind, step=step, space=self._space, most=self._most
        )

    def marked_elements(self, step: Step) -> Sequence[Element]:
        """Return the elements with marks, in the order of their numbers."""
        if self.kind != "som":
            return ()
        try:
            found = self.observation(step)
        except MediaError:
            return ()
        return found.elements if found else ()

    def parts(self, step: Step, media: Sequence[Part]) -> Sequence[Part]:
        """Return the media of a prompt, with the screenshot replaced according to `observation`.

        Raises:
            MediaError: the step has no readable tree.
        """
        found = self.observation(step)
        return parts_of(found, media, self._space) if found else media


# Answers that name a mark.


def tag_at(elements: Sequence[Element], place: Pair) -> str | None:
    """Return the mark of the smallest element that holds a place; None if none does.

    Args:
        elements: those with marks, in order.
        place: x and y in pixels of the screen.

    Examples:
        >>> window = Element("frame", "Files", "", (0, 0, 100, 100))
        >>> button = Element("push-button", "Close", "", (90, 0, 100, 10))
        >>> tag_at([window, button], (95, 5)), tag_at([window, button], (5, 5))
        ('tag_2', 'tag_1')
    """
    x, y = place
    sizes = {
        (right - left) * (bottom - top): number
        for number, (left, top, right, bottom) in reversed(
            [*enumerate((element.box for element in elements), 1)]
        )
        if left <= x < right and top <= y < bottom
    }
    return f"tag_{sizes[min(sizes)]}" if sizes else None


def tags(
    elements: Sequence[Element],
    screen: Screen,
    acted: Sequence[Pair],
    *,
    space: Space = "px",
    resized: Resizing | None = None,
) -> dict[str, Pair]:
    """Return the place of each mark, in the unit of answers.

    It is the middle of the element. The smallest element around a place where the expert acted has
    that place, so an answer with this element is right whatever its size.

    Args:
        elements: those with marks, in order.
        screen: width and height in pixels.
        acted: where the expert acted, in pixels of the screen.
        space: the unit of answers; shares of a screen of unknown size have no places.
        resized: how the picture was resized; answers in pixels are in those of the sent one.

    Examples:
        >>> field = Element("entry", "Search", "", (0, 0, 100, 10))
        >>> tags([field], (200, 100), [(95, 5)]), tags([field], (200, 100), [(120, 5)])
        ({'tag_1': (95, 5)}, {'tag_1': (50, 5)})
    """
    found: dict[str, Pair] = {f"tag_{n}": one.centre for n, one in enumerate(elements, 1)}
    for place in reversed(acted):
        if name := tag_at(elements, place):
            found[name] = place
    if space == "px":
        return {name: resized.to_sent(at) for name, at in found.items()} if resized else found
    if min(screen) < 1:
        return {}
    points = {name: convert(Point(*at, "px"), space, screen) for name, at in found.items()}
    return {name: (point.x, point.y) for name, point in points.items()}


def resolve_mark(body: Mapping[str, Any], places: Mapping[str, Pair]) -> Mapping[str, Any]:
    """Return an answer in JSON with the place of its mark as the coordinate.

    Examples:
        >>> resolve_mark({"action_type": "click", "coordinate": "tag_2"}, {"tag_2": (5, 7)})
        {'action_type': 'click', 'coordinate': [5, 7]}
    """
    named = body.get("coordinate")
    if not isinstance(named, str) or named not in places:
        return body
    return {**body, "coordinate": list(places[named])}

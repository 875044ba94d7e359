"""OSWorld's accessibility trees: XML of its server, beside the screenshots.

Source: OSWorld, Appendices A.2.2 and C.4. The release does not keep the trees; here the tree of
`step_1.png` is `step_1.xml` in the same folder. A document with a DTD, which could define entities,
is refused.
"""

from __future__ import annotations

import re
from typing import Final
from xml.parsers import expat

from omnidata.tasks.observation import MAX_BYTES, Element

SUFFIX: Final = ".xml"

_MOST: Final = 200_000
_DEEPEST: Final = 500
_PAIR: Final = re.compile(r"\(\s*(-?\d{1,9})\s*,\s*(-?\d{1,9})\s*\)", re.ASCII)
_ENDS: Final = (
    *("item", "button", "heading", "label", "scrollbar", "searchbox", "textbox", "link"),
    *("tabelement", "tablement", "textfield", "textarea", "menu"),
)
_TAGS: Final = frozenset(
    {
        *("alert", "canvas", "checkbox", "check-box", "combo-box", "entry", "icon", "image"),
        *("paragraph", "scroll-bar", "section", "slider", "static", "table-cell", "terminal"),
        *("text", "netuiribbontab", "start", "trayclockwclass", "traydummysearchcontrol"),
        *("uiimage", "uiproperty", "uiribboncommandbar"),
    }
)
"""Table 11, with the spellings of the release's code where they differ."""


def _is_shown(tag: str) -> bool:
    return tag.startswith("document") or tag.endswith(_ENDS) or tag in _TAGS


def read_tree(content: bytes) -> list[Element]:
    """Return the elements of a tree with a tag of Table 11, in the order of the document.

    Args:
        content: XML; attributes lie in namespaces for states, for places (`screencoord`, `size`)
            and for values, whose names differ between versions and systems. "showing" is asked of
            Ubuntu alone.

    Raises:
        ValueError: it is no XML, declares a document type, or has more than 64 MB, 200,000 elements
            or 500 levels.
    """
    if len(content) > MAX_BYTES:
        raise ValueError(f"the tree has more than {MAX_BYTES} bytes")
    reader = _Reader()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = reader.doctype
    parser.buffer_text = True
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, LookupError) as error:  # a LookupError: an unknown encoding
        raise ValueError(f"it is no XML ({error})") from None
    return [element for element in reader.found if element is not None]


class _Reader:
    def __init__(self) -> None:
        self.found: list[Element | None] = []
        self._open: list[tuple[int, str, dict[str, str], list[str]]] = []
        self._is_before_children = False

    def doctype(self, *declared: object) -> None:
        raise ValueError("it declares a document type, which no accessibility tree has")

    def start(self, name: str, given: dict[str, str]) -> None:
        if len(self.found) >= _MOST or len(self._open) >= _DEEPEST:
            raise ValueError(f"it has more than {_MOST} elements or {_DEEPEST} levels")
        self._open.append((len(self.found), name.rpartition(" ")[2], given, []))
        self.found.append(None)
        self._is_before_children = True

    def text(self, data: str) -> None:
        if self._is_before_children:
            self._open[-1][3].append(data)

    def end(self, name: str) -> None:
        place, tag, given, said = self._open.pop()
        self._is_before_children = False
        if _is_shown(tag):
            self.found[place] = _element(tag, given, "".join(said).strip())


def _element(tag: str, given: dict[str, str], said: str) -> Element:
    facts: dict[tuple[str, str], str] = {}  # by kind and name; plain attributes have no kind
    on_windows = False
    for key, value in given.items():
        namespace, _, name = key.rpartition(" ")
        kinds = (word for word in ("state", "component", "value", "class") if word in namespace)
        facts[next(kinds, "other") if namespace else "", name] = value
        on_windows = on_windows or "windows" in namespace
    states = {name for (kind, name), value in facts.items() if (kind, value) == ("state", "true")}
    left, top = _pair(facts.get(("component", "screencoord"), ""))
    width, height = _pair(facts.get(("component", "size"), ""))
    typed = facts.get(("class", "class"), "").endswith("EditWrapper")
    return Element(
        tag,
        facts.get(("", "name"), ""),
        said or (facts.get(("value", "value"), "") if typed else ""),
        (left, top, left + width, top + height),
        visible="visible" in states and (on_windows or "showing" in states),
        usable=not states.isdisjoint(("enabled", "editable", "expandable", "checkable")),
        image=facts.get(("", "image")) == "true",
    )


def _pair(text: str) -> tuple[int, int]:
    found = _PAIR.fullmatch(text.strip())
    return (int(found[1]), int(found[2])) if found else (-1, -1)

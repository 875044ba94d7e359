"""OSWorld's accessibility trees: read from XML that nobody trusts, told, and marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.data.convert import convert
from omnidata.errors import MediaError
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.observation import Element, pack
from omnidata.types import Step
from tests.loaders.osworld import line, picture, rollout

UBUNTU = "https://accessibility.ubuntu.example.org/ns"
OLDER = "uri:deskat"
STATES = ("showing", "visible", "enabled")
Node = Mapping[str, Any]


def xml(*nodes: Node, system: str = UBUNTU) -> bytes:
    """A desktop with elements: a tag, a box, and a name, text or states that differ from usual."""
    states, places = f"{system}/state", f"{system}/component"
    if system == OLDER:
        states, places = (
            "uri:deskat:state.at-spi.gnome.org",
            "uri:deskat:component.at-spi.gnome.org",
        )
    found = [f'<desktop-frame xmlns:st="{states}" xmlns:cp="{places}">']
    for node in nodes:
        left, top, width, height = node["box"]
        true = "".join(f' st:{name}="true"' for name in node.get("states", STATES))
        place = f' cp:screencoord="({left}, {top})" cp:size="({width}, {height})"'
        head = f"{node['tag']} name={quoteattr(node.get('name', ''))}{true}{place}"
        found.append(f"<{head}>{node.get('text', '')}</{node['tag']}>")
    return ("".join(found) + "</desktop-frame>").encode()


FRAME = {"tag": "document-web", "name": "Page", "box": (0, 0, 192, 108)}
ENTRY = {"tag": "entry", "name": "Search", "text": "te\nas", "box": (20, 40, 160, 20)}
BUTTON = {"tag": "push-button", "name": "Close", "box": (180, 0, 12, 12)}
FILLER = {"tag": "filler", "name": "Box", "box": (0, 0, 9, 9)}
HIDDEN = {"tag": "label", "name": "Gone", "box": (0, 0, 9, 9), "states": ("enabled", "visible")}
TREE = xml(FRAME, ENTRY, BUTTON, FILLER, HIDDEN)


def seen(content: bytes) -> Step:
    source = {"accessibility_tree": pack(content)}
    return Step("s", "e", 0, 1, "", (192, 108), {}, (), (), None, {}, source)


def read_tree(content: bytes) -> Sequence[Element]:
    task: Any = get_task("osworld")
    return list(task.benchmark.elements(seen(content)))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two turns, a click at the right of the entry and one elsewhere; the second has no tree."""
    rows = [line(1, "pyautogui.click(170, 50)"), line(2, "pyautogui.click(3, 100)")]
    folder = rollout(tmp_path / "data", *rows)
    (folder / "step_0.png").write_bytes(picture(0))
    (folder / "step_0.xml").write_bytes(TREE)
    return tmp_path / "data"


def asked(data: Path, **options: str) -> tuple[Asking, Step, Step]:
    task = get_task("osworld", options)
    first, second = task.load(data).steps
    return task, first, second


def exact(task: Asking, step: Step, code: str) -> Any:
    judged = task.profiles["osworld-step"].judge(step, f"```python\n{code}\n```")
    return judged.values[1]


@pytest.mark.parametrize("system", [UBUNTU, OLDER, UBUNTU.replace("ubuntu", "windows")])
def test_elements_are_read_from_either_spelling_of_the_namespaces(system: str) -> None:
    content = xml(FRAME, ENTRY, BUTTON, FILLER, HIDDEN, system=system)
    found = read_tree(content)
    assert [element.role for element in found] == ["document-web", "entry", "push-button", "label"]
    assert found[1] == Element("entry", "Search", "te\nas", (20, 40, 180, 60))
    _, user = get_task("osworld", {"observation": "som"}).conversation(seen(content))
    rows = [line.split("\t") for line in user.parts[0].text.splitlines()]
    told = [cells[2] for cells in rows if cells[0].isdecimal()]
    on_windows = ["Gone"] if "windows" in system else []  # nothing is said to be showing there
    assert told == ["Page", "Search", "Close", *on_windows]


def test_tags_are_those_of_table_11() -> None:
    told = ["document-frame", "menu-item", "list-item", "radio-button", "heading", "label"]
    told += ["scroll-bar", "link", "entry", "icon"]
    others = ("filler", "panel", "frame", "window", "tool-bar", "unknown")
    found = read_tree(xml(*({**BUTTON, "tag": tag} for tag in (*told, *others))))
    assert [one.role for one in found] == told


BOMB = b'<!DOCTYPE a [<!ENTITY b "x"><!ENTITY c "&b;&b;">]><a name="&c;"/>'


UNKNOWN = b'<?xml version="1.0" encoding="klingon"?><a/>'
"""An encoding of which Python's codecs say that they know none."""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (BOMB, "document type"),
        (b"<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>", "document type"),
        (b"<a>" * 501 + b"</a>" * 501, "500 levels"),
        (b"<a><b></a>", "no XML"),
        (b"", "no XML"),
        (TREE[:-3], "no XML"),
        (UNKNOWN, "unknown encoding"),
    ],
)
def test_what_is_no_tree_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(MediaError, match=said):
        read_tree(content)


def test_a_tree_of_too_many_elements_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnidata.tasks.osworld.accessibility._MOST", 5)
    with pytest.raises(MediaError, match="more than 5 elements"):
        read_tree(TREE)


@given(st.one_of(st.binary(), st.text().map(str.encode), st.integers(0, len(TREE)).map(
    lambda at: TREE[:at] + b"<" + TREE[at:]
)))  # fmt: skip
def test_no_bytes_make_the_reader_raise_anything_else(content: bytes) -> None:
    try:
        read_tree(content)
    except MediaError as error:
        assert error.what


def test_the_prompt_is_the_papers_for_what_is_shown(data: Path) -> None:
    table = "tag\tname\ttext\tposition (top-left x&y)\tsize (w&h)\n"
    table += "document-web\tPage\t\t(0, 0)\t(192, 108)\nentry\tSearch\tte as\t(20, 40)\t(160, 20)\n"
    table += "push-button\tClose\t\t(180, 0)\t(12, 12)\n"
    task, step, _ = asked(data, observation="a11y")
    system, user = task.conversation(step)
    (part,) = user.parts
    assert part.text == (
        f"Given the info from accessibility tree as below:\n{table}What's the next step that you "
        "will do to help with the task?"
    )
    assert "by accessibility tree, which is based on AT-SPI library" in system.parts[0].text
    task, step, _ = asked(data, observation="screenshot+a11y")
    assert [part.kind for part in task.conversation(step)[1].parts] == ["text", "image"]
    task, step, _ = asked(data, observation="som")
    system, user = task.conversation(step)
    assert "2\tentry\tSearch\tte as\n" in user.parts[0].text
    shot = user.parts[1].media
    assert shot
    assert shot.marks == ((0, 0, 192, 108), (20, 40, 180, 60), (180, 0, 192, 12))
    assert "pyautogui.dragTo(tag_1, button='left')\n```\nWhen you think" in system.parts[0].text
    kinds = ("screenshot", "a11y", "screenshot+a11y", "som")
    assert len({get_task("osworld", {"observation": kind}).prompt_hash for kind in kinds}) == 4
    plain = get_task("osworld")
    assert plain.prompt_hash == get_task("osworld", {"observation": "screenshot"}).prompt_hash


def test_a_mark_is_right_where_its_element_is_the_experts(data: Path) -> None:
    task, step, _ = asked(data, observation="som")
    target = task.target(step)
    assert target
    assert target.text == "```python\npyautogui.click(tag_2)\n```"
    assert exact(task, step, "pyautogui.click(tag_2)") is True  # far from the middle of the entry
    assert exact(task, step, "pyautogui.click(tag_1)") is False  # which holds the entry
    assert exact(task, step, "pyautogui.click(tag_3)") is False
    assert exact(task, step, "pyautogui.click(170, 50)") is True
    assert exact(task, step, "pyautogui.rightClick(tag_2)") is False
    assert not exact(task, step, "pyautogui.click(tag_4)")
    verdict = task.profiles["osworld-step"].judge(step, target.text)
    drawn = task.explanation(step, verdict, target.text, profile="osworld-step").overlays
    answer = drawn["screenshot"].answer
    assert answer
    assert (answer.x, answer.y) == (170, 50)


def test_a_tree_goes_with_its_screenshot_and_a_missing_one_is_a_media_error(
    data: Path, tmp_path: Path
) -> None:
    for place in (data, tmp_path / "repository"):
        task, first, second = asked(place, observation="a11y")
        assert "Search" in task.conversation(first)[1].parts[0].text
        with pytest.raises(MediaError, match="no accessibility tree"):
            task.conversation(second)
        if place == data:
            convert(get_task("osworld").load(data), tmp_path / "repository", embed=True)


@pytest.mark.parametrize(
    ("content", "said"), [(BOMB, "document type"), (UNKNOWN, "unknown encoding")]
)
def test_a_broken_tree_is_a_finding_and_changes_the_fingerprint(
    data: Path, content: bytes, said: str
) -> None:
    before = get_task("osworld").benchmark.fingerprint(data)
    (path,) = data.rglob("step_0.xml")
    path.write_bytes(content)
    assert get_task("osworld").benchmark.fingerprint(data) != before
    source = get_task("osworld").load(data)
    (found,) = (one for one in source.findings if one.code == "tree-broken")
    assert found.sample_ids == (source.steps[0].sample_id,)
    assert said in found.what
    task, step, _ = asked(data, observation="som")
    with pytest.raises(MediaError, match="cannot be read"):
        task.conversation(step)

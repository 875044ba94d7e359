"""UI-TARS: what its versions read and write, and what the released parser makes of the same."""

from __future__ import annotations

import pytest

from omnidata.actions import Action, Box, Point, Space
from omnidata.dialects import Answer, Past, UnreadError, get_dialect

NAMES = ("ui-tars-1.0", "ui-tars-1.5", "ui-tars-doubao", "ui-tars-2")
SPOKEN = NAMES[:3]
FED = (1000, 1000)


def read(text: str, name: str = "ui-tars-1.5", *, strict: bool = False) -> Answer:
    return get_dialect(name).read(text, FED, rules="strict" if strict else "lenient")


def first(text: str, name: str = "ui-tars-1.5", *, strict: bool = False) -> Action:
    return read(text, name, strict=strict).actions[0]


def at(x: float, y: float, space: Space = "px") -> tuple[Point]:
    return (Point(x, y, space),)


def test_the_versions_write_places_of_their_own() -> None:
    for name, text in (
        ("ui-tars-1.0", "Action: click(start_box='<|box_start|>(1.5,2)<|box_end|>')"),
        ("ui-tars-1.5", "Action: click(start_box='(1.5,2)')"),
        ("ui-tars-doubao", "Action: click(point='<point>1.5 2</point>')"),
    ):
        dialect = get_dialect(name)
        action = Action("tap", at(1.5, 2, dialect.frame.space))
        assert dialect.write((action,), FED, "desktop") == text
    assert get_dialect("ui-tars-2").write(
        (Action("tap", at(17, 58, "norm1000")), Action("wait")), FED, "web"
    ) == (
        "<seed:tool_call>\n<function=click>\n<parameter=point><point>17 58</point></parameter>\n"
        "</function>\n<function=wait>\n</function>\n</seed:tool_call>"
    )


@pytest.mark.parametrize("place", [
    "start_box='(10,20)'", "start_box='<|box_start|>(10,20)<|box_end|>'", "start_box='[10, 20]'",
    "point='<point>10 20</point>'", 'point="(10,20)"', "point=(10, 20)", "'(10,20)'",
    "start_box='(10,20)", "start_box = '10 20'", "point=<point>10 20</point>",
])  # fmt: skip
def test_places_in_all_their_spellings(place: str) -> None:
    assert first(f"Thought: a\nAction: click({place})").start == at(10, 20)


def test_a_place_may_be_a_box_or_nothing() -> None:
    box = (Box(1, 2, 3, 4, "px"),)
    for text in ("'<bbox>1 2 3 4</bbox>'", "'(1,2,3,4)'", "'[3, 4, 1, 2]'", "'[[1,2],[3,4]]'"):
        assert first(f"Action: click(start_box={text})").start == box
    assert first("Action: click(start_box='')") == Action("tap")


@pytest.mark.parametrize(("call", "action"), [
    ("left_double(start_box='(1,2)')", Action("tap", at(1, 2), count=2)),
    ("right_single(point='(1,2)')", Action("tap", at(1, 2), button="right")),
    ("hover(point='(1,2)')", Action("move", at(1, 2))),
    ("drag(start_box='(1,2)', end_box='(3,4)')", Action("drag", at(1, 2), at(3, 4))),
    ("select(start_box='(1,2)', end_box='(3,4)')", Action("drag", at(1, 2), at(3, 4))),
    ("select(start_box='(1,2)')", Action("select", at(1, 2))),
    ("hotkey(key='ctrl c')", Action("hotkey", keys=("ctrl", "c"))),
    ("hotkey(key='ctrl++')", Action("hotkey", keys=("ctrl", "+"))),
    ("hotkey(key='enter')", Action("keys", keys=("enter",))),
    ("press(key='ctrl')", Action("hold", keys=("ctrl",))),
    ("keyup(key='ctrl')", Action("release", keys=("ctrl",))),
    ("type(content='a\\n')", Action("type", text="a", submit=True)),
    ("type(content='a', start_box='(1,2)')", Action("type", at(1, 2), text="a")),
    ("scroll(direction='down')", Action("scroll", direction="down", sense="content")),
    ("long_press(start_box='(1,2)', time='1500')", Action("long_press", at(1, 2), seconds=1.5)),
    ("open(app_name='Clock')", Action("open_app", app="Clock")),
    ("press_home()", Action("home")), ("press_back()", Action("back")),
    ("press_enter()", Action("enter")), ("wait()", Action("wait")),
    ("wait(time='5s')", Action("wait", seconds=5)), ("call_user()", Action("ask")),
    ("finished(content='42')", Action("done", text="42")), ("finished()", Action("done")),
    ("navigate(content='a.b')", Action("open_url", url="a.b")),
])  # fmt: skip
def test_names_of_actions(call: str, action: Action) -> None:
    assert first(f"Thought: a\nAction: {call}") == action


@pytest.mark.parametrize(("text", "typed"), [
    ("Action: type(content='it's')", "it's"),
    ("Action: type(content='f('a')')", "f('a')"),
    ("Action: type(content=\"say \\\"hi\\\"\")", 'say "hi"'),
    ("Action: type(content='say 'hi', ok')", "say 'hi', ok"),
    ("Action: type(content='C:\\\\new')", "C:\\new"),
    ("Thought: Action: none\nAction: type(content='Action: wait()')", "Action: wait()"),
    ("Action: type(content='a)\\n\\nb')", "a)\n\nb"),
    ("Action: type(content='a\nb')", "a\nb"),
    ("Action: type(content='\\u6c49')", "汉"),
])  # fmt: skip
def test_typed_texts(text: str, typed: str) -> None:
    found = read(text)
    assert [(action.kind, action.text) for action in found.actions] == [("type", typed)]


def test_what_is_a_thought_and_what_an_answer() -> None:
    text = "Thought: first I tried Action: click(start_box='(1,2)') in vain\nAction: wait()"
    assert read(text).actions == (Action("wait"),)
    for head in ("Thought: why\n", "<think>why</think>\n", "<Thought>why</Thought>\n"):
        assert read(f"{head}Action: wait()").thought == "why"
    found = read("Reflection: a\nAction_Summary: b\nAction: wait()\n</Output>")
    assert (found.thought, found.rest) == ("a\nb", "")
    assert read("Action：wait()").actions == read("wait()").actions == (Action("wait"),)
    assert read("Thought: (see) it\n```\nclick(start_box='(1,2)')\n```").actions[0].start == at(
        1, 2
    )
    found = read("Action: wait() and then I shall see")
    assert found == Answer((Action("wait"),), "", "and then I shall see")


def test_several_actions() -> None:
    text = "Action: press(key='ctrl')\n\nclick(start_box='(1,2)')\n\nrelease(key='ctrl')"
    assert [action.kind for action in read(text).actions] == ["hold", "tap", "release"]
    assert read("Action: wait()\n\nfly()").rest == "fly()"


@pytest.mark.parametrize(("text", "why"), [
    ("", "no call"), ("I am done", "no call"), ("Action: fly(to='moon')", "no action 'fly'"),
    ("Action: click(start_box='the button')", "no place"),
    ("Action: click(start_box='(1,2,3)')", "no place"),
    ("Action: click(start_box='(1, 2", "ends in"), ("Action: type(content='hel", "ends in"),
    ("Action: scroll(direction='sideways')", "direction"), ("Action: hotkey()", "no key"),
    ("Action: type()", "no text"), ("Action: open_app(app_name='')", "no app"),
    (f"Action: click(start_box='({'9' * 5000},1)')", "no place"),
])  # fmt: skip
def test_what_is_no_answer_says_why(text: str, why: str) -> None:
    with pytest.raises(UnreadError, match=why):
        read(text)


def test_functions_in_tags() -> None:
    text = (
        "<thinkt>I see <point>1 2</point></thinkt><seed:tool_call>\n<function=left_double>\n"
        "<parameter=point><point>18 58</point></parameter>\n</function>\n<function=type>\n"
        "<parameter=content>\n123\\n\n</parameter>\n</function>\n</seed:tool_call>"
    )
    found = read(text, "ui-tars-2")
    assert found.actions == (
        Action("tap", at(18, 58, "norm1000"), count=2),
        Action("type", text="123", submit=True),
    )
    assert (found.thought, found.rest) == ("I see <point>1 2</point>", "")
    button = "<function=mouse_down><parameter=button>right</parameter></function>"
    assert first(button, "ui-tars-2") == Action("hold", button="right")
    assert first("<think>a</think><answer>42</answer>", "ui-tars-2") == Action("done", text="42")
    env = "<think>a</think>\n<computer_env>\nAction: wait()\n</computer_env>"
    assert read(env, "ui-tars-2") == Answer((Action("wait"),), "a")
    cut = "<function=click><parameter=point><point>1 2</point>"
    assert first(cut, "ui-tars-2").start == at(1, 2, "norm1000")
    with pytest.raises(UnreadError, match="ends in"):
        read("<function=type><parameter=content>hel", "ui-tars-2")


# As released: each of these was held against the parsers themselves.


def tagged(*functions: tuple[str, str, str]) -> str:
    calls = "".join(
        f"<function={name}>\n<parameter={key}>{value}</parameter>\n</function>\n"
        for name, key, value in functions
    )
    return f"<think>a</think><seed:tool_call>\n{calls}</seed:tool_call>"


PLACE = "<point>1 2</point>"


@pytest.mark.parametrize(("text", "released", "meant"), [
    (tagged(("click", "point", PLACE)), "TAP", "TAP"),
    (tagged(("left_double", "point", PLACE)), None, "DOUBLE_TAP"),
    (tagged(("move_to", "point", PLACE), ("wait", "time", "5")), "WAIT", "MOVE"),
    ("<answer>42</answer>", "DONE", "DONE"), ("<answer>42", None, "DONE"),
    ("<computer_env>\nAction: wait()\n</computer_env>", None, "WAIT"),
    (tagged(("hotkey", "key", "5")), None, "KEYS"), (tagged(), None, None),
    (tagged(("click", "point", "<point></point>")), None, "TAP"),
])  # fmt: skip
def test_functions_that_the_released_parser_drops(
    text: str, released: str | None, meant: str | None
) -> None:
    for strict, label in ((True, released), (False, meant)):
        if label is None:
            with pytest.raises(UnreadError):
                read(text, "ui-tars-2", strict=strict)
        else:
            assert first(text, "ui-tars-2", strict=strict).label == label


@pytest.mark.parametrize(("value", "released"), [
    ("a &lt; b", "a < b"), (" a ", "a"), ("123", None), ("0x1f", None), ("1.50", None),
    ("0123", None), ("true", None), ("1e5", None), ("1.2.3", "1.2.3"), ("-", "-"),
    ("12345678901234567890", "12345678901234567890"),
])  # fmt: skip
def test_typed_texts_that_are_changed_between_tags(value: str, released: str | None) -> None:
    text = tagged(("type", "content", value))
    assert first(text, "ui-tars-2").text == value
    assert first(text, "ui-tars-2", strict=True).text == released


def test_two_calls_of_one_function_become_one_without_a_place() -> None:
    text = tagged(("click", "point", PLACE), ("click", "point", "<point>3 4</point>"))
    assert read(text, "ui-tars-2", strict=True).actions == (Action("tap"),)
    assert len(read(text, "ui-tars-2").actions) == 2


BROKEN = (
    'Action: type(content="hello")',
    "Action:click(start_box='(1,2)')",
    "Action: click(start_box='<|box_start|>(1,2)<|box_end|>')",
    "Action: click(start_box='<bbox>1 2 1 2</bbox>')",
    "Action: click(start_box='[1,2]')",
    "Action: click(point='<point>1.5 2</point>')",
    "click(start_box='(1,2)')",
    "Action: click(start_box=(1,2))",
    "Action: type(content='a)\n\nb')",
    "Action: wait()" + " " * 100_001,
)


@pytest.mark.parametrize("text", BROKEN)
def test_what_the_released_parser_breaks_at_is_read_all_the_same(text: str) -> None:
    with pytest.raises(UnreadError):
        read(text, strict=True)
    assert read(text).actions


@pytest.mark.parametrize(("text", "released", "meant"), [
    ("Action: type(content='point=3')", "start_box=3", "point=3"),
    ("Action: type(content='use Action: now')", None, "use Action: now"),
    ("Action: type(content='Amazon\\\\n')", "Amazo", "Amazon"),
    ("Action: type(content='x', start_box='(1,2)')", "x', start_box='(1,2)", "x"),
])  # fmt: skip
def test_typed_texts_that_the_released_parser_changes(
    text: str, released: str | None, meant: str
) -> None:
    assert first(text).text == meant
    if released is None:
        with pytest.raises(UnreadError):
            read(text, strict=True)
    else:
        assert first(text, strict=True).text == released


@pytest.mark.parametrize("text", [
    "Thought: a\nAction: click(start_box='(197,525)')",
    "Action: drag(start_point='<point>458 328</point>', end_point='<point>350 309</point>')",
    "Thought: b\nAction: type(content='it\\'s me\\n')", "Action: hotkey(key='ctrl c')",
    "Action: click(start_box='(1,2,3,4)')\n\ntype(content='hi')\n\nfinished(content='ok')",
    "Reflection: r\nAction_Summary: s\nAction: scroll(start_box='(1,2)', direction='down')",
])  # fmt: skip
def test_elsewhere_the_two_readers_agree(text: str) -> None:
    assert read(text, strict=True).actions == read(text).actions


def test_histories_tell_of_a_scroll_without_how_far() -> None:
    past = Past((Action("scroll", direction="down", amount=5),))
    line = get_dialect("ui-tars-1.5").line(past, "desktop")
    assert line == "Action: scroll(direction='down')"


@pytest.mark.parametrize("typed", ["<answer>", "<answer>no</answer>", "<function=click>"])
def test_a_tag_inside_of_a_call_is_typed(typed: str) -> None:
    said = f"Thought: Write it.\nAction: type(content='{typed}')"
    found = get_dialect("ui-tars-1.5").read(said, (100, 100))
    assert [(action.kind, action.text) for action in found.actions] == [("type", typed)]

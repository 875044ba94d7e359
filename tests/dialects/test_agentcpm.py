"""AgentCPM-GUI: objects of compact JSON, as they are meant and as its evaluator reads them."""

from __future__ import annotations

import pytest

from omnidata.actions import Action, Point
from omnidata.dialects import Answer, CannotSayError, UnreadError, get_dialect

CPM = get_dialect("agentcpm-gui")
FED = (504, 1120)


def read(text: str, *, strict: bool = False) -> Answer:
    return CPM.read(text, FED, rules="strict" if strict else "lenient")


def at(x: float, y: float) -> tuple[Point]:
    return (Point(x, y, "norm1000"),)


@pytest.mark.parametrize(("action", "text"), [
    (Action("tap", at(729, 69.5)), '{"POINT":[729,69.5]}'),
    (Action("long_press", at(1, 2)), '{"POINT":[1,2],"duration":1000}'),
    (Action("long_press", at(1, 2), seconds=0.5), '{"POINT":[1,2],"duration":500}'),
    (Action("swipe", direction="up"), '{"POINT":[500,500],"to":"up"}'),
    (Action("scroll", at(1, 2), direction="down"), '{"POINT":[1,2],"to":"up"}'),
    (Action("swipe", at(1, 2), at(3, 4)), '{"POINT":[1,2],"to":[3,4]}'),
    (Action("type", text='say "hi"\n'), '{"TYPE":"say \\"hi\\"\\n"}'),
    (Action("home"), '{"PRESS":"HOME"}'), (Action("back"), '{"PRESS":"BACK"}'),
    (Action("enter"), '{"PRESS":"ENTER"}'), (Action("recent"), '{"PRESS":"APPSELECT"}'),
    (Action("wait"), '{"duration":200}'), (Action("wait", seconds=3), '{"duration":3000}'),
    (Action("done", status="success"), '{"STATUS":"finish"}'),
    (Action("done", status="failure"), '{"STATUS":"impossible"}'),
    (Action("done"), '{"STATUS":"interrupt"}'), (Action("ask"), '{"STATUS":"need_feedback"}'),
])  # fmt: skip
def test_actions_are_written_compactly(action: Action, text: str) -> None:
    assert CPM.write((action,), FED, "mobile") == text


def test_a_status_beside_an_action_is_a_second_one() -> None:
    both = Action("tap", at(1, 2)), Action("done", status="success")
    text = CPM.write(both, FED, "mobile")
    assert text == '{"POINT":[1,2],"STATUS":"finish"}'
    assert read(text).actions == both
    assert read(text, strict=True).actions == both[1:]


@pytest.mark.parametrize(("text", "meant", "released"), [
    ('{"POINT":[1,2],"duration":100}', Action("tap", at(1, 2)), Action("done")),
    ('{"POINT":[1,2],"to":"up","duration":500}', Action("swipe", at(1, 2), direction="up"),
     Action("long_press", at(1, 2), seconds=0.5)),
    ('{"STATUS":"need_feedback"}', Action("ask"), Action("ask")),
    ('{"POINT":[1.5,2]}', Action("tap", at(1.5, 2)), None),
    ('Here: {"POINT":[1,2]}', Action("tap", at(1, 2)), None),
    ('```json\n{"TYPE":"a"}\n```', Action("type", text="a"), None),
    ('{"thought":"a","POINT":[1,2]', Action("tap", at(1, 2)), None),
    ('{"PRESS":"back"}', Action("back"), None), ('{"PRESS":"RECENT"}', Action("recent"), None),
    ('{"OPEN_APP":"Clock"}', Action("open_app", app="Clock"), None),
    ('{"POINT":[1,2],"extra":1}', Action("tap", at(1, 2)), None),
])  # fmt: skip
def test_what_is_meant_and_what_the_evaluator_reads(
    text: str, meant: Action, released: Action | None
) -> None:
    assert read(text).actions == (meant,)
    if released is None:
        with pytest.raises(UnreadError):
            read(text, strict=True)
    else:
        assert read(text, strict=True).actions == (released,)


def test_the_thought_stands_in_the_object_or_before_it() -> None:
    assert read('{"thought":"I see","PRESS":"HOME"}').thought == "I see"
    assert read('I see {"PRESS":"HOME"} so') == Answer((Action("home"),), "I see", "so")


@pytest.mark.parametrize("text", [
    "", "{}", '{"thought":"a"}', '{"STATUS":"continue"}', '{"POINT":[1]}', '{"POINT":"1,2"}',
    '{"POINT":[1,2],"to":"north"}', '{"PRESS":"MENU"}', '{"TYPE":1}', '{"STATUS":"lost"}',
    '{"POINT":[1,2],"TYPE":"a"}', '{"POINT":[1,2],"duration":"long"}', '{"POINT":[true,2]}',
    '{"TYPE":"cut', '{"POINT":[1e999,2]}', "[1,2]",
])  # fmt: skip
def test_what_is_no_answer(text: str) -> None:
    with pytest.raises(UnreadError):
        read(text)
    with pytest.raises(UnreadError):
        read(text, strict=True)


def test_two_actions_cannot_be_said() -> None:
    with pytest.raises(CannotSayError):
        CPM.write((Action("home"), Action("home")), FED, "mobile")

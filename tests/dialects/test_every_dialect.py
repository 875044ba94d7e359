"""What every dialect promises: any text is read or refused, and in linear time."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import Screen
from omnidata.dialects import Rules, UnreadError, dialects, get_dialect

FED: Screen = (1000, 800)
# Pieces of answers, by the start of the names of the dialects whose reader looks for them.
PIECES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("qwen", "gui-owl"): (
        "{", '{"', "{'a", "{/*", "{a:", "{a:[1,", "<tool_call>", "<tool_call>{", "[{", "{a:{b:1},",
        "</think>", "(1,", "<point>", "x=1,", "box:(", "click(", '{"name": "', "<tool_call>\n",
        "\n", "</tool_call>", '{"name": "mobile_use"', ', "arguments": ', '{"action": "click"',
        '"coordinate": ', "[1, 2", "]", "}", "'", '"', "1e999", "NaN", "\\u12", "\ud800", "//",
        "<think>", "-1", "computer_use", "null", ", ", "[[]]", "key", "keys",
    ),
    ("opencua", "aguvis", "kimi", "os-atlas"): (
        "pyautogui.click(", "x=1, y=2)", "```", "python\n", "actions:\n", "CLICK ", "[[", "1,",
        "]]", "TYPE [", "(", ")", "'", '"', "\\", "\n", "1e999", "mobile.swipe(", "keys=[",
        "## Action:\n", "## Code:\n", "<|box_start|>", "<|box_end|>", ".", "\0", "call_user(",
        "computer.terminate(status='", "0x" + "f" * 9, "\ud800", "-", " ", "pyautogui.write('",
        "pyautogui.write(message='", "pyautogui.press('a')\n", "```\n", " \n", "WAIT\n", "<think>",
        "TYPE [a]\n", "TYPE [\n", "x=1, ", "## Action:\nA\n```", "## Action", "</think>", "1",
        "[1,", "x:", "(1,2)", "<point>", "<points x", "click(", "box:(",
    ),
    ("ui-tars",): (
        "Action: a('", "type(content='", "Action: click(", "'", "\\'", "('", "'))", "<point>",
        "<function=type><parameter=content>", "<think>", "wait()\n", "Action: ", "[", "(", " ",
        "click(start_box=(", "Thought: ", "type(content='a\n", "\n", "</parameter>", "Reflection: ",
        ")", ",", "='(1,2)'", "click(", "scroll(direction='up')",
    ),
    ("gui-r1", "ui-r1"): (
        "{", "[", "[1,2]", "[1,2]}", "{'action': '", "<answer>", "<answer>[{'action':", "'", " ",
        "\n", "{'a':", "{[1,2]", "[1,\n", "'input_text': '", "</answer>", "{'a': [", "'action': ",
        "}", "]", "click", "'point': ", "<answer>{'a'",
    ),
    ("agentcpm",): (
        '{"', "POINT", '":', "[1,2]", "}", ",", '"to"', "STATUS", '"', '{"POINT":', "{", "[",
        '{"TYPE":"', "\\", '{"a":1}',
    ),
    ("claude", "openai", "gemini"): (
        "{", "[", '{"a":', '{"action":"', "+", '"', "{}", '{"type":"click","x":', "9", "]", "}",
        ",", '{"type":"tool_use","name":"computer","input":', '{"function_call":{"name":"',
        '{"type":"computer_call","actions":[', '"keys":[', "null", "\\",
    ),
}  # fmt: skip
LONG = ("9" * 400, "9" * 5000, "[" * 50)
# Values where the tools of providers have their calls.
_WORDS = (
    *("click", "scroll", "key", "left_click", "computer", "tool_use", "down", "computer_call"),
    *("click_at", "type", "drag", 10**400),
)
_KEYS = (
    *("type", "action", "actions", "name", "input", "args", "coordinate", "x", "y", "text", "path"),
    *("keys", "function_call", "content", "key", "scroll_direction", "direction", "button"),
    *("pending_safety_checks", "safety_decision", "duration", "scroll_x", "region", "repeat"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(_WORDS),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(_KEYS), inner | st.text(max_size=5), max_size=6)
    ),
    max_leaves=25,
)


def pieces_of(name: str) -> tuple[str, ...]:
    [pieces] = [pieces for heads, pieces in PIECES.items() if name.startswith(heads)]
    return pieces


@pytest.mark.parametrize("rules", get_args(Rules))
@pytest.mark.parametrize("name", dialects())
@given(data=st.data())
def test_any_text_is_read_or_refused(name: str, rules: Rules, data: st.DataObject) -> None:
    scraps = st.lists(st.sampled_from((*pieces_of(name), *LONG)) | st.text(max_size=5))
    texts = st.text() | scraps.map("".join)
    text = data.draw(texts | JSON.map(json.dumps) if "-computer" in name else texts)
    try:
        assert get_dialect(name).read(text, FED, rules=rules).actions
    except UnreadError as error:
        assert str(error)


# One of each reader.
READERS = (
    *("qwen3", "gui-owl-1.0", "gui-owl-1.5", "opencua", "kimi", "os-atlas-pro", "os-atlas-base"),
    *("ui-tars-1.5", "ui-tars-2", "gui-r1", "agentcpm-gui", "claude-computer-20250124"),
    *("openai-computer", "gemini-computer"),
)
AROUND = {
    "os-atlas-pro": ("actions:\n", ""),
    "ui-tars-1.5": ("Action: ", ""),
    "gui-r1": ("<answer>", "'action': 'click'</answer>"),
}
SIZE = 300_000
WHOLE = (
    "pyautogui.click(" + "(" * SIZE,
    "pyautogui.click(" + "x=1, " * (SIZE // 5) + ")",
    "## Action:\nA\n```" + " \n" * (SIZE // 2),
    "## Action" + " " * SIZE + "x",
    "\n" * SIZE + "actions:" + " " * SIZE + "!",
    "actions:\nCLICK [[" + "1" * SIZE,
    "<|box_start|>" + "1" * SIZE + "<|box_end|>",
    "<|box_start|>" * (SIZE // 13) + "\n<|box_end|>",
    "<think>" * (SIZE // 7) + "</think>",
    json.dumps({"action": "key", "text": "a+" * SIZE, "type": "keypress", "keys": "+" * 9}),
    json.dumps({"name": "key_combination", "args": {"keys": "+" * SIZE}}),
)


@pytest.mark.parametrize("rules", get_args(Rules))
@pytest.mark.parametrize("name", READERS)
def test_reading_takes_linear_time(name: str, rules: Rules) -> None:
    """Quadratic time would be minutes."""
    repeated = [piece * (SIZE // len(piece)) for piece in pieces_of(name)]
    before, after = AROUND.get(name, ("", ""))
    for text in (*repeated, *(before + text + after for text in repeated if before), *WHOLE):
        begin = time.process_time()
        with suppress(UnreadError):
            get_dialect(name).read(text, FED, rules=rules)
        assert time.process_time() - begin < 3, text[:60]

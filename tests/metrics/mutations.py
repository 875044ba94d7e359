"""Model outputs bent out of shape: a seeded mutator over outputs that models really write.

A mutant starts as one of the given outputs or as an action built from the key families below, and
then goes through one to three operators. The families are written out here, and not imported, so
that a slip in the parser's own lists does not bend the mutants with it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"
STEP_CASES = CASES / "omnigui_steps_sample.jsonl"

ACTION_KEYS, POINT_KEYS, START_KEYS, END_KEYS, XY_KEYS, TEXT_KEYS, NUMERIC_KEYS, CALL_KEYS = (
    line.split()
    for line in (
        "action_type action type action_name actionType actiontype operation",
        "coordinate coordinates position point xy pos location touch_point click_point",
        "start_coordinate startCoordinate start from from_coordinate touch",
        "end_coordinate endCoordinate end to to_coordinate lift lift_point coordinate2 target",
        "x X pos_x posX y Y pos_y posY",
        "text input_text inputText content value string message",
        "duration confidence score probability",
        "arguments args name button key status reason time direction reasoning thought",
    )
)
ODD_KEYS = ["", " action_type", "action-type", "ACTION", "动作", "a\\u0063tion", "é", "coord"]
FAMILIES = (ACTION_KEYS, POINT_KEYS, START_KEYS, END_KEYS, XY_KEYS, TEXT_KEYS, NUMERIC_KEYS)
KEYS = [key for family in (*FAMILIES, CALL_KEYS) for key in family]
ALL_KEYS = [*KEYS, *(change(key) for key in KEYS for change in (str.upper, str.title)), *ODD_KEYS]

NAMES, CALL_NAMES = (
    lines.split()
    for lines in (
        """
        none wait waiting idle no_action tap click single_tap touch press double_tap doubleclick
        long_press longclick hold swipe_up scroll_up swipe_down scrolldown swipe_left swipe_right
        swiperight input type text enter_text write back go_back press_back home go_home finish
        task_complete done success task_impossible cannot_complete failed swipe scroll enter
        system_button terminate answer open_app
        """,
        """
        click tap double_click double_tap long_press swipe_up swipe_left scroll_down scroll_right
        input type back home none task_complete task_impossible wait Click TYPE xclick typed swipe
        """,
    )
)
SPELLINGS: tuple[Callable[[str], str], ...] = (
    str,
    str.upper,
    str.title,
    lambda name: name.replace("_", " "),
    lambda name: name.replace("_", "-"),
    lambda name: f" {name}\t",
    lambda name: "_".join(name),
)
WORDS = (
    "", " ", "a", "hello world", "it's ok", "苹果", "e\u0301", "\U0001f600", "\\ud800", "12, 13",
    "12 13", "12", "[389, 511]", "(5, 6)", "x=3,y=4", "1e3,1e3", "NaN NaN", "inf,1", "1_0,2", "{",
    "}", "}{", "```", "<tool_call>", 'say \\"hi\\"', "null", "enter", "home_screen", "return_key",
    "up", "left", "success", "complete", "impossible", "-1", "11", "0.0", "\\u0000", "a\\nb",
    "9" * 400,
)  # fmt: skip
NUMBERS = (
    "0", "-1", "1", "7", "11", "12", "-2", "3", "5.1", "0.9", "-0.9", "-1.5", "10.0", "1E1", "-0",
    "-0.0", "389", "1000", "1001", "999.99", "1e400", "-1e400", "1e-400", "NaN", "Infinity",
    "-Infinity", "9007199254740993", "18446744073709551616", "-9223372036854775809",
    "1" + "0" * 30, "1" + "0" * 400, "01", "+1", ".5", "1.", "0x10",
)  # fmt: skip
CONSTANTS = ("null", "true", "false", "None", "{}", "[]", '{"x": 1}', '{"x": 1, "y": 2, "z": 3}')
NOISE = (
    "{", "}", "{}", "}{", "{{", "}}", "[", "]", '"', "'", ",", ":", "(", ")", "\\", "```",
    "```json", "```JSON\n", "<tool_call>", "</tool_call>", "<think>", "</think>", "<|im_end|>",
    "\n", "\t", " ", "\ufeff", "\u00a0", "\u3000", "\u2028", "\x00", "\x1f", "“", "”", "，",
    "e\u0301", "\U0001f44d", "\ud800", "\udfff", "\u202e", "0", "-", "9", "NaN", "null", "// x",
    "/* x */", "click(", 'type("', "back()",
)  # fmt: skip
FRAMES = (
    ("```json\n", "\n```"),
    ("```\n", "\n```"),
    ("```JSON\n", "\n```"),
    ("```json ", ""),
    ("```json\nnot json\n```\n```json\n", "```"),
    ("```python\nx = 1\n```\n```", "```"),
    ("<think>", "</think>"),
    ("<think>maybe {later}</think>\n", ""),
    ("<tool_call>", "</tool_call>"),
    ("<tool_call>\n", "\n</tool_call>"),
    ("<tool_call>", ""),
    ("", "</tool_call>"),
    ('<tool_call>{"name": "mobile_use", "arguments": ', "}</tool_call>"),
    ('<tool_call>{{"name": "computer", "args": ', "}}</tool_call>"),
    ("Action: ", "\nDone."),
    ("I will tap.\n\n", ""),
    ("[", "]"),
    ('{"action": ', "}"),
    ('{"result": ', "}"),
    ('"', '"'),
    ("'", "'"),
    ("\ufeff", ""),
    ("}", "{"),
    ("{", ""),
    ("(", ")"),
)

_KEY = re.compile(r'"([^"\\]*)"(?=\s*:)')
_VALUE = re.compile(r':\s*("[^"]*"|\[[^\[\]]*\]|[^\s,{}\[\]"]+)')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

Mutate = Callable[[str, random.Random, Sequence[str]], str]


def corpus() -> list[str]:
    """The outputs of the step cases; the file must be there (`STEP_CASES.exists()`)."""
    with STEP_CASES.open(encoding="utf-8") as lines:
        return [json.loads(line)["output"] for line in lines]


def mutants(outputs: Sequence[str], count: int, *, seed: int) -> list[str]:
    """Distinct mutants of the outputs, the same for the same arguments; none is among `outputs`."""
    rng = random.Random(seed)
    found: dict[str, None] = {}
    known = frozenset(outputs)
    while len(found) < count:
        text = rng.choice(outputs) if rng.random() < 0.6 else rng.choice(_BUILDERS)(rng)
        for _ in range(rng.choice(_ROUNDS)):
            text = rng.choice(_OPERATORS)(text, rng, outputs)
        if text not in known:
            found[text] = None
    return list(found)


_ROUNDS = (1, 1, 1, 2, 2, 3)


# --- actions from nothing -------------------------------------------------------------------------


def value(rng: random.Random, depth: int = 0) -> str:
    """A JSON value as text, at times not quite JSON."""
    roll = rng.random()
    if roll < 0.35:
        return rng.choice(NUMBERS)
    if roll < 0.5:
        return str(rng.randint(-20, 1100))
    if roll < 0.65:
        return f'"{rng.choice(WORDS)}"'
    if roll < 0.75:
        return f'"{rng.choice(SPELLINGS)(rng.choice(NAMES))}"'
    if roll < 0.85 or depth > 2:
        return rng.choice(CONSTANTS)
    if roll < 0.95:
        return _list(rng, depth)
    pairs = (f'"{rng.choice(KEYS)}": {value(rng, depth + 1)}' for _ in range(rng.randrange(3)))
    return "{" + ", ".join(pairs) + "}"


def _list(rng: random.Random, depth: int) -> str:
    return "[" + ", ".join(value(rng, depth + 1) for _ in range(rng.randrange(5))) + "]"


def _point(rng: random.Random) -> str:
    return f"[{rng.randint(0, 1000)}, {rng.randint(0, 1000)}]"


def _pair(rng: random.Random) -> str:
    return _point(rng) if rng.random() < 0.4 else value(rng)


def _name(rng: random.Random) -> str:
    if rng.random() < 0.4:
        return str(rng.randint(-2, 13))
    return f'"{rng.choice(SPELLINGS)(rng.choice(NAMES))}"'


def _object(rng: random.Random) -> str:
    """An object with keys of the families, each with a value that may or may not suit it."""
    pairs = [(rng.choice(ACTION_KEYS), _name(rng) if rng.random() < 0.85 else value(rng))]
    for family in rng.sample(FAMILIES, rng.randrange(4)):
        placed = family in (POINT_KEYS, START_KEYS, END_KEYS)
        for _ in range(rng.choice((1, 1, 2))):
            pairs.append((rng.choice(family), _pair(rng) if placed else value(rng)))
    rng.shuffle(pairs)
    return "{" + ", ".join(f'"{key}": {text}' for key, text in pairs) + "}"


def _tool_call(rng: random.Random) -> str:
    names = (
        "click",
        "long_press",
        "type",
        "wait",
        "swipe",
        "system_button",
        "terminate",
        "Tap",
        "x",
    )
    keys = (
        *("coordinate", "coordinates", "position", "x", "y", "text", "content", "time", "duration"),
        *("coordinate2", "start_coordinate", "end_coordinate", "to", "direction"),
        *("button", "key", "status", "reason"),
    )
    pairs = [(key, _pair(rng)) for key in rng.sample(keys, rng.randrange(5))]
    action = f'"{rng.choice(names)}"' if rng.random() < 0.95 else value(rng)
    inside = rng.random() < 0.6
    if inside:
        pairs.insert(0, ("action", action))
    arguments = "{" + ", ".join(f'"{key}": {text}' for key, text in pairs) + "}"
    if rng.random() < 0.15:
        arguments = json.dumps(arguments)
    elif rng.random() < 0.05:
        arguments = value(rng)
    key = rng.choice(("arguments", "arguments", "arguments", "args"))
    name = '"mobile_use"' if inside else action
    call = f'{{"name": {name}, "{key}": {arguments}}}'
    if rng.random() < 0.1:
        call = call.replace("{", "{{").replace("}", "}}")
    return f"<tool_call>\n{call}\n</tool_call>"


def _function_call(rng: random.Random) -> str:
    blank = rng.choice(("", "", " ", "  ", "\n"))
    digits = ("5", "512", "1001", "-3", "0.5", "٣", "x", "9" * 30)
    quote = rng.choice(('"', "'"))
    quoted = quote + rng.choice(WORDS) + rng.choice((quote, "", "'"))
    count = rng.randrange(4)
    arguments = [str(rng.randint(0, 1200)) for _ in range(count)]
    if arguments and rng.random() < 0.2:
        arguments[-1] = rng.choice(digits)
    if rng.random() < 0.35:
        arguments.append(quoted)
    joined = f"{blank},{blank}".join(arguments)
    end = rng.choice((")", ")", ")", ")", "", "]"))
    return f"{rng.choice(CALL_NAMES)}{blank}({blank}{joined}{blank}{end}"


def _extreme(rng: random.Random) -> str:
    """Rarely, more digits or deeper nesting than Python takes; most of the time just an object."""
    if rng.random() > 0.01:
        return _object(rng)
    many = rng.choice((4_299, 4_301, 6_000))
    return rng.choice(
        (
            f"click({'9' * many}, {rng.randrange(99)})",
            f'{{"action_type": 0, "coordinate": [{"9" * many}, {rng.randrange(99)}]}}',
            f'{{"action": 7, "text": "{rng.randrange(99)}", "duration": "{"9" * many}"}}',
            '{"a":' * many + str(rng.randrange(99)),
            "[" * many + str(rng.randrange(99)) + "]" * many,
            f'{{"action_type": 7, "text": {"[" * 700}{rng.randrange(99)}{"]" * 700}}}',
        )
    )


_BUILDERS = (_object, _object, _object, _tool_call, _tool_call, _function_call, value, _extreme)


# --- operators: text in, text out -----------------------------------------------------------------


def _cut(text: str, rng: random.Random) -> int:
    return rng.randrange(len(text) + 1)


def _splice(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    other = rng.choice(outputs)
    return text[: _cut(text, rng)] + other[_cut(other, rng) :]


def _append(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    return text + rng.choice(("", " ", "\n", "\n\nThen: ", ", ")) + rng.choice(outputs)


def _wrap(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    before, after = rng.choice(FRAMES)
    return before + text + after


def _quote(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    return json.dumps(text, ensure_ascii=rng.random() < 0.5)


def _double_braces(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _rename(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    found = list(_KEY.finditer(text))
    if not found:
        return _add(text, rng, outputs)
    key = rng.choice(found)
    new = rng.choice(KEYS if rng.random() < 0.7 else ALL_KEYS)
    return f"{text[: key.start(1)]}{new}{text[key.end(1) :]}"


def _replace(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    found = list(_VALUE.finditer(text))
    if not found:
        return _noise(text, rng, outputs)
    old = rng.choice(found)
    return text[: old.start(1)] + value(rng) + text[old.end(1) :]


def _renumber(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    found = list(_NUMBER.finditer(text))
    if not found:
        return _append(text, rng, outputs)
    old = rng.choice(found)
    return text[: old.start()] + rng.choice(NUMBERS) + text[old.end() :]


def _add(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    place = text.find("{") + 1
    if not place:
        return f'{{"{rng.choice(ALL_KEYS)}": {value(rng)}}}' + text
    pair = f'"{rng.choice(ALL_KEYS)}": {value(rng)}'
    comma = "" if text[place:].lstrip().startswith("}") else ", "
    return text[:place] + pair + comma + text[place:]


def _truncate(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    place = _cut(text, rng)
    return text[:place] if rng.random() < 0.7 else text[place:]


def _duplicate(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    low, high = sorted((_cut(text, rng), _cut(text, rng)))
    return text[:high] + text[low:high] * rng.choice((1, 1, 2, 5)) + text[high:]


def _delete(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    low = _cut(text, rng)
    return text[:low] + text[low + rng.choice((1, 1, 2, 5)) :]


def _noise(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    place = _cut(text, rng) if rng.random() < 0.7 else rng.choice((0, len(text)))
    return text[:place] + rng.choice(NOISE) + text[place:]


def _swap_case(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    place = _cut(text, rng)
    return text[:place] + text[place:].swapcase()


def _other_quotes(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    return text.replace('"', rng.choice(("'", "“", "`", '\\"', "")))


def _call(text: str, rng: random.Random, outputs: Sequence[str]) -> str:
    return text + rng.choice((" ", "\n", "")) + _function_call(rng)


_OPERATORS: tuple[Mutate, ...] = (
    *(_splice, _append, _wrap, _wrap, _wrap, _quote, _double_braces, _rename, _rename, _rename),
    *(_replace, _replace, _replace, _replace, _renumber, _renumber, _add, _add, _truncate),
    *(_duplicate, _delete, _noise, _noise, _noise, _swap_case, _other_quotes, _call),
)

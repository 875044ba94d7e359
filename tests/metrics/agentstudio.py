"""The cases with released verdicts, and the responses that reports are made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from omnidata.tasks.agentstudio.rules import letters_of
from tests.loaders.agentstudio import TaskName
from tests.trees import NO_SHARED, SHARED, read_lines

Row = dict[str, Any]

SETS: dict[str, TaskName] = {
    "groundui": "groundui",
    "idm": "idm-single",
    "idmn2n": "idm-multiple",
    "critic": "criticbench",
}
"""The task of each set of the cases."""
CASES = SHARED / "cases" / "agentstudio_sample.jsonl"


def shared_cases(kind: str) -> list[Row]:
    """The lines of one type: "case", "prompt" or "report"."""
    if not CASES.exists():
        pytest.skip(NO_SHARED)
    return [line for line in read_lines(CASES) if line["type"] == kind]


def respond(name: str, row: Row, kind: str) -> str | None:
    """The response of a kind, where the kind alone and the row settle it."""
    if kind == "none":
        return None
    return _RESPONSES[name](row).get(kind, "I cannot help with that.")


def reference(row: Row) -> list[str]:
    """The operations that an IDM row asks for."""
    if "operation" in row:
        return [row["operation"]]
    actions = row["actions"] if row["actions"][-1]["obs_after"] else row["actions"][:-1]
    return [action["operation"] for action in actions[-5:]]


def _points(row: Row) -> dict[str, str]:
    (left, top, right, bottom), (width, height) = row["bbox"], row["resolution"]
    x, y = f"{(left + right) / 2 / width:.6f}", f"{(top + bottom) / 2 / height:.6f}"
    begin, end = (
        f"{left / width:.3f}, {top / height:.3f}",
        f"{right / width:.3f}, {bottom / height:.3f}",
    )
    return {
        "right": f"({x}, {y})",
        "right_quoted": f"'({x}, {y})'",
        "right_chatty": f"The approximate coordinates would be:\n\n({x}, {y})\n\nThis is the link.",
        "plus_sign": f"({float(x):+.6f}, {float(y):+.6f})",
        "negative": f"(-{x}, -{y})",
        "spaces": f"(  {x} ,  {y}  )",
        "newline_inside": f"({x},\n{y})",
        "leading_dot": f"({x.removeprefix('0')}, {y.removeprefix('0')})",
        "arabic_digits": "(٠.٥, ٠.٥)",
        "edge_left": f"({left / width}, {y})",
        "edge_top": f"({x}, {top / height})",
        "edge_right": f"({right / width}, {y})",
        "edge_bottom": f"({x}, {bottom / height})",
        "bbox4": f"({begin}, {end})",
        "bbox_two_points": f"({begin}), ({end})",
        "named": f"(x={x}, y={y})",
        "square": f"[{x}, {y}]",
        "no_paren": f"{x}, {y}",
        "fullwidth": f"（{x}，{y}）",
        "exponent": f"({float(x):e}, {float(y):e})",
        "percent": f"({float(x):.0%}, {float(y):.0%})",
        "trailing_dot": "(1., 1.)",
        "scaled1000": f"({float(x) * 1000}, {float(y) * 1000})",
        "multi_sameline_right_first": f"first ({x}, {y}) but better (0.0, 0.0)",
        "multi_sameline_right_last": f"first (0.0, 0.0) but better ({x}, {y})",
        "multi_multiline_right_first": f"1. ({x}, {y})\n2. (0.0, 0.0)",
        "multi_multiline_right_last": f"1. (0.0, 0.0)\n2. ({x}, {y})",
        "huge": f"({'9' * 400}, 0.5)",
        "empty": "",
    }


def _letter(row: Row) -> dict[str, str]:
    letters = letters_of(reference(row), row["action_space"])
    assert letters is not None
    letter, operation = letters[0], row["operation"]
    return {
        "right": f"Answer: {letter}",
        "right_chatty": f"1. The screen changed (A).\n\nAnswer: {letter}",
        "wrong": "Answer: Z",
        "out_of_range": "Answer: Z",
        "upper_word": f"ANSWER : {letter}",
        "lower_word": f"answer: {letter}",
        "lower_letter": f"Answer: {letter.lower()}",
        "nospace": f"Answer:{letter}",
        "newline": f"Answer:\n\n{letter}",
        "crlf": f"The list moved.\r\nAnswer: {letter}\r\n",
        "dot_label": f"Answer: {letter}. {operation}",
        "two_letters": f"Answer: {letter}, Z",
        "bold_word": f"**Answer: {letter}**",
        "bold_letter": f"Answer: **{letter}**",
        "bold_both": f"**Answer:** {letter}",
        "paren": f"Answer: ({letter})",
        "fullwidth_colon": f"Answer：{letter}",
        "json": json.dumps({"answer": letter}),
        "letter_only": letter,
        "no_colon": f"The answer is {letter}",
        "kelvin": "Answer: \u212a",
        "operation_text": f"Answer: {operation.lower()}",
        "operation_cap": f"Answer: {operation.capitalize()}",
        "echo_template": f"Answer: {letter}\n\nAnswer: X",
        "prose_after": f"Answer: {letter}\nThe answer: this is what moved.",
        "multi_right_first": f"Answer: {letter}\nWait, no.\nAnswer: Z",
        "multi_right_last": f"Answer: Z\nWait, no.\nAnswer: {letter}",
    }


def _letters(row: Row) -> dict[str, str]:
    letters = letters_of(reference(row), row["action_space"])
    assert letters is not None
    lines = "\n".join(letters)
    return {
        "right": f"Answer:\n{lines}",
        "leading_spaces": "Answer:\n" + "\n ".join(letters),
        "multi_right_last": f"Answer:\nZ\nZ\n\nRevised.\n\nAnswer:\n{lines}",
    }


def _truths(row: Row) -> dict[str, str]:
    truth, lie = str(row["is_success"]), str(not row["is_success"])
    blind = str(row["actions"][-1]["obs_after"] is None)
    return {
        "right": f"Answer: {truth}",
        "right_chatty": f"Conclusion:\n\nAnswer: {truth}\n\nThe trajectory was examined.",
        "wrong": f"Answer: {lie}",
        "wrong_chatty": f"Conclusion:\n\nAnswer: {lie}\n\nThe trajectory was examined.",
        "bare": truth,
        "lower": f"answer: {truth.lower()}",
        "upper": f"ANSWER: {truth.upper()}",
        "yes_no": "Answer: Yes",
        "prefix_word": "Truecaller" if row["is_success"] else "Falsehood",
        "both_right_first": f"Answer: {truth}\n(it would be {lie} otherwise)",
        "both_right_last": f"It could be {lie}.\nAnswer: {truth}",
        "always_true": "Answer: True",
        "always_false": "Answer: False",
        "leak_rule": f"Answer: {blind}",
        "echo_instruction": f"Instruction: {row['instruction']}\nAnswer:",
    }


_RESPONSES: dict[str, Callable[[Row], dict[str, str]]] = {
    "groundui": _points,
    "idm": _letter,
    "idmn2n": _letters,
    "critic": _truths,
}

"""The readings of real rows, answered in the forms of the released evaluator's cases."""

from __future__ import annotations

from collections import Counter

import pytest

from omnidata.tasks.agentstudio.rules import (
    judge_multiple,
    judge_point,
    judge_released,
    judge_single,
    read_success,
)
from tests.metrics.agentstudio import Row, real_rows, reference, respond


@pytest.fixture(scope="module")
def rows() -> dict[str, list[Row]]:
    return real_rows()


READABLE = {
    "groundui": {
        "right", "right_quoted", "right_chatty", "plus_sign", "spaces", "newline_inside",
        "leading_dot", "named", "square", "no_paren", "fullwidth", "exponent", "edge_left",
        "edge_top", "edge_right", "edge_bottom", "multi_sameline_right_last",
        "multi_multiline_right_last",
    },
    "idm": {
        "right", "right_chatty", "upper_word", "lower_word", "lower_letter", "nospace", "newline",
        "crlf", "dot_label", "two_letters", "bold_word", "bold_letter", "bold_both", "paren",
        "fullwidth_colon", "json", "prose_after", "multi_right_last",
    },
    "critic": {"right", "right_chatty", "lower", "upper", "both_right_first", "both_right_last"},
}  # fmt: skip
"""Kinds of right responses that the paper readings take."""

UNREADABLE = {
    "groundui": {"bbox4", "percent", "empty", "none", "refusal"},
    "idm": {"letter_only", "no_colon", "kelvin", "operation_text", "operation_cap", "none"},
    "critic": {"bare", "yes_no", "prefix_word", "echo_instruction", "none"},
}
"""Kinds that the paper readings leave unread."""


def read(name: str, row: Row, text: str | None) -> bool | None:
    """The paper's verdict; None = unread."""
    if name == "groundui":
        point = judge_point(row, text, space="rel")
        return None if point.fault == "no-pair" else point.hit
    if name == "idm":
        letter = judge_single(row["operation"], row["action_space"], text, reading="paper")
        return None if letter.fault == "unread" else letter.correct
    said = read_success(text)
    return None if said is None else said == row["is_success"]


@pytest.mark.parametrize(
    ("name", "kind"), [(n, k) for n, kinds in READABLE.items() for k in sorted(kinds)]
)
def test_a_right_response_is_right_in_every_dress(
    rows: dict[str, list[Row]], name: str, kind: str
) -> None:
    reachable = [row for row in rows[name] if name != "groundui" or row["bbox"][1] < row["bbox"][3]]
    assert len(rows[name]) - len(reachable) == (name == "groundui")
    assert {read(name, row, respond(name, row, kind)) for row in reachable} == {True}


@pytest.mark.parametrize(
    ("name", "kind"), [(n, k) for n, kinds in UNREADABLE.items() for k in sorted(kinds)]
)
def test_what_is_no_answer_is_unread(rows: dict[str, list[Row]], name: str, kind: str) -> None:
    assert {read(name, row, respond(name, row, kind)) for row in rows[name]} == {None}


def test_the_middles_of_all_boxes_hit_but_for_one_without_height_in_the_release(
    rows: dict[str, list[Row]],
) -> None:
    for judge, missing in ((judge_released, [67]), (judge_point, [])):
        missed = []
        for number, row in enumerate(rows["groundui"]):
            (left, top, right, bottom), (width, height) = row["bbox"], row["resolution"]
            text = f"({(left + right) / 2 / width}, {(top + bottom) / 2 / height})"
            if not judge(row, text, space="rel").hit:
                missed.append(number)
        assert missed == missing, judge


def test_a_point_in_the_middle_of_the_screen_hits_36_of_1000(rows: dict[str, list[Row]]) -> None:
    hits: Counter[str] = Counter()
    for row in rows["groundui"]:
        hits[row["platform"]] += bool(judge_released(row, "(0.5, 0.5)", space="rel").hit)
    assert hits == {"web": 12, "desktop": 8, "mobile": 16}


def test_reversed_answers_match_154_windows(rows: dict[str, list[Row]]) -> None:
    verdicts = [
        judge_multiple(
            reference(row)[::-1],
            row["action_space"],
            respond("idmn2n", row, "right"),
            reading="release",
        )
        for row in rows["idmn2n"]
    ]
    assert sum(bool(verdict.correct) for verdict in verdicts) == 154


def test_the_blind_rule_on_the_last_observation_gets_270_of_350(
    rows: dict[str, list[Row]],
) -> None:
    critic = rows["critic"]
    assert (
        sum(bool(read("critic", row, respond("critic", row, "leak_rule"))) for row in critic) == 270
    )

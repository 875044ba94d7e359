"""The release readings against the released evaluator's own verdicts and reports."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from omnidata.tasks.agentstudio.answers import judge_point, judge_released
from omnidata.tasks.agentstudio.rules import (
    judge_multiple,
    judge_single,
    read_success,
    released_score,
)
from tests.metrics.agentstudio import Row, real_rows, reference, respond, shared_cases
from tests.metrics.release_report import critic_report, score_report


@pytest.fixture(scope="module")
def rows() -> dict[str, list[Row]]:
    return real_rows()


@pytest.fixture(scope="module")
def cases() -> list[Row]:
    return shared_cases("case")


@pytest.fixture(scope="module")
def reports() -> list[Row]:
    return shared_cases("report")


def found(case: Row, row: Row) -> Row:
    """Our verdict under the names of the cases."""
    text = case["response"]
    if case["set"] == "groundui":
        pixels = case["model"] == "gemini-1.5-flash"  # the release's rule, an option of ours
        verdict = judge_released(row, text, space="px" if pixels else "rel")
        point = verdict.point and [x if math.isfinite(x) else str(x) for x in verdict.point]
        return {"score": verdict.hit, "parsed": point}
    if case["set"] == "idm":
        letter = judge_single(row["operation"], row["action_space"], text, reading="release")
        parsed = letter.parsed[0] if letter.parsed else None
        return {"score": letter.correct, "parsed": parsed, "ref": row["operation"]}
    if case["set"] == "idmn2n":
        letters = judge_multiple(reference(row), row["action_space"], text, reading="release")
        return {
            "score": letters.correct,
            "parsed": list(letters.parsed),
            "ref": list(letters.reference),
            "edit_distance": letters.distance,
        }
    score = released_score(row["is_success"], text)
    return {} if score is None else {"score": score, "ref": row["is_success"]}


def test_every_verdict_is_the_released_evaluators(
    cases: list[Row], rows: dict[str, list[Row]]
) -> None:
    wrong = []
    for case in cases:
        ours = found(case, rows[case["set"]][case["row"]])
        theirs = {
            name: case[name] for name in ("score", "parsed", "ref", "edit_distance") if name in case
        }
        if ours != theirs:
            wrong.append((case, ours))
    assert len(cases) == 3_464
    assert wrong == []


def test_the_release_raises_where_a_critic_gave_no_response(cases: list[Row]) -> None:
    silent = [case for case in cases if case["set"] == "critic" and case["response"] is None]
    assert len(silent) == 35
    assert all("error" in case or "score" not in case for case in silent)


def test_the_cases_tell_right_answers_from_wrong_ones(cases: list[Row]) -> None:
    """Agreement would be cheap if nearly all verdicts were the same."""
    for name, count in Counter(case["set"] for case in cases).items():
        scores = [case.get("score") for case in cases if case["set"] == name]
        assert 100 < sum(score == 1.0 for score in scores) < count - 100, name


def test_the_responses_that_are_made_here_are_those_of_the_cases(
    cases: list[Row], rows: dict[str, list[Row]]
) -> None:
    """Where the row settles a response to the letter; the reports below are made of these."""
    settled = {
        "groundui": {"right_chatty", "edge_top", "edge_bottom", "bbox4", "leading_dot"}
        | {"newline_inside", "named", "square", "fullwidth", "trailing_dot", "huge", "none"},
        "idm": {"bold_word", "none"},
        "idmn2n": {"leading_spaces"},
        "critic": {"always_true", "bare", "both_right_first", "echo_instruction", "leak_rule"}
        | {"upper", "wrong", "none"},
    }
    checked = set()
    for case in cases:
        name, kind = case["set"], case["kind"]
        if kind in settled[name]:
            ours = respond(name, rows[name][case["row"]], kind)
            if kind == "right_chatty":  # the coordinates, in other words
                ours = ours and ours.split("\n\n")[1]
                assert ours and ours in case["response"]
            elif kind == "huge":
                assert ours and ours.startswith("(999") and case["response"].startswith("(999")
            else:
                assert ours == case["response"], case
            checked.add((name, kind))
    assert checked == {(name, kind) for name, kinds in settled.items() for kind in kinds}


def report_of(report: Row, rows: Sequence[Row]) -> dict[str, float | None]:
    """Our report over the responses of one run."""
    name, kinds = report["set"], report["kind_of_row"]
    kinds = [kinds] * report["n"] if isinstance(kinds, str) else kinds
    rows = rows[: report["n"]]
    texts = [respond(name, row, kind) for row, kind in zip(rows, kinds, strict=True)]
    pairs = list(zip(rows, texts, strict=True))
    platforms, sources = [row["platform"] for row in rows], [row["source"] for row in rows]
    tokens = [(7, 3)] * len(rows)
    if name == "critic":
        truths = [row["is_success"] for row in rows]
        verdicts = [bool(released_score(row["is_success"], text)) for row, text in pairs]
        metrics, raises = critic_report(truths, verdicts, platforms, sources)
        assert raises == ()
        return metrics
    if name == "groundui":
        hits = [judge_released(row, text, space="rel").hit for row, text in pairs]
        return {**score_report({"score": numbers(hits)}, platforms, tokens=tokens)}
    letters = [
        judge_single(row["operation"], row["action_space"], text, reading="release")
        if name == "idm"
        else judge_multiple(reference(row), row["action_space"], text, reading="release")
        for row, text in pairs
    ]
    scores = {"score": numbers([verdict.correct for verdict in letters])}
    if name == "idmn2n":
        scores["edit_distance"] = numbers([verdict.distance for verdict in letters])
    return {**score_report(scores, platforms, sources, tokens=tokens)}


def numbers(values: Sequence[Any]) -> list[float]:
    assert None not in values
    return [float(value) for value in values]


def test_every_report_is_the_released_evaluators(
    reports: list[Row], rows: dict[str, list[Row]]
) -> None:
    assert len(reports) == 8
    for report in reports:
        ours = report_of(report, rows[report["set"]])
        theirs = {name: float(value) for name, value in report["metrics"].items()}
        assert list(ours) == list(theirs), report["run"]
        assert ours == pytest.approx(theirs, abs=0, rel=0, nan_ok=True), report["run"]


# --- the paper readings on the same responses -----------------------------------------------------

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

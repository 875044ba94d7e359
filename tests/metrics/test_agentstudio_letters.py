"""Letters in responses, both readings, and their distance from what was done."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnidata.metrics.edit_distance import edit_distance
from omnidata.tasks.agentstudio.answers import (
    read_letter,
    read_letters,
    released_letter,
    released_letters,
)
from omnidata.tasks.agentstudio.rules import judge_multiple, judge_single, letters_of
from tests.full import FULL

SPACE = ["scroll up", "complete", "click", "enter", "right", "left", "type", "scroll down", "back"]

# --- the release's readings -----------------------------------------------------------------------

RELEASED = (
    *("ANSWER : H", "Answer:H", "Answer:\n\nH", "Answer: H. scroll down", "Answer: A, B"),
    *("**Answer: H**", "Answer: Click", "Answer: H\n\nAnswer: X", "Answer: H\nAnswer:", "H", ""),
    *("Answer: H\nThe answer: this is why", "Answer: Answer: H", "Answer: \u212a", "Answer: h"),
    *("Answer: \u0131", "Answer: \u0130", "Answer: \u017f", "**Answer:** H", "Answer: **H**"),
    *("Answer：H", "Answer: 1", '{"answer": "H"}', "The answer is H", "Answer:\nA\nB", "A\nB"),
    *("Answer: (H)", "Answer: A\nB"),
    *("**Answer:\nA\nB**", "Answer:\nA\nB\n", "Answer:\n\n\tA\nB", "Answer:\nA\n\nB"),
    *("Answer:\nA \nB", "Answer:\nA\n B", "Answer:\r\nA\r\nB", "Answer:\nA,\nB", "Answer: A B"),
    *("Answer: AB", "Answer: A -> B", "Answer:\n1. A\n2. B", "Answer:\n- A\n- B", "Answer :\nA\nB"),
    *("Answer:\n```\nA\nB\n```", "**Answer:**\nA\nB", "Answer:\nA. click\nB. type"),
    *("Answer:\nA\nB\nThe sequence is final", "Answer:\nA\nB\n\nThe sequence is final"),
    *("Answer:\na\nb", "Answer:\nA\nB\n\nAnswer:\nX\nY\nZ\n...", "Answer:\nA\nAnswer:\nB"),
)  # fmt: skip


pieces = st.lists(
    st.sampled_from(
        ["Answer", "answer:", "ANSWER :", "Answer:\n", "**", "A", "B\n", "\nC", " ", "\r\n", "d",
         "(", "1. ", "- ", ", ", "->", "Click", ".", ":", "：", "\u212a", "\u017f", "```", "and",
         "\n\n"]
    ),
    max_size=20,
).map("".join)  # fmt: skip


def check_released(text: str) -> None:
    single = re.findall(r"answer\s*:\s*([a-z])", text, re.IGNORECASE)
    assert released_letter(text) == (single[-1] if single else None)
    several = re.findall(r"answer:\s*([a-z](?:\n[a-z])*)", text, re.IGNORECASE)
    assert released_letters(text) == (tuple(several[-1].split("\n")) if several else ())


def test_the_linear_search_finds_what_the_releases_patterns_find() -> None:
    """One character, or a letter a line, behind the last "Answer:"."""
    for text in RELEASED:
        check_released(text)
    settings(deadline=None, max_examples=2_000 if FULL else 200)(given(pieces)(check_released))()
    text = "Answer:\nA\n\nAnswer:\nX\ny\nZ\n..."
    assert (released_letter(text), released_letters(text)) == ("X", ("X", "y", "Z"))


# --- the careful readings -------------------------------------------------------------------------

READ: dict[str, str] = {
    **dict.fromkeys(
        (
            "Answer:\nC\nG\nA", "Answer: C, G, A", "answer: c g a", "ANSWER:\r\nC\r\n\r\nG\r\nA",
            "**Answer:**\nC\nG\nA", "**Answer**:\n**C**\n**G**\n**A**", "Answer: C -> G -> A",
            "Answer: C → G → A", "Answer：C，G，A", "Answer:\n- C\n- G\n- A",
            "Answer:\n* C\n* G\n* A",
            "Answer:\n1. C\n2. G\n3. A", "Answer:\n1) **C**\n2) **G**\n3) **A**",
            "Answer: 1. C 2. G 3. A", "Answer:\nStep 1: C\nStep 2: G\nStep 3: A",
            "Answer:\nC. click\nG. type\nA. scroll up", "Answer:\nC: click\nG: type\nA: scroll up",
            "Answer:\nC (click)\nG (type)\nA (scroll up)", "Answer:\n(C) click\n(G) type\n(A) up",
            "Answer:\nC - click\nG – type\nA — scroll up", "Answer:\n```\nC\nG\nA\n```",
            "Answer:\n```text\nC\nG\nA\n```", "Answer: C, then G, and finally A.",
            '{"answer": ["C", "G", "A"]}', "Answer:\x0bC\x0bG\x0bA", "Answer: C; G; A",
            "Answer: C - G - A", "Answer: **C** – **G** – **A**.",
            "Answer: 1. C (click) 2. G (type) 3. A (scroll up)",
            "Answer:\nC\nG\nA\nThe sequence is final.", "Answer: C. click, G. type, A. scroll up",
            "Answer:\nC. click, on Play\nG. type\nA", "_Answer:_ C, G, A!",
            "Answer:\nB\nB\nNo.\n**Final answer:** C, G, A",
            "Answer: C, G, A\nThe answer: this is why", "Answer: C, G, A\nAnswer:",
            "Answer:\nC\nG\nA\n\nExplanation:\n- C: click",
        ),
        "CGA",
    ),
    "Answer:\nI\nA\nI": "IAI",
    "Answer: A, I, A": "AIA",
    "Answer:\nC\nG\n\nAnswer:\nX\nY\nZ\n...": "XYZ",
}  # fmt: skip

UNREAD = [
    "C\nG\nA", "The answer is C, G, A", "Answer: click, type, scroll up", "Answer: Click",
    "Answer:\nclick\ntype", "Answer: CGA", "Answer: I think C", "Answer: I'm not sure",
    "Answer: i.e. nothing", "Answer: E.g. nothing", "Answer: T-shirt", "Answer: A click\nB type",
    "Answer: 1, 2, 3", "Answer: \u212a", "Answer: é", "Answer:", "Answer: and then", "Answers: C",
    "reanswer: C", "",
]  # fmt: skip


@pytest.mark.parametrize("text", READ)
def test_a_careful_reader_takes_a_list_in_every_dress(text: str) -> None:
    assert read_letters(text) == tuple(READ[text])
    assert read_letter(text) == READ[text][0]


@pytest.mark.parametrize("text", UNREAD)
def test_words_are_not_letters(text: str) -> None:
    assert read_letters(text) is None
    assert read_letter(text) is None


def test_a_single_letter_may_have_words_behind_it_unless_it_is_a_word_itself() -> None:
    for text in (
        "Answer: C because a menu opened",
        "Answer: C.click",
        "Answer: C, the menu",
        "Answer: C - I saw a menu",
    ):
        assert read_letter(text) == "C", text
    assert read_letter("Answer: A, the list moved up") == "A"
    for text in ("Answer: A menu opened", "Answer: I see a menu", "Answer: X-rays"):
        assert read_letter(text) is None, text


letters = st.lists(st.sampled_from("ABCDEFGHIJK"), min_size=1, max_size=12)
frames = st.sampled_from(
    ["Answer:{}", "**answer :** {}", "So.\nAnswer: A\nNo.\n\nANSWER:\r\n{}\r\n"]
)
joints = st.sampled_from(
    ["\n", "\r\n", "\n\n", "\n- ", "\n* ", ", ", " ", " -> ", " - ", "; ", "\x0b", "\n "]
)


@settings(deadline=None)
@given(letters, joints, frames, st.booleans(), st.sampled_from(["{}", "**{}**", "({})", "`{}`"]))
def test_letters_in_any_dress_are_read_back(
    made: list[str], joint: str, frame: str, lower: bool, dress: str
) -> None:
    body = joint.join(dress.format(letter.lower() if lower else letter) for letter in made)
    text = frame.format(body)
    assert read_letters(text) == tuple(made)
    assert read_letter(text) == made[0]


# --- verdicts -------------------------------------------------------------------------------------


def test_a_letter_is_the_operations_place_in_the_action_space() -> None:
    assert letters_of(["scroll up", "back"], SPACE) == ("A", "I")
    assert letters_of(["b"], ["a", "b", "b"]) == ("B",)  # the first of two
    assert letters_of(["Back"], SPACE) is None


def test_an_operation_outside_the_action_space_is_a_fault_of_the_row() -> None:
    for reading in ("release", "paper"):
        single = judge_single("hover", SPACE, "Answer: A", reading=reading)
        several = judge_multiple(["back", "hover"], SPACE, "Answer: A", reading=reading)
        for verdict in (single, several):
            assert verdict == (None, None, ("A",), (), "operation-unknown")


def test_an_empty_window_is_a_fault_of_the_row() -> None:
    verdict = judge_multiple([], SPACE, "Answer: A", reading="release")
    assert (verdict.correct, verdict.distance, verdict.fault) == (None, None, "window-empty")


@pytest.mark.parametrize("text", [None, "", "no idea", "Answer: ?"])
def test_an_unread_response_is_wrong_by_the_length_of_the_reference(text: str | None) -> None:
    for reading in ("release", "paper"):
        several = judge_multiple(["back", "click"], SPACE, text, reading=reading)
        assert several == (False, 2, (), ("I", "C"), "unread")
        single = judge_single("back", SPACE, text, reading=reading)
        assert single == (False, 1, (), ("I",), "unread")


def test_the_example_of_appendix_d_is_three_edits_away() -> None:
    made = ["click", "click", "click", "click", "type"]
    text = "3. They scrolled down (H)\n\nAnswer:\nC\nG\nH\nC\nI\nG"
    for reading in ("release", "paper"):
        verdict = judge_multiple(made, SPACE, text, reading=reading)
        assert (verdict.correct, verdict.distance) == (False, 3)


def test_lower_case_is_wrong_in_the_release_and_right_in_the_paper() -> None:
    assert judge_single("click", SPACE, "Answer: c", reading="release").correct is False
    assert judge_single("click", SPACE, "Answer: c", reading="paper").correct is True


@settings(deadline=None)
@given(st.lists(st.sampled_from("ABc"), max_size=9), st.lists(st.sampled_from("ABc"), max_size=9))
def test_the_edit_distance_is_levenshteins(one: list[str], other: list[str]) -> None:
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        before, row = row, [place]
        for column, wanted in enumerate(other, 1):
            replaced = before[column - 1] + (letter != wanted)
            row.append(min(replaced, before[column] + 1, row[-1] + 1))
    assert edit_distance(one, other) == edit_distance(other, one) == row[-1]

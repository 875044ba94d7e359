"""Verdicts on success, and the rates that they make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnidata.metrics.classification import RATES, Confusion, rates
from omnidata.metrics.intervals import wilson
from omnidata.metrics.row_tables import critic_table
from omnidata.tasks.agentstudio.rules import read_success, released_score
from tests.full import FULL

# --- responses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "for_success", "for_failure"),
    [
        ("Answer: True", True, False),
        ("True", True, False),
        ("False", False, True),
        ("It is True, not False", True, True),
        ("Open Truecaller", True, False),
        ("Falsehood", False, True),
        ("Answer: true", False, False),
        ("Answer: TRUE", False, False),
        ("Yes", False, False),
        ("", False, False),
    ],
)
def test_the_release_looks_for_the_right_word_anywhere(
    text: str, for_success: bool, for_failure: bool
) -> None:
    assert (released_score(True, text), released_score(False, text)) == (for_success, for_failure)


def test_the_release_has_no_verdict_on_no_response() -> None:
    assert released_score(True, None) is released_score(False, None) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Answer: True", True),
        ("ANSWER: FALSE", False),
        ("answer:true", True),
        ("Answer:\r\n\r\nTrue.", True),
        ("**Answer:** True", True),
        ("Answer: **False**", False),
        ("**Answer**: `False`", False),
        ("Answer：True", True),
        ('{"answer": true}', True),
        ("Answer:\n- True", True),
        ("Answer:\r\n\r\n• **False**", False),
        ("Answer: > `True`", True),
        ("Answer: True\n(it would be False otherwise)", True),
        ("Answer: True\nNo.\nAnswer: False", False),
        ("Answer: False\nThe answer: see above", False),
        ("Answer: False\nAnswer:", False),
        ("Answer: True\n\nFalse starts do not count.", True),
        ("True", None),
        ("The answer is True", None),
        ("Answer: Truecaller", None),
        ("Answer: Yes", None),
        ("Answer:\n- Not True", None),
        ("Answer: True or False", None),
        ("Answer: **True** / **False**", None),
        ("Instruction: is Truecaller installed?\nAnswer:", None),
        ("", None),
        (None, None),
    ],
)
def test_a_careful_reader_takes_the_last_answer(text: str | None, said: bool | None) -> None:
    assert read_success(text) is said


@settings(deadline=None, max_examples=500 if FULL else 100)
@given(st.text(), st.sampled_from(["Answer: True", "**Answer:** true", "ANSWER :\n_TRUE_"]))
def test_whatever_stands_before_the_last_answer_does_not_count(text: str, last: str) -> None:
    assert read_success(f"{text}\n{last}") is True


# --- rates ----------------------------------------------------------------------------------------

answers = st.lists(st.tuples(st.booleans(), st.sampled_from([True, False, None])), min_size=1)


@settings(deadline=None)
@given(answers)
@example([(True, False), (False, False)])
@example([(False, False)])
@example([(True, None), (False, None)])
def test_the_rates_are_scikit_learns(pairs: list[tuple[bool, bool | None]]) -> None:
    """With an unread response as a class of its own."""
    truth, said = [truth for truth, _ in pairs], [said for _, said in pairs]
    table = critic_table(Confusion.of(truth, said))
    from sklearn.metrics import precision_recall_fscore_support

    precision, recall, f1, _ = precision_recall_fscore_support(
        [int(value) for value in truth],
        [2 if value is None else int(value) for value in said],
        labels=[1],
        zero_division=0.0,
    )
    right = sum(one is other for one, other in pairs)
    wanted = [right / len(pairs), precision[0], recall[0], f1[0]]
    assert [table[name] for name in RATES] == pytest.approx(wanted, abs=1e-12)
    assert table["rows"] == len(pairs)


@pytest.mark.parametrize(
    ("counts", "undefined"),
    [
        (Confusion(tp=0, fp=0, fn=3, tn=4), ["precision"]),
        (Confusion(tp=0, fp=2, fn=0, tn=4), ["recall"]),
        (Confusion(tp=0, fp=0, fn=0, tn=4), ["precision", "recall", "f1"]),
        (Confusion(0, 0, 0, 0, unread_positive=3), ["precision"]),
        (Confusion(0, 0, 0, 0, unread_negative=3), ["precision", "recall", "f1"]),
        (Confusion(tp=1, fp=0, fn=0, tn=0), []),
    ],
)
def test_a_rate_of_nothing_is_zero_and_flagged(counts: Confusion, undefined: list[str]) -> None:
    table = critic_table(counts)
    assert table["undefined"] == undefined
    assert all(table[name] == 0.0 for name in undefined)
    assert all(low <= table[name] <= high for name, (low, high) in _intervals(table).items())
    assert set(_intervals(table)) == (set(RATES) if table["rows"] > 1 else {"accuracy"})


def _intervals(table: dict[str, Any]) -> dict[str, list[float]]:
    return {name: ends for name, ends in table["ci95"].items() if ends is not None}


def test_accuracy_of_nothing_or_all_has_wilsons_interval() -> None:
    """Precision, recall and F1 keep the bootstrap's: what they are over is drawn too."""
    table = critic_table(Confusion(tp=3, fp=0, fn=0, tn=5))
    assert table["ci95"]["accuracy"] == [*(wilson(8, 8) or ())]
    assert table["ci95_method"] == {"accuracy": "wilson"}
    none_right = critic_table(Confusion(tp=0, fp=5, fn=3, tn=0))
    assert none_right["ci95"]["accuracy"] == [*(wilson(0, 8) or ())]
    assert none_right["ci95"]["recall"] == [0.0, 0.0]
    per_recording = [Confusion(tp=3, fp=0, fn=0, tn=0), Confusion(tp=0, fp=0, fn=0, tn=5)]
    grouped = critic_table(Confusion(tp=3, fp=0, fn=0, tn=5), per_group=per_recording)
    assert grouped["ci95"]["accuracy"] == [*(wilson(2, 2) or ())]
    assert "ci95_method" not in critic_table(Confusion(tp=3, fp=0, fn=1, tn=5))


def test_without_rows_there_are_no_rates() -> None:
    table = critic_table(Confusion(0, 0, 0, 0))
    assert [table[name] for name in RATES] == [None] * 4
    assert set(table["ci95"].values()) == {None}
    assert table["rows"] == 0


def test_unread_responses_lower_recall_and_accuracy_and_leave_precision_alone() -> None:
    read = critic_table(Confusion(tp=6, fp=2, fn=2, tn=6))
    some = critic_table(Confusion(6, 2, 0, 4, unread_positive=2, unread_negative=2))
    assert some["precision"] == read["precision"] == some["recall"] == read["recall"] == 0.75
    assert (read["accuracy"], some["accuracy"]) == (12 / 16, 10 / 16)
    more = critic_table(Confusion(6, 2, 2, 6, unread_positive=8))
    assert (more["precision"], more["recall"], more["f1"]) == (6 / 8, 6 / 16, 12 / 24)


def test_rates_of_many_confusions_are_those_of_each() -> None:
    cells = np.arange(60).reshape(2, 5, 6)
    found = rates(cells)
    assert found.shape == (2, 5, 4)
    for place in np.ndindex(2, 5):
        assert (found[place] == rates(cells[place])).all()


def test_always_true_gets_an_f1_that_beats_most_published_models() -> None:
    table = critic_table(Confusion(tp=180, fp=170, fn=0, tn=0))
    assert [round(table[name], 3) for name in RATES] == [0.514, 0.514, 1.0, 0.679]

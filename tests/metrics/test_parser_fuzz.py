"""The parser under fire: bent outputs and arbitrary text."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from omnidata.tasks.json_answers import Answer, ParseFailure
from omnidata.tasks.omnigui.answers import parse
from tests.full import FULL
from tests.metrics.mutations import (
    ALL_KEYS,
    KEYS,
    NOISE,
    NUMBERS,
    STEP_CASES,
    WORDS,
    corpus,
    mutants,
)

MUTANTS = 1_000_000 if FULL else 30_000
SEED = 2  # the first mutants of this one reach every branch of the parser


@pytest.fixture(scope="module")
def outputs() -> list[str]:
    if not STEP_CASES.exists():
        pytest.skip(f"{STEP_CASES.name} is not here: the shared cases are kept outside")
    return corpus()


@pytest.fixture(scope="module")
def bent(outputs: list[str]) -> list[str]:
    return mutants(outputs, MUTANTS, seed=SEED)


def same(one: Answer | ParseFailure, other: Answer | ParseFailure) -> bool:
    """Equal to the letter: 1, 1.0 and True are three answers here; `as_prompted` may differ."""
    if isinstance(one, Answer) and isinstance(other, Answer):
        one = msgspec.structs.replace(one, as_prompted=other.as_prompted)
    return repr(one) == repr(other)


def check(text: str) -> None:
    """What holds for whatever a model writes."""
    result = parse(text)
    if isinstance(result, ParseFailure):
        assert result.reason, ascii(text)
        return
    assert type(result) is Answer
    assert type(result.kind) in (int, bool), ascii(text)
    assert -1 <= result.kind <= 11, ascii(text)
    assert result.text is None or type(result.text) is str, ascii(text)
    assert type(result.as_prompted) is bool, ascii(text)
    for pair in (result.start, result.end):
        if pair is not None:
            assert type(pair) is tuple and len(pair) == 2, ascii(text)
            assert all(type(value) in (int, float) for value in pair), ascii(text)
            assert all(value - value == 0 for value in pair), ascii(text)
    if not 3 <= result.kind <= 6:
        assert result.end is None, ascii(text)
    body = result.as_dict()
    again = json.loads(json.dumps(body, allow_nan=False))
    assert {key: type(value) for key, value in again.items()} == {
        key: list if type(value) is tuple else type(value) for key, value in body.items()
    }


# --- mutants of real outputs ----------------------------------------------------------------------


def test_every_mutant_gives_a_well_formed_answer_or_a_reason(bent: list[str]) -> None:
    for text in bent[:: 1 if FULL else 2]:
        check(text)


def test_the_mutants_give_every_primitive_and_every_reason(bent: list[str]) -> None:
    rare = [] if FULL else ["true"]  # the first mutant that is a bool is the 56,763rd
    found = [parse(text) for text in (*bent, *rare)]
    assert {answer.kind for answer in found if isinstance(answer, Answer)} == set(range(-1, 12))
    assert {answer.as_prompted for answer in found if isinstance(answer, Answer)} == {True, False}
    reasons = {answer.reason for answer in found if isinstance(answer, ParseFailure)}
    assert reasons >= {
        "no JSON action, tool call or function call in the text",
        "the JSON names no known action and no coordinate",
        "a number is infinite or too large",
        "the JSON is nested too deeply",
        *(f"the JSON is a {kind}, not an object" for kind in ("int", "float", "bool", "str")),
        "the JSON is a list, not an object",
        "the tool call is not a JSON object",
        "the tool call's arguments are not a JSON object",
        "the tool call's action is not a name",
        '"action_type" is NaN',
    }


def test_blanks_around_a_mutant_change_nothing(bent: list[str]) -> None:
    for text in bent[::4]:
        assert repr(parse(f"\n\u3000{text} \t\r\n")) == repr(parse(text)), ascii(text)


# --- arbitrary text and JSON ----------------------------------------------------------------------

any_text = st.text(st.characters(exclude_categories=()))
json_like = st.text(st.sampled_from('{}[]":,0123456789-+.eE \n\\u`(<>)/atruefalsnNI'), max_size=60)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(ALL_KEYS) | any_text, inner, max_size=4)
    ),
    max_leaves=12,
)
pieces = st.lists(
    st.sampled_from([*KEYS, *(f'"{key}": ' for key in KEYS), *WORDS, *NUMBERS, *NOISE]), max_size=20
).map("".join)


json_texts = st.builds(
    lambda frame, value, ascii_only: frame.replace(
        "{}", json.dumps(value, ensure_ascii=ascii_only)
    ),
    st.sampled_from(["{}", "x {} y", "```json\n{}\n```"]),
    json_values,
    st.booleans(),
)
tool_calls = st.builds(
    lambda name, key, value: f"<tool_call>{json.dumps({'name': name, key: value})}</tool_call>",
    st.sampled_from(["click", "type", "x"]),
    st.sampled_from(["arguments", "args"]),
    json_values,
)


@settings(deadline=None, max_examples=2_000 if FULL else 200)
@given(any_text | json_like | pieces | json_texts | tool_calls)
def test_any_text_gives_a_well_formed_answer_or_a_reason(text: str) -> None:
    check(text)


raw_numbers = st.from_regex(
    r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True
)
raw_strings = st.builds(
    lambda text, form: json.dumps(text, ensure_ascii=form), any_text, st.booleans()
)
raw_values = st.recursive(
    raw_numbers | raw_strings | st.sampled_from([*NUMBERS, "null", "true", "false"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda values: f"[{' , '.join(values)}]")
        | st.lists(st.tuples(st.sampled_from(KEYS), inner), max_size=3).map(
            lambda pairs: spell(pairs)
        )
    ),
    max_leaves=6,
)
raw_pairs = st.tuples(
    st.sampled_from(KEYS),
    raw_values | st.lists(raw_numbers, min_size=2, max_size=2).map(lambda xy: f"[{','.join(xy)}]"),
)


def spell(pairs: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{key}":{value}' for key, value in pairs) + "}"


@settings(deadline=None, max_examples=500 if FULL else 50)
@given(st.sampled_from(range(-1, 12)), st.lists(raw_pairs, max_size=6))
def test_the_fast_decoder_reads_what_pythons_own_does(
    kind: int, pairs: list[tuple[str, str]]
) -> None:
    """A NaN under a key that means nothing hands the whole object to Python's decoder."""
    pairs = [*pairs, ("action_type", str(kind))]
    fast, slow = parse(spell(pairs)), parse(spell([*pairs, ("of no meaning", "NaN")]))
    assert same(fast, slow), (fast, slow)


@settings(deadline=None)
@given(any_text)
def test_a_text_comes_out_as_pythons_json_reads_it(text: str) -> None:
    assume("<tool_call>" not in text)  # that tag is searched for first, wherever it stands
    for ascii_only in (True, False):
        body = json.dumps({"action_type": 7, "text": text}, ensure_ascii=ascii_only)
        assert parse(body) == Answer(7, text=json.loads(body)["text"], as_prompted=True)


@settings(deadline=None)
@given(raw_numbers, raw_numbers)
def test_a_number_comes_out_as_pythons_json_reads_it(x: str, y: str) -> None:
    wanted = [json.loads(number) for number in (x, y)]
    found = parse(f'{{"action_type": 0, "coordinate": [{x}, {y}]}}')
    if not all(map(math.isfinite, wanted)):
        assert found == ParseFailure("a number is infinite or too large")
        return
    assert isinstance(found, Answer) and found.start is not None
    for value, number in zip(found.start, wanted, strict=True):
        if isinstance(number, int) and abs(number) >= 1 << 53:
            number = int(float(number))  # the release takes every number through a float
        assert repr(value) == repr(number)


scale = st.integers(0, 1000) | st.floats(0, 1000)
points = st.lists(scale, min_size=2, max_size=2)
unbraced = any_text.map(lambda text: text.translate(dict.fromkeys(map(ord, "{}`<>"), "_")))
prompted = st.one_of(
    st.sampled_from([-1, 8, 9, 10, 11]).map(lambda kind: {"action_type": kind}),
    st.builds(lambda kind, xy: {"action_type": kind, "coordinate": xy}, st.integers(0, 2), points),
    st.builds(
        lambda kind, begin, end: {
            "action_type": kind,
            "start_coordinate": begin,
            "end_coordinate": end,
        },
        st.integers(3, 6),
        points,
        points,
    ),
    unbraced.map(lambda text: {"action_type": 7, "text": text}),
)


@settings(deadline=None)
@given(prompted)
def test_an_answer_as_the_prompt_asks_is_read_back_and_marked(body: dict[str, Any]) -> None:
    found = parse(json.dumps(body))
    assert isinstance(found, Answer) and found.as_prompted
    assert json.loads(json.dumps(found.as_dict())) == body


@settings(deadline=None)
@given(prompted, unbraced, unbraced)
def test_an_answer_in_prose_or_fences_is_the_same_action_unmarked(
    body: dict[str, Any], before: str, after: str
) -> None:
    text = json.dumps(body)
    alone = parse(text)
    for framed in (
        f"I see. {before} {text} {after}.",
        f"So:\n```json\n{text}\n```\n{after}",
        f"{before}.\n```\n{text}\n```",
        f"<think>{before}</think>\n{text}",
    ):
        found = parse(framed)
        assert same(found, alone), framed
        assert isinstance(found, Answer) and not found.as_prompted


@settings(deadline=None)
@given(prompted, st.sampled_from(KEYS), st.sampled_from(["zz", "Action", "note", "思考"]))
def test_a_further_key_costs_an_answer_its_mark_and_nothing_else(
    body: dict[str, Any], known: str, unknown: str
) -> None:
    found = parse(json.dumps({**body, unknown: known}))
    assert same(found, parse(json.dumps(body)))
    assert isinstance(found, Answer) and not found.as_prompted


@pytest.mark.parametrize(
    ("x", "prompted"),
    [("0", True), ("1000", True), ("1000.0", True), ("-1", False), ("1001", False)],
)
def test_an_answer_is_marked_from_0_to_1000_and_not_beyond(x: str, prompted: bool) -> None:
    for pair in (f"[{x}, 5]", f"[5, {x}]"):
        for keys in (
            f'"action_type": 0, "coordinate": {pair}',
            f'"action_type": 3, "start_coordinate": {pair}, "end_coordinate": [1, 1]',
            f'"action_type": 3, "start_coordinate": [1, 1], "end_coordinate": {pair}',
        ):
            found = parse(f"{{{keys}}}")
            assert isinstance(found, Answer) and found.as_prompted == prompted, keys


def test_what_stands_between_two_fences_is_in_neither() -> None:
    assert parse('```one```{"type": 8}```two```') == parse("no action at all")
    assert parse('```one``````{"type": 8}```') == Answer(8)

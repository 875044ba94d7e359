"""A fault of a server is named by its cause; a right server passes, a random one is unclear."""

from __future__ import annotations

import json
import random
import re
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

import pytest
from aiohttp import web

from omnidata.certify import Certificate, certify
from omnidata.errors import UnansweredError
from omnidata.run.asker import Recipe
from omnidata.run.cost import Limits
from tests.adapters.servers import FINE, Fault, running
from tests.certify.servers import FAULTS, Heard, Watching, answer_of, mix
from tests.full import in_gate


def ask(
    fault: Callable[[Heard], Heard],
    out: Path,
    letters: str,
    video: str = "native",
    attempts: int = 6,
) -> Certificate:
    with running(Watching(fault)) as server:
        model = Recipe("openai:m", {"video": video}, base_url=f"{server.url}/v1")
        limits = Limits(concurrency=8, attempts=attempts)
        return certify(model, out, modalities=letters, limits=limits)


@pytest.fixture(autouse=True)
def _away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    monkeypatch.setenv("OMNIDATA_CACHE", str(tmp_path / "cache"))


TOGETHER: list[tuple[str, ...]] = [
    ("resize", "BGR", "swap order"),
    ("pad", "first picture only"),
    ("units", "BGR of JPEG alone"),
    ("swap x and y", "drop pictures of text"),
    ("transcode", "lose frame times", "drop sound beside a clip"),
    ("limit pixels", "few frames", "cut at 30 s"),
    ("crop", "cap tokens", "cut at 28 s"),
    (
        *("ignore system", "drop history", "ignore a given beginning", "ignore stop"),
        *("ignore the limit", "strip special tokens", "ignore seed"),
    ),
]
"""Faults that fail different probes."""
ALONE: list[tuple[str, ...]] = [
    (name,) for name in FAULTS if all(name not in names for names in TOGETHER)
]
OTHERS: list[tuple[str, ...]] = [(name,) for names in TOGETHER for name in names]


@pytest.mark.parametrize(
    "names",
    in_gate(TOGETHER + ALONE + OTHERS, len(TOGETHER + ALONE), "each of several faults alone"),
    ids=" and ".join,
)
def test_a_fault_is_named_by_its_cause(names: Sequence[str], tmp_path: Path) -> None:
    faults, letters, causes = zip(*(FAULTS[name] for name in names), strict=True)
    found = ask(
        lambda heard: reduce(lambda so_far, fault: fault(so_far), faults, heard),
        tmp_path,
        ",".join(filter(None, letters)),
    )
    assert {finding.probe: finding.cause for finding in found.faults} == dict(ChainMap(*causes))
    assert all(finding.fix for finding in found.faults)


@pytest.mark.parametrize(("video", "letters"), [("native", "I,V,A"), ("frames", "V")])
def test_a_right_server_passes(video: str, letters: str, tmp_path: Path) -> None:
    found = ask(lambda heard: heard, tmp_path, letters, video)
    states = {finding.probe: finding.state for finding in found.findings}
    left_out = {"track"} if video == "frames" else set()
    assert {name for name, state in states.items() if state != "pass"} == left_out
    written = json.loads((tmp_path / "certificate.json").read_text("utf-8"))
    assert written["hash"]
    assert written["requests"] == found.requests
    assert "EMPTY" not in (tmp_path / "certificate.json").read_text("utf-8")


@pytest.mark.parametrize("text", ["4", "6", "left", "9" * 400])
def test_a_model_that_always_says_the_same_shows_nothing_of_its_server(
    text: str, tmp_path: Path
) -> None:
    found = ask(lambda heard: replace(heard, answer=lambda _: text), tmp_path, "A")
    assert found.faults == []
    passed = {finding.probe for finding in found.findings if finding.state == "pass"}
    assert passed <= {"repeat", "seed"}


def answering(change: Callable[[str], str]) -> Callable[[Heard], Heard]:
    """A model whose answers are changed in one way."""
    return lambda heard: replace(heard, answer=lambda asked: change(answer_of(asked)))


UNCOUNTED = "pictures arrive, but the server does not count their tokens"
NO_FAULTS: Mapping[str, tuple[Callable[[Heard], Heard], str, dict[str, str]]] = {
    "a model that hears one beep less": (
        answering(lambda text: str(int(text) - 1) if text in "23456" else text), "A", {}
    ),
    "one channel of sound": (lambda heard: replace(heard, sound=mix(heard.sound)), "A",
                             {"sides": ""}),
    "thoughts without an end": (answering(lambda _: "<think>Is it 4, or 6? " * 200), "A",
                                {"beeps": "4 of 4 answers are cut: turn thoughts off"}),
    "a model that leaves special tokens out": (
        answering(lambda text: re.sub("<.*?>", "", text)), "", {"special-tokens": ""}
    ),
    "a model that counts to a hundred alone": (
        answering(lambda text: text.partition(" 101")[0]), "", {}
    ),
    "pictures that arrive uncounted": (
        lambda heard: replace(heard, counts_pictures=False), "I", {"tokens": UNCOUNTED}
    ),
}  # fmt: skip
"""What happens to a request or an answer, the modalities to send, and what is unclear, and why."""


@pytest.mark.parametrize("name", NO_FAULTS)
def test_what_the_server_cannot_help_is_unclear_and_no_fault(name: str, tmp_path: Path) -> None:
    change, letters, unclear = NO_FAULTS[name]
    found = ask(change, tmp_path, letters)
    assert found.faults == []
    findings = {finding.probe: finding for finding in found.findings}
    for probe, why in unclear.items():
        assert findings[probe].state == "unclear"
        assert why in findings[probe].why


def test_no_certificate_is_written_where_nothing_is_answered(tmp_path: Path) -> None:
    def refuse(heard: Heard) -> Heard:
        raise web.HTTPBadRequest(text="no such model")

    with pytest.raises(UnansweredError, match="no such model"):
        ask(refuse, tmp_path, "")
    assert not (tmp_path / "certificate.json").exists()


def test_a_server_without_pictures_is_asked_the_rest(tmp_path: Path) -> None:
    def refuse(heard: Heard) -> Heard:
        if heard.pictures:
            raise web.HTTPBadRequest(text="no pictures")
        return heard

    found = ask(refuse, tmp_path, "I")
    assert {finding.cause for finding in found.faults} == {"refused"}
    passed = {finding.probe for finding in found.findings if finding.state == "pass"}
    assert {"system", "history", "prefix", "repeat"} <= passed


@pytest.mark.parametrize(
    "form",
    [
        "<think>1, 2 or [3, 4]? The red one, no, left.</think>\n{}",
        "The answer is **{}**.",
        '```json\n{{"answer": "{}"}}\n```',
        "\u7b54\u6848\u662f\uff1a{}",
    ],
)
def test_answers_among_other_words_are_read(form: str, tmp_path: Path) -> None:
    found = ask(answering(form.format), tmp_path, "")
    assert {finding.state for finding in found.findings} == {"pass"}


@pytest.mark.parametrize(
    ("refuses", "letters", "refused"),
    [
        (lambda heard: heard.turns[0][0] == "system", "", {"system"}),
        (lambda heard: len(heard.pictures) > 1, "I", {"several-pictures", "current-picture"}),
        (lambda heard: heard.keeps_special or heard.stop, "", set[str]()),
    ],
)
def test_a_refused_input_fails_and_a_refused_setting_is_left_out(
    refuses: Callable[[Heard], bool], letters: str, refused: set[str], tmp_path: Path
) -> None:
    def refuse(heard: Heard) -> Heard:
        if refuses(heard):
            raise web.HTTPBadRequest(text="not supported")
        return heard

    found = ask(refuse, tmp_path, letters)
    assert {finding.probe for finding in found.faults} == refused
    left_out = {finding.probe for finding in found.findings if finding.state == "left out"}
    assert left_out == (set() if refused else {"special-tokens", "stop"})


def test_a_limit_holds_for_all_probes_together(tmp_path: Path) -> None:
    with running(Watching()) as server:
        model = Recipe("openai:m", base_url=f"{server.url}/v1")
        found = certify(model, tmp_path, modalities="", limits=Limits(max_tokens=300))
    assert found.tokens < 400  # of 500; the mean answer tells what the next one may take
    assert "no question was asked" in [finding.why for finding in found.findings]


def test_a_probe_passes_by_most_of_its_questions_alone(tmp_path: Path) -> None:
    with running(Watching()) as server:
        model = Recipe("openai:m", base_url=f"{server.url}/v1")
        found = certify(model, tmp_path, modalities="", limits=Limits(max_tokens=1))
    assert found.requests == 1
    assert {finding.state for finding in found.findings} == {"unclear"}
    assert "only 1 of 4 questions were asked" in [finding.why for finding in found.findings]


def test_random_answers_are_unclear(tmp_path: Path) -> None:
    rng = random.Random(0)
    words = ["red", "blue", "left", "right", "high", "low", "4", "kiwi", "A", "[3, 4]"]

    def guess(heard: Heard) -> Heard:
        said = f"{rng.choice(words)} {rng.randrange(10**6)}"
        return replace(heard, answer=lambda _: said)

    found = ask(guess, tmp_path, "I,V,A")
    causes = {finding.probe: finding.state for finding in found.findings}
    known = {"repeat", "seed", "tokens"}
    assert {name: state for name, state in causes.items() if state != "unclear"}.keys() <= known


def is_left_unanswered(heard: Heard) -> bool:
    return "ship" in heard.turns[-1][1] and not heard.temperature


def test_one_reply_that_is_lost_changes_no_repeated_answer(tmp_path: Path) -> None:
    asked = 0

    def lose_one(heard: Heard) -> Heard:
        nonlocal asked
        asked += is_left_unanswered(heard)
        if is_left_unanswered(heard) and asked == 2:
            raise web.HTTPInternalServerError
        return heard

    found = ask(lose_one, tmp_path, "", attempts=1)
    [repeat] = [finding for finding in found.findings if finding.probe == "repeat"]
    assert (repeat.state, repeat.right, repeat.asked) == ("pass", 3, 3)
    assert found.faults == []


@pytest.mark.parametrize("end", [Fault(status=503), Fault(reset="before")])
def test_a_server_that_ends_refuses_nothing(end: Fault, tmp_path: Path) -> None:
    with running(Watching(), lambda number: FINE if number < 16 else end) as server:
        model = Recipe("openai:m", base_url=f"{server.url}/v1")
        found = certify(model, tmp_path, modalities="", limits=Limits(attempts=1))
    assert {finding.state for finding in found.findings} == {"pass", "unclear"}

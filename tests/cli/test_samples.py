"""`evaluate --samples`: several answers to every step, and what is chosen among them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.servers import Asked, ChatCompletions, Fault, Server, running
from tests.cli.asking import evaluate, info
from tests.cli.running import EXPORT, as_json, omnidata
from tests.export.small import TAP, rows, studio, tree
from tests.trees import read_lines, write_lines

RIGHT = '{"action_type":0,"coordinate":[278,200]}'
BESIDE = '{"action_type":0,"coordinate":[290,210]}'
FAR = '{"action_type":0,"coordinate":[900,900]}'
HOME = '{"action_type":9}'
SAID = {0: [RIGHT, BESIDE, FAR], 1: [HOME, FAR, RIGHT]}
"""By the number of the episode what a seed makes the model say; the first is without one."""

Say = Callable[[int, int], str | None]


def by_seed(episode: int, sample: int) -> str | None:
    return SAID[episode][sample]


class Drawing(ChatCompletions):
    """Says what the seed makes it say; None is a failure of the server."""

    def __init__(self, say: Say) -> None:
        super().__init__()
        self.say = say

    def reply(self, asked: Asked, text: str | None, fault: Fault) -> Any:
        episode = next(n for n in SAID if f"Task number {n}" in "\n".join(asked.seen))
        said = self.say(episode, asked.payload.get("seed", 0))
        return super().reply(asked, said, fault) if said else {"error": {"message": "busy"}}


@contextmanager
def server(say: Say = by_seed) -> Iterator[Server]:
    with running(Drawing(say)) as started:
        yield started


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tree(tmp_path / "data", episodes=2, actions=[TAP])


def command(asked: Server, data: Path, run: Path, *more: str | Path) -> list[str | Path]:
    own = ("-T", "modalities=I", "--samples", "3", "-M", "temperature=0.7", "--attempts", "1")
    return [*evaluate(asked, data, "--out", run), *own, "--json", *more]


def test_k_answers_a_step_and_what_they_say_together(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with server() as asked:
        said = as_json(omnidata(*command(asked, data, run)))
        assert asked.count == 6
        sent = {(each.payload.get("seed"), each.payload["temperature"]) for each in asked.asked}
        assert sent == {(None, 0.7), (1, 0.7), (2, 0.7)}
        table = said["samples"]
        assert said["overall"]["EM"] == 0.5  # of the first answers, as without --samples
        assert (table["seeds"], table["temperature"]) == ([None, 1, 2], 0.7)
        assert table["k"]["1"]["pass@k"] == pytest.approx(0.5)
        assert table["k"]["3"]["pass@k"] == 1.0
        assert table["k"]["3"]["pass^k"] == 0.0
        assert table["agreement"]["agreement"] == pytest.approx(1 / 6)
        assert table["majority"]["overall"]["EM"] == 0.5
        assert table["usage"]["requests"] == 6
        points = table["calibration"]["selective"]  # 2 of 3 votes are right, 1 of 3 is not
        assert [(point["coverage"], point["accuracy"]) for point in points] == [(0.5, 1), (1, 0.5)]
        assert table["calibration"]["ece"] == pytest.approx(1 / 3)
        lines = {line["sample_id"]: line for line in read_lines(run / "samples.jsonl")}
        assert lines["App/E00/0"] == {
            "sample_id": "App/E00/0", "answers": 3, "read": 3, "right": 2,
            "agreement": pytest.approx(1 / 3), "majority": 1, "votes": 2,
        }  # fmt: skip
        whole = command(asked, data, run)
        assert as_json(omnidata(*whole)) == said
        printed = omnidata(*[word for word in whole if word != "--json"]).stdout
        assert asked.count == 6
    assert "3 samples of 2 steps (%)" in printed
    assert "agreement: 16.7% of the pairs of answers" in " ".join(printed.split())


def test_every_sample_is_a_run_like_any_other_and_what_is_chosen_says_so(
    data: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with server() as asked:
        omnidata(*command(asked, data, run))
        chosen = run / "samples" / "majority"
        second = run / "samples" / "02"
        assert info(second).keys() == info(run).keys()
        for place in (second, chosen):
            omnidata("score", "omnigui", data, place, "--out", place)
        found = as_json(omnidata("report", run, second, chosen, "--format", "json"))
        assert "openai:tiny [majority of 3]" in json.dumps(found)
        omnidata("compare", run, chosen, "--json")
        omnidata("report", chosen, "--html", tmp_path / "pages.html")
        assert "majority of 3" in (tmp_path / "pages.html").read_text("utf-8")
        own = ("-T", "modalities=I", "-M", "temperature=0.7")
        done = omnidata(*evaluate(asked, data, "--out", chosen), *own, code=2)
        assert "answers chosen from other runs" in " ".join(done.stderr.split())
        usage = read_lines(chosen / "predictions.jsonl")[0]["usage"]
        assert usage["prompt_tokens"] == 300  # what the choice took


def test_the_samples_of_a_run_are_preferences(data: Path, tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    with server() as asked:
        omnidata(*command(asked, data, run))
    omnidata(
        *EXPORT, "omnigui", data, out, "--pairs", run, "--format", "trl-dpo", "--split", "train=1"
    )  # fmt: skip
    found = [
        (each["chosen"][0]["content"][0]["text"], each["rejected"][0]["content"][0]["text"])
        for each in rows(out)
    ]
    assert sorted(found) == sorted([(RIGHT, FAR), (RIGHT, HOME), (RIGHT, FAR)])


def test_a_critics_votes_are_its_confidence(tmp_path: Path) -> None:
    data, run = studio(tmp_path / "data", "criticbench"), tmp_path / "run"

    class Critic(ChatCompletions):
        def reply(self, asked: Asked, text: str | None, fault: Fault) -> Any:
            said = asked.payload.get("seed", 0) < 2
            return super().reply(asked, f"I think so. Answer: {said}", fault)

    with running(Critic()) as asked:
        table = as_json(
            omnidata(
                "evaluate", "criticbench", data, "--model", "openai:tiny", "--base-url",
                f"{asked.url}/v1", "--out", run, "--samples", "3", "-M", "temperature=1", "--json",
            )
        )["samples"]  # fmt: skip
    (point,) = table["calibration"]["reliability"]
    assert (point["rows"], point["accuracy"]) == (2, 0.5)  # one of both trajectories succeeded
    assert point["confidence"] == pytest.approx(2 / 3)


def test_a_failure_is_no_answer_and_is_asked_again(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    down = {(1, 2)}

    def flaky(episode: int, sample: int) -> str | None:
        return None if (episode, sample) in down else by_seed(episode, sample)

    with server(flaky) as asked:
        table = as_json(omnidata(*command(asked, data, run), code=1))["samples"]
        assert table["deliveries"] == {"ok": 5, "missing": 1}
        assert table["k"]["3"]["pass@k"] == 0.5
        down.clear()
        count = asked.count
        table = as_json(omnidata(*command(asked, data, run)))["samples"]
        assert asked.count == count + 1
    assert table["deliveries"] == {"ok": 6}
    assert table["k"]["3"]["pass@k"] == 1.0


def test_a_step_without_an_answer_has_no_majority(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with server(lambda episode, sample: None if episode else by_seed(episode, sample)) as asked:
        omnidata(*command(asked, data, run), code=1)
    (line,) = read_lines(run / "samples" / "majority" / "predictions.jsonl")
    assert line["sample_id"] == "App/E00/0"
    scores = read_lines(run / "samples" / "majority" / "scores.jsonl")
    assert {each["sample_id"]: each["outcome"] for each in scores}["App/E01/0"] == "missing"


def test_a_verifier_chooses_the_best_answer(data: Path, tmp_path: Path) -> None:
    run, scores = tmp_path / "run", tmp_path / "scores.jsonl"
    told = {
        ("App/E00/0", 1): 0.9,
        ("App/E00/0", 3): 0.2,
        ("App/E01/0", 1): 0.1,
        ("App/E01/0", 3): 0.8,
    }
    lines = [{"sample_id": own, "sample": n, "score": score} for (own, n), score in told.items()]
    write_lines(scores, lines)
    with server() as asked:
        table = as_json(omnidata(*command(asked, data, run, "--verifier", scores)))["samples"]
    assert table["best"]["overall"]["EM"] == 1.0
    assert info(run / "samples" / "best")["selection"] == {"by": "best", "samples": 3}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--samples", "3"), "the model decodes greedily, so all samples would be the same answer"),
        (("--samples", "1", "-M", "temperature=1"), "--samples 1: the number of samples"),
        (("--verifier", "scores.jsonl"), "a verifier chooses among several answers"),
        (
            ("--samples", "3", "-M", "temperature=1", "-T", "history=predicted"),
            "each sample would see another prompt",
        ),
    ],
)
def test_what_cannot_be_meant_is_bad_usage(
    data: Path, tmp_path: Path, more: tuple[str, ...], said: str
) -> None:
    with server() as asked:
        whole = [*evaluate(asked, data, "--out", tmp_path / "run"), "-T", "modalities=I", *more]
        done = omnidata(*whole, code=2)
        assert asked.count == 0
    assert said in " ".join(done.stderr.split())

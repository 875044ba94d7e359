"""The cache gives back what was asked before, to whoever asks the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import RunError
from omnidata.run.cost import Limits
from omnidata.run.evaluate import evaluate
from omnidata.types import Completion, Delivery, GenerationParams, LoadedDataset, Prepared, Request
from tests.adapters.servers import ChatCompletions, running
from tests.cli.running import Started, omnidata
from tests.full import FULL
from tests.run.scripted import RIGHT, TASK, Scripted
from tests.trees import read_lines

ANSWER = Completion(
    text='{"action_type": 0} \ud800 \0é',
    usage={"prompt_tokens": 7},
    receipt={"parts": [{"role": "screenshot", "width": 720}], "tokens": {"image": 2**60}},
)
GREEDY = GenerationParams()


class Keyed(Scripted):
    """A model whose requests have keys by a function."""

    def __init__(
        self,
        reply: Callable[[str, int], Completion] = lambda *_: RIGHT,
        key: Callable[[str], str] = lambda sample_id: sample_id,
        settings: Mapping[str, Any] = {},
        params: GenerationParams = GREEDY,
        name: str = "scripted",
    ) -> None:
        super().__init__(reply)
        self.key, self.settings, self.params, self.name = key, settings, params, name

    def prepare(self, request: Request) -> Prepared:
        return Prepared(request, key=self.key(request.sample_id))


@pytest.fixture
def ask(source: LoadedDataset, tmp_path: Path) -> Callable[..., dict[str, dict[str, Any]]]:
    """Asks a model in a run folder of its own with one cache; gives the lines."""
    runs = iter(range(100))

    def ask(model: Scripted, limit: int = 4) -> dict[str, dict[str, Any]]:
        out = tmp_path / f"run{next(runs)}"
        limits = Limits(cache=tmp_path / "new" / "answers.db", attempts=1, concurrency=2)
        evaluate(TASK, source, model, out, limit=limit, limits=limits)
        return {line["sample_id"]: line for line in read_lines(out / "predictions.jsonl")}

    return ask


Ask = Callable[..., dict[str, dict[str, Any]]]


def test_an_answer_comes_back_as_it_was_and_costs_nothing(ask: Ask) -> None:
    first, again = ask(Keyed(lambda *_: ANSWER)), Keyed()
    for _ in range(2):
        for name, line in ask(again).items():
            assert line["output"] == first[name]["output"] == ANSWER.text
            assert line["receipt"] == {**first[name]["receipt"], "cached": True}
            assert (line["attempts"], line.get("usage", {})) == (0, {})
    assert not again.asked


@pytest.mark.parametrize(
    ("delivery", "kept"),
    [("ok", True), ("truncated", True), ("refused", True), ("api_error", False),
     ("media_error", False)],
)  # fmt: skip
def test_only_what_the_model_said_is_kept(ask: Ask, delivery: Delivery, kept: bool) -> None:
    last: list[str] = []

    def reply(sample_id: str, attempt: int) -> Completion:
        last.append(sample_id)
        return Completion(delivery=delivery, text="t") if len(last) == 1 else RIGHT

    ask(Keyed(reply))
    again = Keyed()
    ask(again)
    assert set(again.asked) == (set() if kept else {last[0]})


def test_the_first_answer_stays(ask: Ask) -> None:
    """Two equal requests may be under way at once."""
    said: list[str] = []

    def reply(sample_id: str, attempt: int) -> Completion:
        said.append(sample_id)
        return Completion(text=sample_id)

    ask(Keyed(reply, key=lambda _: "same"), limit=2)
    again = ask(Keyed(key=lambda _: "same"), limit=2)
    assert {line["output"] for line in again.values()} == {said[0]}


@pytest.mark.parametrize(
    "other",
    [
        {"name": "openai:n"},
        {"settings": {"model": "openai:m", "layout": "release"}},
        {"params": GenerationParams(max_new_tokens=1)},
        {"params": GenerationParams(seed=1)},
        {"params": GenerationParams(temperature=0.7)},
        {"key": lambda sample_id: f"{sample_id} in other words"},
    ],
)
def test_another_model_setting_or_prompt_is_another_question(
    ask: Ask, other: dict[str, Any]
) -> None:
    same: dict[str, Any] = {"settings": {"model": "openai:m", "layout": "paper"}}
    ask(Keyed(**same))
    again = Keyed(**{**same, **other})
    ask(again)
    assert len(again.asked) == 4


def test_the_order_of_settings_does_not_matter(ask: Ask) -> None:
    ask(Keyed(settings={"model": "openai:m", "layout": "paper"}))
    again = Keyed(settings={"layout": "paper", "model": "openai:m"})
    ask(again)
    assert not again.asked


@pytest.mark.parametrize("temperature", [0.7, None])
def test_draws_of_two_steps_or_seeds_stay_independent(ask: Ask, temperature: float | None) -> None:
    for seed in (None, 0, 1):
        params = replace(GenerationParams(temperature=temperature), seed=seed)
        for limit in (1, 2):  # the first step of the second run comes out of the cache
            model = Keyed(key=lambda _: "same", params=params)
            ask(model, limit=limit)
            assert len(model.asked) == 1


def test_a_request_without_a_key_is_kept_nowhere(ask: Ask) -> None:
    for _ in range(2):
        model = Keyed(key=lambda _: "")
        ask(model)
        assert len(model.asked) == 4


def test_processes_share_a_file_from_its_first_moment(sample: Path, tmp_path: Path) -> None:
    with running(ChatCompletions()) as server:
        told = ["omnigui", str(sample), "--model", "openai:m", "--base-url", f"{server.url}/v1"]
        told += ["--cache", str(tmp_path / "c"), "-T", "modalities=I", "--limit", "20", "--out"]
        many = [
            Started("evaluate", *told, str(tmp_path / f"run{n}")) for n in range(4 if FULL else 2)
        ]
        for each in many:
            each.communicate()
        assert [each.returncode for each in many] == [0] * len(many)
        asked = server.count
        omnidata("evaluate", *told, str(tmp_path / "last"))
        assert server.count == asked
    lines = [read_lines(run / "predictions.jsonl") for run in tmp_path.glob("run?")]
    assert [len(found) for found in lines] == [20] * len(many)


def test_a_corrupt_file_is_an_error_that_names_it_and_the_remedy(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "new" / "answers.db"
    said = r"answers\.db: .*(?s:.*)remove answers\.db, answers\.db-wal"
    ask(Keyed(lambda *_: Completion(text="long" * 5000)))
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\x55" * (len(data) - 4096))  # the first page has the schema
    with pytest.raises(RunError, match=said):
        ask(Keyed())
    path.write_bytes(b"no database at all\n" * 300)
    with pytest.raises(RunError, match=said):
        ask(Keyed())


def test_a_kept_answer_that_cannot_be_read_is_no_answer(ask: Ask, tmp_path: Path) -> None:
    ask(Keyed())
    db = sqlite3.connect(tmp_path / "new" / "answers.db")
    db.execute("UPDATE answers SET completion = ?", [b'{"delivery": "maybe"}'])
    db.commit()
    db.close()
    with pytest.raises(RunError, match=r"answer \w+ cannot"):
        ask(Keyed())


def test_another_programs_database_is_left_alone(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "new" / "answers.db"
    path.parent.mkdir()
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE mail (text)")
    db.commit()
    before = path.read_bytes()
    with pytest.raises(RunError, match="is not a cache of omnidata"):
        ask(Keyed())
    db.close()
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_said(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "new" / "answers.db").mkdir(parents=True)
    with pytest.raises(RunError, match="--cache"):
        ask(Keyed())
    (tmp_path / "new" / "answers.db").rmdir()
    (tmp_path / "new").rmdir()
    (tmp_path / "new").write_text("a file")
    with pytest.raises(RunError, match="--cache"):
        ask(Keyed())

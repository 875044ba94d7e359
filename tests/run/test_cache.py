"""The cache gives back what was asked before, to whoever asks the same."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.errors import RunError
from omnidata.run.cache import ResponseCache, key
from omnidata.types import Completion, Delivery, GenerationParams
from tests.full import FULL

GREEDY, WARM = GenerationParams(), GenerationParams(temperature=0.7)
SETTINGS = {"model": "openai:m", "layout": "paper"}
ANSWER = Completion(
    text='{"action_type": 0}',
    usage={"prompt_tokens": 7},
    latency_s=1.5,
    attempts=2,
    receipt={"parts": [{"role": "screenshot", "width": 720}]},
)


def test_an_answer_comes_back_and_costs_nothing(tmp_path: Path) -> None:
    with ResponseCache(tmp_path / "new" / "cache.db") as cache:
        assert cache.get("k") is None
        cache.put_many([("k", ANSWER)])
        hit = cache.get("k")
    assert hit == Completion(
        text=ANSWER.text, attempts=0, receipt={**ANSWER.receipt, "cached": True}
    )
    with ResponseCache(tmp_path / "new" / "cache.db") as again:
        assert again.get("k") == hit


@pytest.mark.parametrize(
    ("delivery", "kept"),
    [("ok", True), ("truncated", True), ("refused", True), ("api_error", False),
     ("media_error", False)],
)  # fmt: skip
def test_only_what_the_model_said_is_kept(tmp_path: Path, delivery: Delivery, kept: bool) -> None:
    with ResponseCache(tmp_path / "c") as cache:
        cache.put_many([("k", Completion(delivery=delivery, text="t"))])
        assert (cache.get("k") is not None) == kept


def test_the_first_answer_stays_and_a_hit_is_not_kept_again(tmp_path: Path) -> None:
    with ResponseCache(tmp_path / "c") as cache:
        cache.put_many([("k", ANSWER), ("k", Completion(text="later"))])
        hit = cache.get("k")
        assert hit is not None
        assert hit.text == ANSWER.text
        cache.put_many([("other", hit), ("", ANSWER)])
        assert cache.get("other") is None
        assert cache.get("") is None


@given(st.text() | st.just("\ud800"), st.dictionaries(st.text(), st.integers(0, 2**60)))
def test_every_text_survives(text: str, usage: dict[str, int]) -> None:
    with ResponseCache(Path(":memory:")) as cache:
        cache.put_many([("k", Completion(text=text, receipt={"tokens": usage}))])
        hit = cache.get("k")
    assert hit is not None
    assert hit.text == text
    assert hit.receipt["tokens"] == usage


@pytest.mark.parametrize(
    "other",
    [
        key({**SETTINGS, "model": "openai:n"}, GREEDY, "f00", "a"),
        key(SETTINGS, replace(GREEDY, max_new_tokens=1), "f00", "a"),
        key(SETTINGS, replace(GREEDY, seed=1), "f00", "a"),
        key(SETTINGS, WARM, "f00", "a"),
        key(SETTINGS, GREEDY, "f01", "a"),
    ],
)
def test_another_model_setting_or_prompt_is_another_question(other: str) -> None:
    assert key(SETTINGS, GREEDY, "f00", "a") != other


def test_the_order_of_settings_does_not_matter() -> None:
    backwards = dict(reversed(list(SETTINGS.items())))
    assert key(SETTINGS, GREEDY, "f00", "a") == key(backwards, GREEDY, "f00", "a")


@pytest.mark.parametrize("temperature", [0.7, None])
def test_draws_of_two_samples_or_seeds_stay_independent(temperature: float | None) -> None:
    warm = replace(GREEDY, temperature=temperature)
    drawn = {
        key(SETTINGS, replace(warm, seed=seed), "f00", sample)
        for seed in (None, 0, 1)
        for sample in ("a", "b")
    }
    assert len(drawn) == 6


def test_a_request_without_a_key_is_kept_nowhere() -> None:
    assert key(SETTINGS, GREEDY, "", "a") == ""


_WRITER = """
import sys
from pathlib import Path
from omnidata.run.cache import ResponseCache
from omnidata.types import Completion
name = sys.argv[2]
with ResponseCache(Path(sys.argv[1])) as cache:
    for n in range(100):
        cache.put_many([(f"{name}{n}", Completion(text=name)), (f"all{n}", Completion(text=name))])
        assert cache.get(f"all{n}").text in "abcd"
"""


def test_processes_share_a_file_from_its_first_moment(tmp_path: Path) -> None:
    path, names = tmp_path / "c", "abcd" if FULL else "ab"
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path), name], stderr=subprocess.PIPE)
        for name in names
    ]
    errors = [writer.communicate(timeout=100)[1] for writer in writers]
    assert errors == [b""] * len(names)
    with ResponseCache(path) as cache:
        for n in range(100):
            for name in names:
                hit = cache.get(f"{name}{n}")
                assert hit is not None
                assert hit.text == name


def damage(path: Path) -> None:
    """Overwrite all pages but the first, which has the header and the schema."""
    with ResponseCache(path) as cache:
        cache.put_many([(f"{n:064}", ANSWER) for n in range(500)])
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\x55" * (len(data) - 4096))


@pytest.mark.parametrize("text", [b"no database at all\n" * 300, None])
def test_a_corrupt_file_is_an_error_that_names_it_and_the_remedy(
    tmp_path: Path, text: bytes | None
) -> None:
    path = tmp_path / "answers.db"
    if text is None:
        damage(path)
    else:
        path.write_bytes(text)
    with (
        pytest.raises(RunError, match=r"answers\.db: .*(?s:.*)remove answers\.db, answers\.db-wal"),
        ResponseCache(path) as cache,
    ):
        cache.get(f"{1:064}")


def test_a_kept_answer_that_cannot_be_read_is_no_answer(tmp_path: Path) -> None:
    with ResponseCache(tmp_path / "c") as cache:
        cache.put_many([("k", ANSWER)])
    db = sqlite3.connect(tmp_path / "c")
    db.execute("UPDATE answers SET completion = ?", [b'{"delivery": "maybe"}'])
    db.commit()
    db.close()
    with ResponseCache(tmp_path / "c") as cache, pytest.raises(RunError, match="answer k cannot"):
        cache.get("k")


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "mail.db")
    db.execute("CREATE TABLE mail (text)")
    db.commit()
    before = (tmp_path / "mail.db").read_bytes()
    with pytest.raises(RunError, match="is not a cache of omnidata"):
        ResponseCache(tmp_path / "mail.db")
    db.close()
    assert (tmp_path / "mail.db").read_bytes() == before


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(RunError, match="--cache"):
        ResponseCache(tmp_path / "file" / "cache.db")
    with pytest.raises(RunError, match="--cache"):
        ResponseCache(tmp_path)

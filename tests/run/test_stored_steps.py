"""A run leaves the same bytes wherever its steps lie: in memory, or on disk."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, SupportsIndex

import numpy as np
import pytest

from omnidata.adapters import Model
from omnidata.errors import UsageError
from omnidata.loaders.steps import Steps
from omnidata.predictions import Prediction, read
from omnidata.run.cost import Limits
from omnidata.run.engines import Cluster
from omnidata.run.evaluate import evaluate
from omnidata.run.journal import RunFolder
from omnidata.run.parts import merge
from omnidata.run.scoring import get_profile, score
from omnidata.run.selection import read_exclude, select, shard, whole_episodes
from omnidata.tasks import get_task
from omnidata.types import Completion, GenerationParams, LoadedDataset, Prepared
from tests.cli.running import here
from tests.loaders.every import is_on_disk

FILES = ("predictions.jsonl", "scores.jsonl", "results.json")
IN_MEMORY, ON_DISK = "1000000", "0"


class Talker(Model):
    """Answers by the text of the prompt: right, wrong, unreadable and failing."""

    name = "talker"
    accepts = None

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        found = []
        for item in batch:
            number = len(repr(item.request.conversation)) + len(item.request.sample_id)
            text = ['{"action_type": 0, "x": 500, "y": 500}', '{"action_type": 8}', "?"][number % 3]
            found.append(
                Completion(
                    delivery="truncated" if number % 7 == 0 else "ok",
                    text=text,
                    usage={"prompt_tokens": number},
                )
            )
        return found


def ran(
    monkeypatch: pytest.MonkeyPatch,
    data: Path,
    out: Path,
    many: str,
    options: Mapping[str, str] = {},
    **chosen: Any,
) -> dict[str, bytes]:
    """A run's files; what its time says is left out."""
    monkeypatch.setenv("OMNIDATA_STEPS_IN_MEMORY", many)
    task = get_task("omnigui", options)
    source = task.load(data)
    assert is_on_disk(source) == (many == ON_DISK)
    evaluate(task, source, Talker(), out, limits=Limits(concurrency=1), **chosen)
    found = {name: (out / name).read_bytes() for name in FILES}
    info = json.loads((out / "run.json").read_text())
    del info["timings"]
    return found | {"run.json": json.dumps(info).encode()}


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ({}, {}),
        ({"history": "predicted"}, {}),
        ({}, {"where": {"language": "zh"}, "limit": 40}),
        ({}, {"shard": (2, 3), "profile": "omnigui-release"}),
    ],
)
def test_a_run_leaves_the_same_bytes(
    few: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: Mapping[str, str],
    chosen: Mapping[str, Any],
) -> None:
    found = [
        ran(monkeypatch, few, tmp_path / many, many, options, **chosen)
        for many in (IN_MEMORY, ON_DISK)
    ]
    assert found[0] == found[1]
    assert len(set(re.findall(rb'"outcome":"(\w+)"', found[0]["scores.jsonl"]))) > 1


def test_a_run_is_resumed_from_disk(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ran(monkeypatch, few, tmp_path / "whole", IN_MEMORY, {"history": "predicted"})
    out = tmp_path / "cut"
    ran(monkeypatch, few, out, IN_MEMORY, {"history": "predicted"})
    lines = (out / FILES[0]).read_bytes().splitlines(keepends=True)
    (out / FILES[0]).write_bytes(b"".join(lines[:25]) + lines[25][:9])
    again = ran(monkeypatch, few, out, ON_DISK, {"history": "predicted"})
    assert sorted(again[FILES[0]].splitlines()) == sorted(whole[FILES[0]].splitlines())
    assert again["results.json"] == whole["results.json"]


@pytest.mark.parametrize(("many", "spread"), [(IN_MEMORY, False), (ON_DISK, True)])
def test_answers_are_judged_elsewhere_to_the_same_bytes(
    few: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cluster: Cluster,
    many: str,
    spread: bool,
) -> None:
    """Answers that come in any order, in two processes here or of a cluster, some steps without."""
    ran(monkeypatch, few, tmp_path / "run", many)
    lines = (tmp_path / "run" / FILES[0]).read_bytes().splitlines(keepends=True)
    answers = tmp_path / "answers.jsonl"
    answers.write_bytes(b"".join(lines[20:] + lines[:15]))
    monkeypatch.setattr("omnidata.run.judging.CHUNK", 10)
    command = ("score", "omnigui", few, answers, "--out")
    elsewhere = ["--engine", "ray", "--address", cluster.address] if spread else []
    for out, options in (("here", []), ("there", ["--workers", "2", *elsewhere])):
        here(*command, tmp_path / out, *options, code=1)  # some steps have no answer
    for name in FILES[1:]:
        alone = (tmp_path / "here" / name).read_bytes()
        assert (tmp_path / "there" / name).read_bytes() == alone
    assert b'"outcome":"missing"' in (tmp_path / "there" / FILES[1]).read_bytes()
    assert b'"cause"' in (tmp_path / "there" / FILES[1]).read_bytes()
    answers.write_bytes(b"".join([*lines, lines[3]]))
    twice = here(*command, tmp_path / "twice", "--workers", "2", code=2)
    assert "PredictionError" in twice.stderr


class Unsendable(dict[str, Any]):
    """A row as a plug-in may have it."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("this row stays here")


@pytest.mark.parametrize("many", [IN_MEMORY, ON_DISK])
def test_steps_that_cannot_be_sent_are_judged_here_unless_processes_were_asked_for(
    sample: Path, monkeypatch: pytest.MonkeyPatch, many: str
) -> None:
    monkeypatch.setenv("OMNIDATA_STEPS_IN_MEMORY", many)
    monkeypatch.setattr("omnidata.run.scoring.MANY", 10)
    task = get_task("omnigui")
    rows = task.load(sample, check_media=False).steps
    steps = Steps.of(replace(step, source=Unsendable(step.source)) for step in rows)
    answers = [Prediction(sample_id=rows[0].sample_id, output="I am done.")]
    whole = np.ones(len(steps), np.bool_)
    judged = partial(score, task, get_profile(task, None), steps, answers, whole=whole)
    assert judged(workers=None) == judged(workers=1)
    with pytest.raises(UsageError, match="cannot be sent"):
        judged(workers=2)


def test_parts_are_merged_and_scored_from_disk(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [tmp_path / f"part-{number}" for number in (1, 2)]
    whole = ran(monkeypatch, few, tmp_path / "whole", IN_MEMORY)
    for number, part in enumerate(parts, 1):
        ran(monkeypatch, few, part, ON_DISK, shard=(number, 2))
    merge(parts, tmp_path / "merged")
    assert (tmp_path / "merged" / "results.json").read_bytes() == whole["results.json"]
    again = tmp_path / "again"
    here("score", "omnigui", few, tmp_path / "merged", "--out", again, code=1)  # some are cut
    scored = json.loads((tmp_path / "again" / "results.json").read_text())
    assert scored == json.loads(whole["results.json"])


def test_a_repository_is_the_same_from_disk(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here("convert", "omnigui", few, tmp_path / "parquet")
    found = []
    for many in (IN_MEMORY, "7"):
        monkeypatch.setenv("OMNIDATA_STEPS_IN_MEMORY", many)
        found.append(get_task("omnigui").load(tmp_path / "parquet"))
    in_memory, on_disk = found
    assert is_on_disk(on_disk)
    assert on_disk.steps == in_memory.steps
    assert [*on_disk.row_ids] == in_memory.row_ids
    assert on_disk.findings == in_memory.findings
    assert on_disk.episode_rows == in_memory.episode_rows


def test_choices_are_the_same(
    source: LoadedDataset, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIDATA_STEPS_IN_MEMORY", ON_DISK)
    loaded = get_task("omnigui").load(few)
    assert is_on_disk(loaded)
    stored = loaded.steps
    excluded = tmp_path / "excluded"
    excluded.write_text("\n".join(step.sample_id for step in source.steps[3:30:5]))
    both = []
    for steps in (source.steps, stored):
        names = read_exclude(excluded, steps)
        chosen = shard(select(steps, exclude=names, where={"language": "en"}, limit=50), 1, 2)
        both.append((chosen, whole_episodes(steps, chosen)))
    assert both[1][0] == both[0][0]
    assert np.array_equal(both[0][1], both[1][1])
    assert set(both[0][1].tolist()) == {True, False}


def test_an_answer_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    said = {
        f"s{number}": Completion(
            text=f"é\n{number}\ud800", usage={"n": number}, receipt={"parts": [{"role": "x"}]}
        )
        for number in range(30)
    }
    failed = Completion(delivery="api_error", error="no")
    with RunFolder(tmp_path / "run", {"task": "omnigui", "model": "m"}) as run:
        for number, (name, completion) in enumerate(said.items()):
            run.append(name, completion)
            assert run.done[name] == completion
            if number % 9 == 0:
                run.append(f"f{number}", failed)
        assert run.done.answered == 30
        assert len(run.done) == 34
        assert run.done["f9"] == failed
        with pytest.raises(KeyError):
            run.done["other"]
    with RunFolder(tmp_path / "run", {"task": "omnigui", "model": "m"}) as run:
        assert dict(run.done) == said
        run.reopen(frozenset({"s3", "s29", "none"}))
        assert "s3" not in run.done
        run.append("s3", failed)
        assert dict(run.done) == {k: v for k, v in said.items() if k not in ("s3", "s29")} | {
            "s3": failed
        }
        assert [line.sample_id for line in run.lines()] == [*run.done]
    assert [line.sample_id for line in read(tmp_path / "run" / "attempts.jsonl")] == [
        "f0", "f9", "f18", "f27", "s3", "s29",
    ]  # fmt: skip

"""lmms-eval itself, in its own environment: `tests/harness/run.sh lmms`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnidata.adapters.base import Replay
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from tests.cli.running import as_json
from tests.harness.command import omnidata
from tests.trees import write_lines

pytest.importorskip("lmms_eval", reason="tests/harness/run.sh lmms has it")

from lmms_eval.api.model import lmms as Lmms  # noqa: N812
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.tasks import TaskManager

FAILED = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] 503"


class Answering(Lmms):  # type: ignore[misc]
    """Answers by the id of the step, and keeps what it was asked."""

    def __init__(self, said: dict[str, str], *, simple: bool) -> None:
        super().__init__()
        self.said = said
        self.asked: list[Any] = []
        type(self).is_simple = simple

    def generate_until(self, requests: Any) -> list[str]:
        answers = []
        for request in requests:
            text, messages, generation, number, task, split = request.args
            doc = self.task_dict[task][split][number]
            if self.is_simple:
                text, generation, visuals = request.args[0], request.args[1], request.args[2]
                self.asked.append((text, generation, visuals(doc)))
            else:
                self.asked.append((messages(doc), generation))
            answers.append(self.said[doc["sample_id"]])
        return answers

    def loglikelihood(self, requests: Any) -> Any:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: Any) -> Any:
        raise NotImplementedError


def answers(data: Path) -> dict[str, str]:
    task = get_task("omnigui")
    said = {}
    for number, step in enumerate(task.load(data).steps):
        right = task.target(step)
        assert right
        said[step.sample_id] = ["I think.\n\n" + right.text, right.text, "no", FAILED][number % 4]
    return said


def run(folder: Path, model: Any, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = simple_evaluate(
        model=model,
        tasks=["omnidata_omnigui"],
        task_manager=TaskManager(include_path=str(folder)),
        batch_size=1,
        bootstrap_iters=0,
        **options,
    )
    return found


@pytest.fixture
def folder(few: Path, tmp_path: Path) -> Path:
    omnidata("harness", "lmms", "omnigui", few, tmp_path / "tasks")
    return tmp_path / "tasks"


@pytest.mark.parametrize("simple", [False, True])
def test_the_totals_are_those_of_evaluate_and_its_log_names_each_step(
    few: Path, folder: Path, tmp_path: Path, simple: bool
) -> None:
    said = answers(few)
    found = run(folder, Answering(said, simple=simple))
    task = get_task("omnigui")
    source = task.load(few)
    lines = [{"sample_id": name, "output": text} for name, text in said.items() if text != FAILED]
    replayed = Replay(write_lines(tmp_path / "said.jsonl", lines))
    with pytest.warns(match="got no answer"):
        results = evaluate(task, source, replayed, tmp_path / "run")
    table = found["results"]["omnidata_omnigui"]
    assert results["outcomes"]["api_error"]
    for name in ("TM", "EM", "SR", "GP"):
        assert table[f"{name},none"] == pytest.approx(results["overall"][name])

    samples = found["samples"]["omnidata_omnigui"]
    # As it is written: without the row, and with the answer flattened.
    log = [
        {
            "doc_id": sample["doc_id"],
            "target": sample["target"],
            "filtered_resps": sample["filtered_resps"],
            **{name: sample[name] for name in ("TM", "EM", "SR", "GP")},
        }
        for sample in reversed(samples)
    ]
    path = write_lines(tmp_path / "samples.jsonl", json.loads(json.dumps(log)))
    done = omnidata("score", "omnigui", few, path, "--from", "lmms-eval", "--json")
    assert as_json(done)["overall"] == results["overall"]
    assert as_json(done)["outcomes"] == results["outcomes"]


def test_a_conversation_has_the_parts_of_the_prompt_in_its_order(few: Path, folder: Path) -> None:
    model = Answering(answers(few), simple=False)
    run(folder, model, limit=2)
    task = get_task("omnigui")
    step = task.load(few).steps[0]
    (messages, generation), *_ = model.asked
    asked = [
        (message.role, part.kind, part.text)
        for message in task.conversation(step)
        for part in message.parts
    ]
    told = [
        (message["role"], part["type"], part.get("text", ""))
        for message in messages
        for part in message["content"]
    ]
    assert told == asked
    media = {part["type"]: part["url"] for message in messages for part in message["content"]
             if part["type"] != "text"}  # fmt: skip
    assert media["image"].size == step.screen
    assert media["audio"]["sampling_rate"] == 16_000
    clip = step.media["video"]
    assert clip
    assert Path(media["video"]).read_bytes() == (clip.root / clip.path).read_bytes()
    assert generation["until"] == []
    assert generation["temperature"] == 0


def test_files_of_other_data_are_refused(few: Path, folder: Path) -> None:
    setup = folder / "omnidata_omnigui.json"
    said = json.loads(setup.read_text())
    setup.write_text(json.dumps({**said, "dataset_fingerprint": "0" * 64}))
    with pytest.raises(Exception, match="the data have changed"):
        run(folder, Answering(answers(few), simple=False), limit=1)

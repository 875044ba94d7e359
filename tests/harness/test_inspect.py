"""inspect_ai itself, on its own environment: `tests/harness/run.sh inspect`."""

from __future__ import annotations

import base64
import json
import math
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnidata import registry
from omnidata.adapters.base import Model
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import Completion, LoadedDataset
from tests.cli.running import as_json
from tests.harness.command import omnidata
from tests.plugin import data as plugin
from tests.trees import write_lines

pytest.importorskip("inspect_ai", reason="tests/harness/run.sh inspect has it")

from inspect_ai import eval as run_eval
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import (
    ContentAudio,
    ContentImage,
    ContentVideo,
    ModelOutput,
    ModelUsage,
    get_model,
)

NO_SENSE = "I would rather not."
NOTHING = "omnidata/replay:nothing.jsonl"
"""A model of ours that answers nothing, by `nothing`."""


@pytest.fixture(autouse=True)
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nothing.jsonl").touch()
    monkeypatch.chdir(tmp_path)


class Answers(Model):
    """Right, wrong, none and senseless answers in turn; `mock` says the same to inspect_ai."""

    name = "mixed"
    accepts = None
    params = replace(Model.params)

    def __init__(self, task: Asking, source: LoadedDataset) -> None:
        self.said: dict[str, tuple[str, str]] = {}
        for number, step in enumerate(source.steps):
            right = task.target(step)
            text = right.text if right else ""
            kinds = [(text, "stop")] * 6
            kinds += [(NO_SENSE, "stop"), (text, "max_tokens"), ("", "content_filter")]
            self.said[step.sample_id] = kinds[number % len(kinds)]

    async def generate(self, batch: Any, params: Any) -> list[Completion]:
        given = {"stop": "ok", "max_tokens": "truncated", "content_filter": "refused"}
        return [
            Completion(text=text, delivery=given[reason])  # type: ignore[arg-type]
            for text, reason in (self.said[one.request.sample_id] for one in batch)
        ]


def mock(said: Mapping[str, tuple[str, str]], source: LoadedDataset, task: Asking) -> Any:
    """A model of inspect_ai that knows a step by the screenshot that it is shown."""
    by_shot: dict[bytes, list[str]] = {}
    for step in source.steps:
        shot = step.media["screenshot"]
        assert shot
        by_shot.setdefault((shot.root / shot.path).read_bytes(), []).append(step.sample_id)

    def answer(messages: Any, tools: Any, choice: Any, config: Any) -> ModelOutput:
        pictures = [
            part.image
            for message in messages
            if isinstance(message.content, list)
            for part in message.content
            if isinstance(part, ContentImage)
        ]
        names = by_shot[base64.b64decode(pictures[-1].partition(",")[2])]
        text, reason = said[names.pop(0)]
        output = ModelOutput.from_content("mock", text, stop_reason=reason)
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)


def run(name: str, model: Any, tmp: Path, *, code: str = "success", **options: Any) -> EvalLog:
    args = options.pop("task_args")
    args = {key: str(value) if isinstance(value, Path) else value for key, value in args.items()}
    options = {"log_dir": str(tmp / "logs"), "display": "none", "max_connections": 1, **options}
    (log,) = run_eval(f"omnidata/{name}", model=model, task_args=args, **options)
    assert log.status == code, log.error and log.error.message
    return log


def metrics(log: EvalLog) -> dict[str, dict[str, float]]:
    assert log.results
    return {
        score.name: {name: metric.value for name, metric in score.metrics.items()}
        for score in log.results.scores
    }


def scores_of(folder: Path) -> dict[str, dict[str, Any]]:
    lines = (folder / "scores.jsonl").read_text("utf-8").splitlines()
    return {line["sample_id"]: line for line in map(json.loads, lines)}


def check_equal(log: EvalLog, folder: Path, results: Mapping[str, Any]) -> None:
    """Verdict by verdict, and in total."""
    whole = read_eval_log(log.location)
    own = scores_of(folder)
    assert whole.samples is not None
    assert {sample.id for sample in whole.samples} == set(own)
    for sample in whole.samples:
        assert sample.scores
        score, line = sample.scores["verdicts"], own[str(sample.id)]
        assert score.metadata
        assert score.metadata["outcome"] == line["outcome"]
        assert score.metadata["parsed"] == line["parsed"]
        for name, value in score.as_dict().items():
            assert isinstance(value, int | float)
            expected = line[name]
            assert math.isnan(value) if expected is None else value == expected
    total = metrics(log)["verdicts"]
    overall = {
        name: value
        for name, value in results["overall"].items()
        if isinstance(value, int | float) and name in total
    }
    assert overall
    assert total == pytest.approx(overall)


def test_a_log_has_the_numbers_of_evaluate_on_the_same_answers(few: Path, tmp_path: Path) -> None:
    task = get_task("omnigui")
    source = task.load(few)
    answers = Answers(task, source)
    results = evaluate(task, source, answers, tmp_path / "run")
    log = run("omnigui", mock(answers.said, source, task), tmp_path, task_args={"data": few})
    check_equal(log, tmp_path / "run", results)
    assert len(results["outcomes"]) == 4

    # Of each value the mean, with one error, over what belongs together, that is not the plain one.
    given = metrics(log)
    assert given["type_match"].keys() == {"mean", "stderr"}
    exact = [line["exact_match"] for line in scores_of(tmp_path / "run").values()]
    plain = math.sqrt(sum((one - sum(exact) / len(exact)) ** 2 for one in exact) / (len(exact) - 1))
    assert given["exact_match"]["stderr"] > 0
    assert given["exact_match"]["stderr"] != pytest.approx(plain / math.sqrt(len(exact)))

    # And `score --from inspect` gives the same again.
    done = omnidata("score", "omnigui", few, log.location, "--from", "inspect", "--json", code=1)
    again = as_json(done)
    for part in ("overall", "outcomes", "by", "counts"):
        assert again[part] == results[part]


def test_options_that_yaml_reads_otherwise_are_the_tasks_own(few: Path, tmp_path: Path) -> None:
    args = {"data": few, "modalities": "I", "history_screenshot": False, "history_window": 3}
    log = run("omnigui", NOTHING, tmp_path, task_args=args, limit=1, code="error")
    assert log.eval.metadata
    options = log.eval.metadata["omnidata"]["options"]
    assert options["history_screenshot"] == "off"
    assert options["history_window"] == "3"
    found = get_task("omnigui", {**options})
    assert log.eval.metadata["omnidata"]["prompt_hash"] == found.prompt_hash


def test_a_step_without_an_answer_counts_as_wrong_in_an_error_log(
    few: Path, tmp_path: Path
) -> None:
    task = get_task("omnigui")
    source = task.load(few)
    lines = []
    for number, step in enumerate(source.steps):
        right = task.target(step)
        assert right
        if number:
            lines.append({"sample_id": step.sample_id, "output": right.text})
    answers = write_lines(tmp_path / "answers.jsonl", lines)
    log = run(
        "omnigui", f"omnidata/replay:{answers}", tmp_path, task_args={"data": few}, code="error"
    )
    steps = len(source.steps)
    assert metrics(log)["verdicts"]["EM"] == pytest.approx((steps - 1) / steps)
    assert metrics(log)["exact_match"]["mean"] == pytest.approx((steps - 1) / steps)
    done = omnidata("score", "omnigui", few, log.location, "--from", "inspect", "--json", code=1)
    assert as_json(done)["outcomes"] == {"api_error": 1, "ok": steps - 1}


def test_a_medium_that_cannot_be_read_fails_its_step_alone(few: Path, tmp_path: Path) -> None:
    import shutil

    data = tmp_path / "data"
    shutil.copytree(few, data)
    task = get_task("omnigui")
    source = task.load(data)
    answers = Answers(task, source)
    shot = source.steps[0].media["screenshot"]
    assert shot
    kept = (shot.root / shot.path).read_bytes()
    model = mock(answers.said, source, task)
    (shot.root / shot.path).write_bytes(kept[:2000])
    args = {"data": data, "history_screenshot": "off"}
    log = run("omnigui", model, tmp_path, task_args=args, limit=3)
    whole = read_eval_log(log.location)
    assert whole.samples is not None
    outcomes = [(one.scores or {})["verdicts"].metadata for one in whole.samples]
    assert [found and found["outcome"] for found in outcomes] == ["media_error", "ok", "ok"]


@pytest.mark.parametrize(("provider", "takes"), [("whole", ContentVideo), ("frames", ContentImage)])
def test_clips_go_as_files_or_as_pictures(
    few: Path, tmp_path: Path, provider: str, takes: type
) -> None:
    seen: list[type] = []

    def answer(messages: Any, *rest: Any) -> ModelOutput:
        seen.extend(type(part) for part in messages[-1].content)
        output = ModelOutput.from_content("mock", "{}")
        output.usage = ModelUsage()
        return output

    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    run("omnigui", model, tmp_path, task_args={"data": few, "clips": provider}, limit=1)
    assert takes in seen
    assert (ContentVideo in seen) == (provider == "whole")
    assert ContentAudio in seen


def test_our_model_gets_the_media_and_answers_as_in_evaluate(few: Path, tmp_path: Path) -> None:
    """The plug-in answers with what it was given: roles, bytes, settings."""
    name = registry.names()  # the entry points are read anew for every name
    assert "omnigui" in name
    package = tmp_path / "plug"
    package.mkdir()
    (package / "echo_plug.py").write_text(ECHO)
    from tests import plugs

    plugs.install(package, "echo-plug", "omnidata.adapters", "echo = echo_plug:make")
    sys.path.insert(0, str(package))
    try:
        task = get_task("omnigui")
        source = task.load(few)
        from omnidata.adapters import get_adapter

        adapter = get_adapter("echo:x", task, source.steps, options={"batch": "4"})
        evaluate(task, source, adapter, tmp_path / "run")
        log = run(
            "omnigui",
            get_model("omnidata/echo:x", batch=4, memoize=False),
            tmp_path,
            task_args={"data": few},
            max_connections=4,
        )
    finally:
        sys.path.remove(str(package))
    whole = read_eval_log(log.location)
    lines = (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()
    own = {line["sample_id"]: line["output"] for line in map(json.loads, lines)}
    assert whole.samples is not None
    got = {str(sample.id): json.loads(sample.output.completion) for sample in whole.samples}
    assert {name: found["prompt"] for name, found in got.items()} == {
        name: json.loads(text)["prompt"] for name, text in own.items()
    }
    assert max(found["batch"] for found in got.values()) > 1


ECHO = """
import hashlib, json
from omnidata import media
from omnidata.adapters.base import Model
from omnidata.types import Completion

def digest(ref):
    return hashlib.sha256(media.read_bytes(ref)).hexdigest()

class Echo(Model):
    name = "echo"
    accepts = frozenset({"image", "video", "audio"})
    def __init__(self, batch):
        self.max_batch = batch
    async def generate(self, batch, params):
        found = []
        for item in batch:
            told = [
                [message.role, part.kind, part.role, part.text or digest(part.media)]
                for message in item.request.conversation for part in message.parts
            ]
            asked = [params.temperature, params.max_new_tokens, item.request.sample_id]
            said = {"prompt": [told, asked], "batch": len(batch)}
            found.append(Completion(text=json.dumps(said)))
        return found

def make(model, options):
    return Echo(int(options.get("batch", 1)))
"""


def test_a_plug_in_is_a_task_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own: what is offered is known when inspect_ai looks for it first."""
    plugin.install(tmp_path / "plug", monkeypatch)
    data = plugin.write(tmp_path / "data", episodes=3)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from inspect_ai import eval\n"
        "log, = eval('omnidata/odyssey', model='omnidata/replay:nothing.jsonl', display='none',\n"
        "    task_args={'data': sys.argv[2]}, log_dir=sys.argv[3])\n"
        "print(log.results.total_samples, sorted(log.results.scores[0].metrics))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "plug"), str(data), str(tmp_path / "logs")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("1")


def test_every_task_is_offered() -> None:
    from inspect_ai._util.registry import registry_find, registry_info

    import omnidata.harness.inspect_tasks  # noqa: F401

    found = registry_find(lambda info: info.type == "task" and info.name.startswith("omnidata/"))
    offered = {registry_info(one).name.removeprefix("omnidata/") for one in found}
    assert offered >= set(registry.names()) - {"odyssey"}


def test_the_command_line_offers_it_from_any_folder(few: Path, tmp_path: Path) -> None:
    arguments = ["eval", "omnidata/omnigui", "-T", f"data={few}", "-T", "modalities=I"]
    arguments += ["--model", NOTHING, "--limit", "2", "--display", "none"]
    command = [str(Path(sys.executable).with_name("inspect")), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert list((tmp_path / "logs").glob("*.eval")), done.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"history": "predicted"}, "omnidata evaluate"),
        ({"modalities": "X"}, "IAV"),
        ({"profile": "nobody"}, "omnigui-paper"),
        ({"data": "/nowhere"}, "no such file"),
    ],
)
def test_what_cannot_be_done_is_said_before_it_begins(
    few: Path, tmp_path: Path, args: dict[str, str], says: str
) -> None:
    with pytest.raises(Exception, match=says):
        run("omnigui", NOTHING, tmp_path, task_args={"data": few, **args})


def test_several_epochs_are_refused(few: Path, tmp_path: Path) -> None:
    log = run(
        "omnigui", NOTHING, tmp_path, task_args={"data": few},
        limit=1, epochs=2, code="error",
    )  # fmt: skip
    done = omnidata("score", "omnigui", few, log.location, "--from", "inspect", code=2)
    assert "--epochs 1" in done.stderr


@pytest.fixture
def log(few: Path, tmp_path: Path) -> Path:
    task = get_task("omnigui")
    source = task.load(few)
    model = mock(Answers(task, source).said, source, task)
    found = run("omnigui", model, tmp_path, task_args={"data": few}, limit=4, log_images=False)
    return Path(found.location)


def change(log: Path, out: Path, edit: Callable[[EvalLog], None]) -> Path:
    from inspect_ai.log import write_eval_log

    found = read_eval_log(str(log))
    edit(found)
    write_eval_log(found, str(out))
    return out


def test_a_log_of_other_prompts_or_data_is_refused(log: Path, few: Path, tmp_path: Path) -> None:
    for key, says in (("prompt_hash", "other prompts"), ("dataset_fingerprint", "other data")):

        def edit(found: EvalLog, key: str = key) -> None:
            assert found.eval.metadata
            found.eval.metadata["omnidata"][key] = "0" * 64

        other = change(log, tmp_path / f"{key}.eval", edit)
        done = omnidata("score", "omnigui", few, other, "--from", "inspect", code=2)
        assert says in done.stderr
    done = omnidata("score", "screenspot", few, log, "--from", "inspect", code=2)
    assert "of the task omnigui" in done.stderr


def test_anybodys_log_is_paired_by_what_it_says(log: Path, few: Path, tmp_path: Path) -> None:
    source = get_task("omnigui").load(few)

    def edit(found: EvalLog) -> None:
        found.eval.metadata = {}
        assert found.samples
        found.eval.dataset.sample_ids = [*range(1, len(found.samples) + 1)]
        for number, sample in enumerate(found.samples):
            sample.id = number + 1
            step = source.steps[5 + number]
            named = {"episode_id": step.episode_id, "step_id": step.step_index}
            sample.metadata = {**named, "app": step.tags["app"]}

    other = change(log, tmp_path / "other.json", edit)
    done = omnidata("score", "omnigui", few, other, "--from", "inspect", "--json", code=1)
    assert as_json(done)["outcomes"]["missing"] == len(source.steps) - 4

    def nameless(found: EvalLog) -> None:
        edit(found)
        assert found.samples
        found.samples[0].metadata = {"episode_id": "Nobody", "step_id": 0}

    other = change(log, tmp_path / "nameless.json", nameless)
    done = omnidata("score", "omnigui", few, other, "--from", "inspect", code=2)
    assert "episode 'Nobody', step 0" in done.stderr


def test_a_file_that_is_no_log_is_refused(few: Path, tmp_path: Path) -> None:
    (tmp_path / "x.eval").write_bytes(b"PK nothing")
    done = omnidata("score", "omnigui", few, tmp_path / "x.eval", "--from", "inspect", code=2)
    assert "cannot be read" in done.stderr

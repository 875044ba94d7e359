"""Agents of the true architectures, asked and taught in the words of a dialect."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from omnidata import media
from omnidata.actions import Point, Screen
from omnidata.adapters.tiny import make_tiny
from omnidata.dialects import dialects
from omnidata.errors import UsageError
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.coordinates import in_pixels
from omnidata.training.export import Options, Sizing, export
from omnidata.types import GenerationParams, Message, Part, Request, Step
from tests.adapters.local_models import Spy, ask, local, torch
from tests.adapters.tiny_vl import PATCH, VL, make
from tests.cli.running import here
from tests.conftest import Once
from tests.full import in_gate
from tests.trees import read_lines

pytest.importorskip("datasets")
from omnidata.torch import OmniCollator, exported_table

pytestmark = pytest.mark.usefixtures("toys")
Model = VL | Literal["qwen2.5-omni"]
TAUGHT: tuple[tuple[Model, str], ...] = (
    ("qwen2.5-vl", "qwen2.5"),
    ("qwen2-vl", "toy-begun"),
    ("qwen2-vl", "qwen2"),
    ("qwen3-vl", "qwen3"),
    ("qwen3-vl", "toy-px-32"),
    ("qwen2.5-omni", "qwen2.5"),
)


def run(*arguments: str | Path) -> Any:
    done = here(*arguments, "--json", code=None)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def checkpoint(once: Once, family: Model, task: Asking, steps: Sequence[Step]) -> Path:
    """Its words are those of the steps, so that little has to be learned."""
    texts = [
        "".join(f"{part.text}\n" for message in task.conversation(step) for part in message.parts)
        + (target.text if (target := task.target(step)) else "")
        for step in steps
    ]
    name = f"tiny-{family}-{task.options['dialect']}"
    if family == "qwen2.5-omni":
        return once(name, lambda folder: make_tiny(family, folder, texts=texts * 12))
    return once(name, lambda folder: make(family, folder, texts * 12))


def taught(folder: Path, out: Path, task: Asking, steps: Sequence[Step]) -> Path:
    """A copy that has seen the steps until it knows them."""
    from transformers import AutoModelForMultimodalLM

    collate = OmniCollator(folder, task)
    batch = collate(list(steps))
    model: Any = AutoModelForMultimodalLM.from_pretrained(folder, dtype=torch.float32)
    adam = torch.optim.AdamW(model.parameters(), 3e-3)
    loss = torch.tensor(1.0)
    for _ in range(60):
        if loss < 0.01:
            break
        loss = model(**batch).loss
        loss.backward()
        adam.step()
        adam.zero_grad()
    model.save_pretrained(out)
    collate.processor.save_pretrained(out)
    return out


@pytest.mark.parametrize("pair", in_gate(TAUGHT, 1, "seconds of training each"))
def test_a_model_taught_in_a_dialect_answers_in_it_and_is_right(
    pair: tuple[Model, str],
    phone: Path,
    once: Once,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    family, name = pair
    task = get_task("aitw", {"dialect": name})
    steps = task.load(phone).steps[:2]  # a tap, and with it before, a swipe
    model = taught(checkpoint(once, family, task, steps), tmp_path / "taught", task, steps)
    spy = Spy(monkeypatch)
    asked = ("evaluate", "aitw", phone, "-T", f"dialect={name}", "--limit", "2")
    limit = ("-M", "max_new_tokens=300")
    run(*asked, "--model", f"hf:{model}", *limit, "--out", tmp_path / "run")

    frame = dialects()[name].frame
    patch = 14 if family == "qwen2.5-omni" else PATCH[family]
    lines = {line["sample_id"]: line for line in read_lines(tmp_path / "run" / "predictions.jsonl")}
    for step, inputs in zip(steps, spy.inputs, strict=True):
        line = lines[step.sample_id]
        fed = frame.fed_size(step.screen)
        assert fed != step.screen
        told = line["receipt"]["parts"]
        assert {(part["width"], part["height"]) for part in told} == {fed}
        assert {tuple(part["original"]) for part in told} == {step.screen}
        seen = {(int(w) * patch, int(h) * patch) for _, h, w in inputs["image_grid_thw"]}
        assert seen == {fed}  # although a tiny VL model's own limit is 16 tokens
        target = task.target(step)
        assert target and line["output"] == target.text and line["delivery"] == "ok"
    scored = run("score", "aitw", phone, tmp_path / "run")
    assert scored["dialect"]["read"] == scored["dialect"]["expressed"] == 2
    verdicts = read_lines(tmp_path / "run" / "scores.jsonl")
    assert [verdict["exact_match"] for verdict in verdicts] == [True, True]


@pytest.mark.parametrize("name", ["toy-begun", "qwen2.5"])
def test_what_is_taught_is_what_is_asked_token_by_token(
    name: str, phone: Path, once: Once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = get_task("aitw", {"dialect": name})
    steps = task.load(phone).steps[:2]
    folder = checkpoint(once, "qwen2.5-vl", get_task("aitw", {"dialect": "toy-px"}), steps)
    spy = Spy(monkeypatch)
    for step in steps:
        ask(local(folder, max_new_tokens="1"), task.conversation(step))
        batch = OmniCollator(folder, task)([step])
        asked = spy.tensors["input_ids"]
        assert torch.equal(batch["input_ids"][:, : asked.shape[1]], asked)
        assert torch.equal(batch["pixel_values"], spy.tensors["pixel_values"])
        words = OmniCollator(folder, task).processor.tokenizer
        learned = batch["labels"][batch["labels"] >= 0]
        target = task.target(step)
        assert target and words.decode(learned) == f"{target.text}<|im_end|>\n"
        begun = words.decode(asked[0]).rpartition("<|im_start|>assistant\n")[2]
        assert begun == dialects()[name].prefix


def test_where_an_answer_ends_and_which_tokens_are_text_are_settings_of_decoding(
    phone: Path, once: Once, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = get_task("aitw", {"dialect": "toy-px"})
    steps = task.load(phone).steps[:2]
    model = partial(local, checkpoint(once, "qwen2.5-vl", task, steps), max_new_tokens="12")
    prompts = [task.conversation(step) for step in steps]
    spy = Spy(monkeypatch)
    alone = [ask(model(), prompt)[0] for prompt in prompts]
    assert all(answer.delivery == "truncated" for answer in alone)
    stop = alone[0].text[4:6]
    cut = ask(model(batch_size="2"), *prompts, params=GenerationParams(0, 12, stop=(stop,)))
    assert [answer.text for answer in cut] == [each.text.partition(stop)[0] for each in alone]
    assert cut[0].delivery == "ok"
    assert cut[0].usage["completion_tokens"] < 12

    words = OmniCollator(spy.models[0].name_or_path).processor.tokenizer
    mark = "<|vision_start|>"
    begun = (*prompts[0], Message("assistant", (Part("text", mark),)))
    for special, count in (
        (True, 1),
        (False, len(words.tokenize(mark, split_special_tokens=True))),
    ):
        before = ask(model(), prompts[0])[0].usage["prompt_tokens"]
        after = ask(model(), begun, params=GenerationParams(0, 1, special_tokens=special))[0]
        assert after.usage["prompt_tokens"] - before == count
        assert (spy.tensors["input_ids"][0, -1] == words.convert_tokens_to_ids(mark)) == special

    kept = ask(model(), prompts[0], params=GenerationParams(0, 12, special_tokens=True))[0].text
    said = spy.outputs[-1][0, spy.tensors["input_ids"].shape[1] :]
    assert kept == words.decode(said)


@pytest.mark.parametrize(
    ("spec", "address", "problem"),
    [
        ("openai:m", "https://api.openai.com/v1", "go on with an answer that the prompt begins"),
        ("gemini-3-pro", "http://127.0.0.1:9", "go on with an answer that the prompt begins"),
        ("vita-1.5", "http://127.0.0.1:9", "end its answer at a text"),
    ],
)
def test_a_model_that_cannot_do_what_the_dialect_needs_is_refused_before_it_is_asked(
    spec: str,
    address: str,
    problem: str,
    phone: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(key, "none")
    command = ("evaluate", "aitw", phone, "-T", "dialect=toy-begun", "--model", spec)
    done = here(*command, "--base-url", address, "--out", tmp_path / "run", code=2)
    assert problem in " ".join(done.stderr.split())


def test_a_picture_in_another_size_is_another_request(phone: Path, once: Once) -> None:
    task = get_task("aitw", {"dialect": "toy-px"})
    steps = task.load(phone).steps[:2]
    model = local(checkpoint(once, "qwen2.5-vl", task, steps))
    [system, user] = task.conversation(steps[0])
    keys = set()
    for size in ((84, 196), (56, 140), None):
        parts = tuple(replace(part, size=size) if part.media else part for part in user.parts)
        keys.add(model.prepare(Request("a", (system, Message("user", parts)))).key)
    assert len(keys) == 3


def resized(size: Screen, factor: int) -> Screen:
    """What Qwen's trainers make of a picture, by their own code."""
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

    high, wide = smart_resize(size[1], size[0], factor, 56 * 56, 28 * 28 * 1280)
    return wide, high


@pytest.mark.parametrize("form", ["trl", "llamafactory", "swift", "qwen-vl"])
@pytest.mark.parametrize("name", ["toy-begun", "qwen2.5", "qwen3"])
def test_exported_answers_fit_the_picture_that_a_trainer_feeds(
    name: str, form: str, phone: Path, tmp_path: Path
) -> None:
    task = get_task("aitw", {"dialect": name})
    source = task.load(phone)
    done = export(task, source, tmp_path / "out", Options(format=form, shares={"train": 1.0}))
    sayable = [step for step in source.steps if task.target(step)]
    assert done.report["splits"]["train"]["steps"] == len(sayable) > 2
    profile = task.profiles[task.default_profile]
    rows = [row["example"] for row in exported_table(tmp_path / "out")]
    for step, row in zip(sayable, rows, strict=True):
        shots = [part for turn in row.prompt for part in turn.parts if part.media]
        told = [part for turn in task.conversation(step) for part in turn.parts if part.media]
        assert [(part.role, part.size) for part in shots] == [(p.role, p.size) for p in told]
        for part in shots:
            size = media.image_size(part.media)
            assert size == part.size == resized(size, dialects()[name].frame.factor)
        line = {"role": "screenshot", "width": size[0], "height": size[1]}
        receipt = {"parts": [{**line, "original": [*step.screen]}]}
        verdict = profile.judge(step, row.answer, receipt)
        assert dict(zip(profile.values, verdict.values, strict=True))["exact_match"]
        roles = [turn.role for turn in row.prompt if turn.role != "system"]
        asked = [turn.role for turn in task.conversation(step) if turn.role != "system"]
        assert roles == (asked[:-1] if dialects()[name].prefix else asked)
        target = task.target(step)
        assert target and row.answer == dialects()[name].prefix + target.text


def test_an_export_is_taught_as_its_steps_are(phone: Path, once: Once, tmp_path: Path) -> None:
    task = get_task("aitw", {"dialect": "toy-px"})
    steps = [step for step in task.load(phone).steps if task.target(step)]
    folder = checkpoint(once, "qwen2.5-vl", task, steps[:2])
    options = Options(format="llamafactory", shares={"train": 1.0})
    export(task, task.load(phone), tmp_path / "out", options)
    collate = OmniCollator(folder, task)
    for step, row in zip(steps, exported_table(tmp_path / "out"), strict=True):
        mine, theirs = collate([step]), collate([row])
        assert mine.keys() == theirs.keys()
        for key, tensor in mine.items():
            assert torch.equal(tensor, theirs[key]), key


def test_sizes_that_the_dialect_tells_are_not_changed_by_an_option(
    phone: Path, tmp_path: Path
) -> None:
    task = get_task("aitw", {"dialect": "toy-px"})
    options = Options(format="trl", sizing=Sizing(longest=100))
    with pytest.raises(UsageError, match="say in what size"):
        export(task, task.load(phone), tmp_path / "out", options)


def test_a_page_marks_the_answer_where_it_is_on_the_screen(phone: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = ("evaluate", "aitw", phone, "-T", "dialect=toy-px", "--model", "baseline:oracle")
    run(*command, "--out", out)
    task = get_task("aitw", {"dialect": "toy-px"})
    step = task.load(phone).steps[0]
    target = task.target(step)
    assert target and step.action
    profile = task.default_profile
    verdict = task.profiles[profile].judge(step, target.text)
    drawn = task.explanation(step, verdict, target.text, profile=profile).overlays
    answer = drawn["screenshot"].answer
    [place] = step.action.start
    right = in_pixels(place, step.screen)
    assert isinstance(right, Point) and answer and answer.space == "px"
    assert abs(answer.x - right.x) < 1 and abs(answer.y - right.y) < 1
    here("report", out, "--html", tmp_path / "pages.html", code=None)
    assert "sent at 84 × 196 pixels" in (tmp_path / "pages.html").read_text("utf-8")


def test_tokens_of_thought_are_exported_where_the_dialect_is_made_of_them(
    phone: Path, tmp_path: Path
) -> None:
    """In any other text of the data a model would obey them, and the step is left out."""
    task = get_task("aitw", {"dialect": "gui-r1"})
    source = task.load(phone)
    options = Options(format="trl", shares={"train": 1.0})
    export(task, source, tmp_path / "out", options)
    prompts = [row["example"].prompt for row in exported_table(tmp_path / "out")]
    assert len(prompts) == sum(task.target(step) is not None for step in source.steps)
    assert all("<think>" in str(prompt) for prompt in prompts)
    plain = get_task("aitw", {"dialect": "qwen2"})
    first, *others = source.steps
    forged = replace(first, instruction="write </think>", source={**first.source})
    found = export(plain, replace(source, steps=[forged, *others]), tmp_path / "plain", options)
    assert "control-token-in-text" in {finding.code for finding in found.findings}


def test_a_providers_tool_is_refused_by_an_export_that_could_not_teach_it(
    phone: Path, tmp_path: Path
) -> None:
    task = get_task("aitw", {"dialect": "gemini-computer"})
    with pytest.raises(UsageError, match="tool") as refused:
        export(task, task.load(phone), tmp_path / "out", Options(format="trl"))
    assert refused.value.where == "-T dialect=gemini-computer"
    assert not (tmp_path / "out" / "train.jsonl").exists()

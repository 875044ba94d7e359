"""What a model is trained on is what it is asked in evaluation, and the answer behind it."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnidata import media
from omnidata.actions import Action, Box
from omnidata.errors import DataError, MediaError, UsageError
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import Completion, MediaRef, Step
from tests.adapters.local_models import APART, Family, Spy, ask, checkpoint, local, torch
from tests.conftest import Once
from tests.full import in_gate

datasets = pytest.importorskip("datasets")
SMALL = {"image_size": "100"}
SMALL_CLIPS = {"min_video_pixels": "3136", "max_video_pixels": "50176"}
ENDS: dict[Family, str] = {
    "qwen2.5-omni": "<|im_end|>\n",
    "qwen3-omni": "<|im_end|>\n",
    "gemma4": "<turn|>\n",
}


@pytest.fixture(scope="module")
def task() -> Asking:
    return get_task("omnigui")


@pytest.fixture(scope="module")
def steps(data: Path, task: Asking) -> list[Step]:
    """Steps with and without history, with several answers."""
    found = task.load(data).steps
    return [found[0], found[3], found[6], found[-1]]


def collator(path: Path, task: Asking, **options: str) -> Any:
    from omnidata.torch import OmniCollator

    return OmniCollator(path, task, options={**SMALL, **options})


@pytest.fixture(scope="module")
def qwen(once: Once) -> Path:
    return checkpoint(once, "qwen2.5-omni")


@pytest.fixture(scope="module")
def collate(qwen: Path, task: Asking) -> Any:
    return collator(qwen, task)


def answers(labels: Any, words: Any) -> list[str]:
    """What is learned, row by row."""
    return [words.decode(row[row >= 0]) for row in labels]


@pytest.mark.parametrize("family", in_gate(APART, 2, "a second Qwen"))
def test_the_prompt_is_that_of_evaluation_in_every_tensor(
    once: Once, task: Asking, steps: list[Step], monkeypatch: pytest.MonkeyPatch, family: Family
) -> None:
    folder = checkpoint(once, family)
    spy = Spy(monkeypatch)
    collate = collator(folder, task)
    for step in steps[:2]:
        asked: list[Completion] = ask(
            local(folder, max_new_tokens="1", **SMALL), task.conversation(step)
        )
        assert asked[0].delivery in ("ok", "truncated"), asked[0].error
        taught = collate([step])
        labels = taught.pop("labels")
        length = spy.tensors["input_ids"].shape[1]
        assert taught.keys() == spy.tensors.keys()
        for name, given in spy.tensors.items():
            found = torch.as_tensor(taught[name])
            per_token = found.shape == labels.shape
            assert torch.equal(found[:, :length] if per_token else found, torch.as_tensor(given)), (
                name
            )
        assert labels[0, :length].eq(-100).all() and labels[0, length:].ge(0).all()
        assert torch.equal(labels[0, length:], taught["input_ids"][0, length:])


@pytest.mark.parametrize("family", in_gate(APART, 2, "a second Qwen"))
def test_labels_are_on_the_answer_and_its_end_alone(
    once: Once, task: Asking, steps: list[Step], family: Family
) -> None:
    collate = collator(checkpoint(once, family), task)
    batch = collate(steps)
    targets = [task.target(step) for step in steps]
    wanted = [target.text + ENDS[family] for target in targets if target]
    assert answers(batch["labels"], collate.processor.tokenizer) == wanted
    assert len(set(wanted)) > 2


@pytest.mark.parametrize("family", in_gate(APART, 1, "a model of each family"))
def test_a_batch_holds_the_steps_padded_on_the_right(
    once: Once, task: Asking, steps: list[Step], family: Family
) -> None:
    collate = collator(checkpoint(once, family), task)
    together = collate(steps)
    lengths = set()
    for row, step in enumerate(steps):
        alone = collate([step])
        length = alone["input_ids"].shape[1]
        lengths.add(length)
        for name in ("input_ids", "attention_mask", "labels"):
            assert torch.equal(together[name][row, :length], alone[name][0]), name
        assert together["attention_mask"][row, length:].eq(0).all()
        assert together["labels"][row, length:].eq(-100).all()
    assert len(lengths) > 1


def test_the_loss_is_that_of_the_answers_tokens(
    qwen: Path, collate: Any, steps: list[Step]
) -> None:
    from transformers import AutoModelForMultimodalLM

    model: Any = AutoModelForMultimodalLM.from_pretrained(qwen, dtype=torch.float32)
    with torch.no_grad():
        together = model(**collate(steps)).loss
        sums, count = 0.0, 0
        for step in steps:
            batch = collate([step])
            found = model(**{name: x for name, x in batch.items() if name != "labels"}).logits[0]
            learned = int(batch["labels"].ge(0).sum())
            sums += torch.nn.functional.cross_entropy(
                found[-learned - 1 : -1], batch["input_ids"][0, -learned:], reduction="sum"
            )
            count += learned
    assert torch.allclose(together, sums / count, rtol=1e-4)


def edited(folder: Path, out: Path, *pairs: tuple[str, str]) -> Path:
    """A copy of a checkpoint with another chat template."""
    shutil.copytree(folder, out)
    template = out / "chat_template.jinja"
    text = template.read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    template.write_text(text, encoding="utf-8")
    return out


UNMARKED = (("{% generation %}", ""), ("{% endgeneration %}\n", ""))


def test_without_generation_marks_labels_come_from_the_length_of_the_prompt(
    qwen: Path, task: Asking, steps: list[Step], tmp_path: Path
) -> None:
    plain = edited(qwen, tmp_path / "plain", *UNMARKED)
    marked, unmarked = collator(qwen, task)(steps), collator(plain, task)(steps)
    assert torch.equal(marked["labels"], unmarked["labels"])


@pytest.mark.parametrize(
    ("pairs", "problem"),
    [
        ((*UNMARKED, ("<|im_start|>assistant\n", "<|im_start|>assistant\n<think>")), "unlike"),
        ((*UNMARKED, ("{{ part.text }}{% endfor %}", "{{ part.text|upper }}{% endfor %}")), "keep"),
        ((("<|im_end|>\n{% endgeneration %}", "{% endgeneration %}"),), "stop"),
        ((('"assistant" %}\n', '"assistant" %}{{ raise_exception("no answers") }}'),), "fails"),
    ],
    ids=["thinks", "changes", "never ends", "refuses"],
)
def test_a_template_that_lacks_what_labels_need_is_refused_before_anything_is_trained(
    qwen: Path, task: Asking, tmp_path: Path, pairs: tuple[tuple[str, str], ...], problem: str
) -> None:
    folder = edited(qwen, tmp_path / "other", *pairs)
    with pytest.raises(UsageError, match=problem) as caught:
        collator(folder, task)
    assert "{% generation %}" in caught.value.expected and str(folder) in caught.value.where


def test_a_template_that_thinks_is_taken_where_it_marks_the_answer(
    qwen: Path, task: Asking, steps: list[Step], tmp_path: Path
) -> None:
    thinks = edited(
        qwen,
        tmp_path / "thinks",
        ("{% endif %}\n{% endfor %}\n{% if add_generation_prompt %}<|im_start|>assistant\n",
         "{% endif %}\n{% endfor %}\n{% if add_generation_prompt %}<|im_start|>assistant\n<think>"),
    )  # fmt: skip
    collate = collator(thinks, task)
    batch = collate(steps[:1])
    words = collate.processor.tokenizer
    assert answers(batch["labels"], words) == answers(
        collator(qwen, task)(steps[:1])["labels"], words
    )
    assert "<think>{" in words.decode(batch["input_ids"][0])


def test_a_step_without_a_target_is_named_before_training(
    collate: Any, task: Asking, steps: list[Step]
) -> None:
    from omnidata.torch import training_table

    lacking = [
        replace(steps[1], action=None, sample_id="A/none/0"),
        replace(steps[1], action=Action("tap"), sample_id="A/nowhere/0"),
        replace(steps[1], action=Action("type", text=None), sample_id="A/mute/0"),
    ]
    with pytest.raises(DataError, match="3 steps have no target: A/none/0, A/nowhere/0, A/mute/0"):
        training_table(task, [*steps, *lacking])
    with pytest.raises(DataError, match="A/none/0: the step has no target"):
        collate(lacking[:1])
    assert len(training_table(task, [s for s in (*steps, *lacking) if task.target(s)])) == 4
    with pytest.raises(DataError, match="no step"):
        training_table(task, [])


@pytest.mark.parametrize("workers", [0, 1])
def test_a_medium_that_does_not_decode_is_named_before_training(
    qwen: Path, task: Asking, steps: list[Step], tmp_path: Path, workers: int
) -> None:
    from omnidata.torch import check, training_table

    collate = collator(qwen, task, **SMALL_CLIPS)
    longest = check(training_table(task, steps), collate, workers=workers)
    assert longest == collate(steps)["input_ids"].shape[1]
    (tmp_path / "bad.mp4").write_bytes(b"garbage")
    media = {**steps[1].media, "video": MediaRef("video", tmp_path, "bad.mp4")}
    broken = training_table(task, [steps[0], replace(steps[1], media=media)])
    with pytest.raises(MediaError, match=rf"^{steps[1].sample_id}.*bad\.mp4") as caught:
        check(broken, collate, workers=workers)
    assert "bad.mp4" in caught.value.where and caught.value.remedy


def test_texts_that_stand_for_media_are_refused(collate: Any, steps: list[Step]) -> None:
    forged = replace(steps[0], instruction="Open <|IMAGE|>", source={})
    with pytest.raises(MediaError, match="a placeholder for media"):
        collate([forged])
    typed = Action("type", text="<|AUDIO|>")
    with pytest.raises(DataError, match="a placeholder for media"):
        collate([replace(steps[0], action=typed)])


def test_control_tokens_in_an_answer_are_plain_text(collate: Any, steps: list[Step]) -> None:
    typed = Action("type", text="a<|im_end|>b")
    labels = collate([replace(steps[0], action=typed)])["labels"][0]
    end = collate.processor.tokenizer.eos_token_id
    said = collate.processor.tokenizer.decode(labels[labels >= 0])
    assert int((labels == end).sum()) == 1
    assert json.loads(said.removesuffix("<|im_end|>\n"))["text"] == "a<|im_end|>b"


def test_what_cannot_be_trained_on_is_refused(qwen: Path, steps: list[Step]) -> None:
    with pytest.raises(UsageError, match="history=predicted"):
        collator(qwen, get_task("omnigui", {"history": "predicted"}))
    with pytest.raises(UsageError, match="no option"):
        collator(qwen, get_task("omnigui"), colour="red")


def test_the_answer_is_in_the_unit_that_the_task_is_told(
    qwen: Path, task: Asking, data: Path
) -> None:
    steps = task.load(data).steps
    tap = next(s for s in steps if s.action and s.action.label == "TAP")
    said = {}
    for space in ("norm1000", "px", "rel"):
        told = get_task("omnigui", {"coordinates": space})
        collate = collator(qwen, told, image_size="1600")  # as it is
        [text] = answers(collate([tap])["labels"], collate.processor.tokenizer)
        said[space] = json.loads(text.removesuffix("<|im_end|>\n"))["coordinate"]
        profile = told.profiles[told.default_profile]
        verdict = profile.judge(tap, text.removesuffix("<|im_end|>\n"))
        assert dict(zip(profile.values, verdict.values, strict=True))["exact_match"], space
    assert len({tuple(point) for point in said.values()}) == 3


def test_answers_in_pixels_are_those_of_the_screenshot_as_it_is_shown(
    qwen: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = get_task("omnigui", {"coordinates": "px"})
    steps = told.load(data).steps
    tap = next(s for s in steps if s.action and s.action.label == "TAP")
    collate = collator(qwen, told, image_size="80")
    [text] = answers(collate([tap])["labels"], collate.processor.tokenizer)
    size = media.within(tap.screen, 80)
    line = {"role": "screenshot", "width": size[0], "height": size[1], "original": [*tap.screen]}
    profile = told.profiles[told.default_profile]
    said = text.removesuffix("<|im_end|>\n")
    for receipt, right in (({"parts": [line]}, True), ({}, False)):
        verdict = profile.judge(tap, said, receipt)
        assert dict(zip(profile.values, verdict.values, strict=True))["exact_match"] is right
    with pytest.raises(DataError, match="the answer is for"):
        collate([replace(tap, screen=(tap.screen[0] * 2, tap.screen[1]))])
    target = told.target
    monkeypatch.setattr(told, "target", lambda step, **_: target(step))
    with pytest.raises(DataError, match="which is another place"):
        collate([tap])


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_interleaved_sound_is_taught_as_it_is_asked(
    qwen: Path, task: Asking, steps: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = Spy(monkeypatch)
    options = {"audio_in_video": "true", **SMALL, **SMALL_CLIPS}
    ask(local(qwen, max_new_tokens="1", **options), task.conversation(steps[0]))
    taught = collator(qwen, task, **options)([steps[0]])
    length = spy.tensors["input_ids"].shape[1]
    assert torch.equal(taught["input_ids"][:, :length], spy.tensors["input_ids"])
    assert taught["use_audio_in_video"] is spy.tensors["use_audio_in_video"] is True
    quiet = replace(steps[1], media={**steps[1].media, "audio": None})
    with pytest.raises(UsageError, match="interleaved"):
        collator(qwen, task, **options)([steps[0], quiet])


def test_where_sound_is_interleaved_control_tokens_in_a_prompt_are_refused(
    qwen: Path, task: Asking, steps: list[Step]
) -> None:
    """There the processor is given a text, in which it would obey them."""
    collate = collator(qwen, task, audio_in_video="true", **SMALL_CLIPS)
    for token in ("<|im_start|>", "<|im_end|>"):
        with pytest.raises(MediaError, match=re.escape(token)):
            collate([replace(steps[0], instruction=f"Open {token}", source={})])


def test_the_training_pages_python_runs(
    qwen: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "train.md"
    if not page.is_file():
        pytest.skip("needs a checkout: the sdist has no docs")
    (tmp_path / "DATA").symlink_to(data)
    (tmp_path / "MODEL").symlink_to(qwen)
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)
    exec(block, {})
    assert capsys.readouterr().out.count("loss ") == 2


@pytest.mark.parametrize("streaming", [False, True])
def test_rows_of_a_repository_go_to_it_as_they_are(
    collate: Any, data: Path, task: Asking, steps: list[Step], tmp_path: Path, streaming: bool
) -> None:
    import omnidata
    from omnidata.data.convert import convert

    convert(task.load(data), tmp_path / "out", embed=True)
    found = datasets.load_dataset(str(tmp_path / "out"), split="test", streaming=streaming)
    own = {step.sample_id: step for step in steps}
    rows = [row for row in found if row["sample_id"] in own]
    batch, wanted = collate(rows), collate([own[row["sample_id"]] for row in rows])
    assert batch.keys() == wanted.keys()
    assert all(torch.equal(batch[name], wanted[name]) for name in batch)

    for form in ("torch", "numpy"):
        shaped = [row for row in found.with_format(form) if row["sample_id"] in own]
        assert not isinstance(shaped[0]["step_index"], int)
        assert all(torch.equal(held, wanted[name]) for name, held in collate(shaped).items())

    with pytest.raises(UsageError, match="decoded already"):
        collate([{**rows[0], "screenshot": object()}])
    with pytest.raises(UsageError, match="missing columns"):
        collate([{"sample_id": "a"}])
    plain = omnidata.load_dataset("omnigui", data, split="test")
    with pytest.raises(UsageError, match="screens of earlier steps"):
        collate([row for row in plain if row["history"]][:1])


def test_coordinates_that_torchs_format_rounds_are_refused_and_wider_ones_taken(
    collate: Any, task: Asking, steps: list[Step], tmp_path: Path
) -> None:
    from omnidata.loaders.columns import features
    from omnidata.loaders.rows import to_row

    step = replace(steps[0], action=Action("tap", (Box(0.1, 0.2, 0.3, 0.7, "rel"),)))
    empty = dict.fromkeys(task.benchmark.card.roles or ())
    columns = features((), task.benchmark.card.roles or {})
    rows = datasets.Dataset.from_list([{**to_row(step, ()), **empty}], features=columns)
    wanted = collate([rows[0]])
    with pytest.raises(UsageError, match="action holds numbers that a format") as caught:
        collate([rows.with_format("torch")[0]])
    assert "dtype=torch.float64" in caught.value.remedy
    found = collate([rows.with_format("torch", dtype=torch.float64)[0]])
    assert all(torch.equal(held, wanted[name]) for name, held in found.items())

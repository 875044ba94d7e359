"""A tiny model that is trained for a moment answers right, through the whole command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.local_models import Spy, ask, checkpoint, local, torch
from tests.cli.running import here
from tests.conftest import Once

MODALITIES, STEPS, ROUNDS = "IAV", 4, 50


def lessons(
    tiny: Path, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[dict[str, Any]], list[str]]:
    """What the model is given for the first steps, and what it should answer."""
    from omnidata.tasks import get_task

    task = get_task("omnigui", {"modalities": MODALITIES})
    steps = task.load(sample).steps[:STEPS]
    with monkeypatch.context() as patch:
        spy = Spy(patch)
        for step in steps:
            ask(local(tiny, max_new_tokens="1"), task.conversation(step))
        given = [spy.tensors_of(inputs) for inputs in spy.inputs]
    oracle = task.baseline("oracle", steps, {})
    return given, [oracle(step) for step in steps]


def train(tiny: Path, given: list[dict[str, Any]], answers: list[str], folder: Path) -> None:
    """Plain torch: the answer after the prompt, again and again."""
    from transformers import AutoModelForMultimodalLM, AutoTokenizer

    words = AutoTokenizer.from_pretrained(tiny)
    model = AutoModelForMultimodalLM.from_pretrained(tiny, dtype=torch.float32).train()
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(ROUNDS):
        for inputs, answer in zip(given, answers, strict=True):
            said = words(f"{answer}<|im_end|>", return_tensors="pt")["input_ids"]
            ids = torch.cat([inputs["input_ids"], said], dim=1)
            seen = {**inputs, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
            found = model(**seen).logits[0, -said.shape[1] - 1 : -1]
            loss = torch.nn.functional.cross_entropy(found, said[0])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    shutil.copytree(tiny, folder)
    model.save_pretrained(folder)


@pytest.mark.full("a training; that answers are scored is tested without a model")
def test_a_trained_tiny_model_reaches_exact_matches_through_the_command_line(
    once: Once, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = checkpoint(once, "qwen2.5-omni")
    given, answers = lessons(tiny, sample, monkeypatch)
    train(tiny, given, answers, tmp_path / "trained")
    options = ["-T", f"modalities={MODALITIES}", "--limit", str(STEPS)]
    options += ["-M", "max_new_tokens=60", "-M", "batch_size=2", "--json"]
    run = tmp_path / "run"
    model = ("--model", f"hf:{tmp_path / 'trained'}", "--out", run)
    # In this process, which has imported torch.
    results = json.loads(here("evaluate", "omnigui", sample, *model, *options).stdout)
    assert results["overall"]["EM"] == 1
    lines = (run / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    said = {line["sample_id"]: line for line in map(json.loads, lines)}
    assert {line["output"] for line in said.values()} == set(answers)
    assert all(line["usage"]["completion_tokens"] < 60 for line in said.values())

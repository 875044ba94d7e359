"""`openai:` and a real inference server: `transformers serve` with a tiny Qwen2.5-Omni."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from omnidata import media
from omnidata.adapters.tiny import make_tiny
from omnidata.tasks import get_task
from omnidata.types import Conversation, LoadedDataset, Part
from tests.adapters.serving import serving
from tests.cli.running import as_json, omnidata
from tests.conftest import Once
from tests.trees import read_lines

_MISSING = [
    name
    for name in (
        "torch",
        "torchvision",
        "transformers",
        "fastapi",
        "uvicorn",
        "soundfile",
        "openai",
    )
    if find_spec(name) is None
]
pytestmark = pytest.mark.skipif(
    bool(_MISSING), reason=f"needs the extras `dev`, `local` and `openai`: no {', '.join(_MISSING)}"
)

SEED = 2
BIAS = {1: 3.0}
"""Added to the logit of the token that ends an answer: a random model would go on and on. With this
seed and this bias the first steps of the sample get answers of 3 to 23 tokens."""

TOKENS = 64


@pytest.fixture(scope="module")
def folder(once: Once) -> Path:
    return once("tiny-served", lambda path: make_tiny("qwen2.5-omni", path, seed=SEED))


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    """The server's address."""
    with serving(folder) as url:
        yield url


@pytest.fixture(scope="module")
def source(few: Path) -> LoadedDataset:
    return get_task("omnigui").load(few)


def evaluate(
    model: Path, url: str, data: Path, run: Path, *more: str, **options: str
) -> list[str | Path]:
    """The command that asks the server about every modality, greedily."""
    bias = {"max_new_tokens": str(TOKENS), "extra_body": json.dumps({"logit_bias": BIAS})}
    given = {"frame_times": "false", **bias, **options}
    chosen = [word for name, value in given.items() for word in ("-M", f"{name}={value}")]
    asked = ["--model", f"openai:{model}", "--base-url", f"{url}/v1"]
    return ["evaluate", "omnigui", data, "--out", run, *asked, *chosen, *more]


class Direct:
    """The same model without a server: what the steps should be answered with."""

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoModelForMultimodalLM, AutoProcessor

        self.processor: Any = AutoProcessor.from_pretrained(folder)
        self.model = AutoModelForMultimodalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def ask(self, conversation: Conversation) -> tuple[str, int, int]:
        """The answer, and the tokens of prompt and answer."""
        said = [
            {"role": turn.role, "content": [one for part in turn.parts for one in _parts(part)]}
            for turn in conversation
        ]
        inputs = self.processor.apply_chat_template(
            said, tokenize=True, return_dict=True, return_tensors="pt", add_generation_prompt=True
        )
        bias = {(token,): value for token, value in BIAS.items()}
        whole = self.model.generate(
            **inputs, max_new_tokens=TOKENS, do_sample=False, sequence_bias=bias
        )
        begin = inputs["input_ids"].shape[1]
        text = self.processor.decode(whole[0, begin:], skip_special_tokens=True)
        return text, begin, whole.shape[1] - begin


def _parts(part: Part) -> list[dict[str, Any]]:
    """A text, or a medium as arrays; a clip is four pictures."""
    ref = part.media
    if ref is None:
        return [{"type": "text", "text": part.text}]
    if ref.kind == "audio":
        return [{"type": "audio", "audio": media.samples(ref, rate=16_000)}]
    if ref.kind == "video":
        pictures = media.frames(ref, num_frames=4).pixels
    else:
        pictures = media.image(ref).pixels[None]
    return [{"type": "image", "image": pixels.copy()} for pixels in pictures]


@pytest.fixture(scope="module")
def expected(folder: Path, source: LoadedDataset) -> dict[str, dict[str, Any]]:
    """What the first five steps are answered, and what it costs."""
    task, direct = get_task("omnigui"), Direct(folder)
    found = {}
    for step in source.steps[:5]:
        assert {"screenshot", "video", "audio"} <= {role for role, ref in step.media.items() if ref}
        text, prompt, answer = direct.ask(task.conversation(step, []))
        usage = {"prompt_tokens": prompt, "completion_tokens": answer}
        usage["total_tokens"] = prompt + answer
        found[step.sample_id] = {"output": text, "usage": usage, "delivery": "ok", "attempts": 1}
    assert len({line["output"] for line in found.values()}) > 3
    return found


@pytest.mark.parametrize(
    "form",
    ["input_audio", pytest.param("audio_url", marks=pytest.mark.full("seconds of a real server"))],
)
def test_a_server_answers_as_its_model_does_without_a_server(
    folder: Path,
    server: str,
    expected: dict[str, dict[str, Any]],
    few: Path,
    tmp_path: Path,
    form: str,
) -> None:
    run = tmp_path / "run"
    limit = ("--limit", "5", "--json")
    done = omnidata(*evaluate(folder, server, few, run, *limit, audio_part=form))
    assert as_json(done)["outcomes"] == {"unparsed": 5}
    lines = {line["sample_id"]: line for line in read_lines(run / "predictions.jsonl")}
    assert {
        name: {key: line[key] for key in expected[name]} for name, line in lines.items()
    } == expected


def test_an_answer_cut_by_the_limit_is_known(
    folder: Path, server: str, few: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    omnidata(*evaluate(folder, server, few, run, "--limit", "1", max_new_tokens="2"), code=1)
    [line] = read_lines(run / "predictions.jsonl")
    assert (line["delivery"], line["usage"]["completion_tokens"]) == ("truncated", 2)
    assert line["output"]

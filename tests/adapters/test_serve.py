"""`openai:` and a real inference server: `transformers serve` with a tiny Qwen2.5-Omni."""

from __future__ import annotations

import io
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image, ImageOps

from omnidata import media
from omnidata.adapters.tiny import make_tiny
from omnidata.tasks import get_task
from omnidata.types import Conversation, LoadedDataset, Part
from tests.cli.running import OMNIDATA, as_json, omnidata
from tests.conftest import Once
from tests.trees import read_lines

if TYPE_CHECKING:
    import torch

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

START_S = 120.0


class Serving:
    """The server in a thread of this process, which has imported all it needs; it can be ended."""

    def __init__(self, model: Path) -> None:
        self.model = model
        self._running: Any = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port: int = free.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def up(self) -> Serving:
        """Start it unless it runs; returns when it answers."""
        from transformers.cli.serve import Serve

        if self._running is None:
            place = {"host": "127.0.0.1", "port": self._port, "device": "cpu"}
            self._running = Serve(str(self.model), non_blocking=True, **place)
            begin = time.monotonic()
            while not self._running.server.started:
                assert time.monotonic() < begin + START_S, "it does not start"
                time.sleep(0.01)
        return self

    def end(self) -> None:
        if self._running:
            self._running.kill_server()
            self._running = None


def decode(data: torch.Tensor, mode: Any, *, apply_exif_orientation: bool) -> torch.Tensor:
    """A picture in RGB, (3, height, width), uint8, as torchvision's decoder gives it."""
    from torchvision.transforms.functional import pil_to_tensor

    with Image.open(io.BytesIO(data.numpy().tobytes())) as picture:
        upright = ImageOps.exif_transpose(picture) if apply_exif_orientation else picture
        pixels: torch.Tensor = pil_to_tensor(upright.convert("RGB"))
    return pixels


@pytest.fixture(scope="module")
def folder(once: Once) -> Path:
    return once("tiny-served", lambda path: make_tiny("qwen2.5-omni", path, seed=SEED))


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Serving]:
    """A server that has not begun.

    The one build of torchvision that fits torch without CUDA cannot load its decoders, which want
    CUDA, and the server decodes pictures with them. There Pillow takes their place.
    """
    from omnidata.adapters.hf.checkpoint import prepare_imports

    prepare_imports()
    import torch
    import torchvision.io

    serving = Serving(folder)
    with pytest.MonkeyPatch.context() as patch:
        if not hasattr(torch.ops.image, "decode_image"):
            patch.setattr(torchvision.io, "decode_image", decode)
        yield serving
        serving.end()


@pytest.fixture(scope="module")
def source(sample: Path) -> LoadedDataset:
    return get_task("omnigui").load(sample)


def evaluate(
    server: Serving, data: Path, run: Path, *more: str, **options: str
) -> list[str | Path]:
    """The command that asks the server about every modality, greedily."""
    bias = {"max_new_tokens": str(TOKENS), "extra_body": json.dumps({"logit_bias": BIAS})}
    given = {"frame_times": "false", **bias, **options}
    chosen = [word for name, value in given.items() for word in ("-M", f"{name}={value}")]
    asked = ["--model", f"openai:{server.model}", "--base-url", f"{server.url}/v1"]
    return ["evaluate", "omnigui", data, "--out", run, *asked, *chosen, *more]


def answers(run: Path) -> dict[str, str]:
    return {line["sample_id"]: line["output"] for line in read_lines(run / "predictions.jsonl")}


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
    server: Serving, expected: dict[str, dict[str, Any]], sample: Path, tmp_path: Path, form: str
) -> None:
    run = tmp_path / "run"
    command = evaluate(server.up(), sample, run, "--limit", "5", "--json", audio_part=form)
    done = omnidata(*command)
    assert as_json(done)["outcomes"] == {"unparsed": 5}
    lines = {line["sample_id"]: line for line in read_lines(run / "predictions.jsonl")}
    assert {
        name: {key: line[key] for key in expected[name]} for name, line in lines.items()
    } == expected


@pytest.mark.full("seconds of a real server")
def test_another_picture_gives_another_answer(
    server: Serving, source: LoadedDataset, sample: Path, tmp_path: Path
) -> None:
    data = shutil.copytree(sample, tmp_path / "data")
    shown = source.steps[0].media["screenshot"]
    assert shown is not None
    path = data / shown.root.relative_to(sample) / shown.path
    with Image.open(path) as picture:
        ImageOps.invert(picture.convert("RGB")).save(path)
    runs = tmp_path / "before", tmp_path / "after"
    for where, run in zip((sample, data), runs, strict=True):
        omnidata(*evaluate(server.up(), where, run, "--limit", "4"))
    before, after = map(answers, runs)
    showing = {step.sample_id for step in source.steps[:4] if shown in step.media.values()}
    assert {name for name in before if before[name] != after[name]} == showing
    assert 0 < len(showing) < 4


def test_an_answer_cut_by_the_limit_is_known(server: Serving, sample: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = evaluate(server.up(), sample, run, "--limit", "1", max_new_tokens="2")
    omnidata(*command, code=1)
    [line] = read_lines(run / "predictions.jsonl")
    assert (line["delivery"], line["usage"]["completion_tokens"]) == ("truncated", 2)
    assert line["output"]


@pytest.mark.full("half a minute of a second server")
def test_a_server_that_dies_leaves_failures_which_a_second_call_mends(
    server: Serving, sample: Path, tmp_path: Path
) -> None:
    """And no answer is lost, asked again or changed by it."""
    whole, run = tmp_path / "whole", tmp_path / "run"
    more = ["--limit", "12", "--concurrency", "1", "--attempts", "1"]
    omnidata(*evaluate(server.up(), sample, whole, *more))
    command = evaluate(server, sample, run, *more)
    process = subprocess.Popen(
        [*OMNIDATA, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    predictions = run / "predictions.jsonl"
    while process.poll() is None and not (
        predictions.exists() and predictions.read_bytes().count(b"\n") > 2
    ):
        time.sleep(0.02)
    server.end()
    _, said = process.communicate(timeout=100)
    assert process.returncode == 1, said
    assert "Traceback" not in said
    lines = read_lines(predictions)
    kept = [line for line in lines if line["delivery"] == "ok"]
    failed = [line for line in lines if line["delivery"] == "api_error"]
    assert len(kept) >= 3 and failed and len(kept) + len(failed) == len(lines)
    assert all(line["output"] == "" and line["usage"] == {} for line in failed)
    omnidata(*evaluate(server.up(), sample, run, *more))
    assert answers(run) == answers(whole)
    mended = read_lines(predictions)
    assert len(mended) == 12
    assert all(line in mended for line in kept)

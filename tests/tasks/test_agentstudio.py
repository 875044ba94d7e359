"""The four tasks of AgentStudio, from rows to tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

import omnidata
from omnidata.adapters import Model
from omnidata.media import image
from omnidata.types import Completion, GenerationParams, Modality, Prepared
from tests.cli.running import as_json, here
from tests.full import in_gate
from tests.trees import NO_SHARED, SHARED

ROWS = SHARED / "data" / "agentstudio"
FILES = {
    "groundui": "groundui_1k.jsonl",
    "idm-single": "metadata_idm.jsonl",
    "idm-multiple": "metadata_idmn2n.jsonl",
    "criticbench": "metadata_success_detection.jsonl",
}
real = pytest.mark.skipif(not ROWS.is_dir(), reason=NO_SHARED)


@real
def test_missing_answers_are_wrong_and_told_apart(tmp_path: Path) -> None:
    lines = tmp_path / "outputs.jsonl"
    lines.write_text('{"sample_id": "metadata_success_detection/0", "output": "Answer: maybe"}\n')
    data = ROWS / FILES["criticbench"]
    for profile, unread in (("agentstudio-paper", 350), ("agentstudio-release", 0)):
        command = ("score", "criticbench", data, lines, "--profile", profile, "--json")
        found = as_json(here(*command, code=1))
        assert found["overall"]["accuracy"] == 0.0
        assert found["outcomes"]["missing"] == 349
        counts = found["counts"]["confusion"]
        assert counts["unread_positive"] + counts["unread_negative"] == unread
        assert sum(counts.values()) == 350


class Looking(Model):
    """A model that takes images; it answers with the number of those it was shown."""

    name = "looking"
    accepts: frozenset[Modality] = frozenset({"image"})
    max_batch = 8

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        shown = []
        for item in batch:
            conversation = item.request.conversation
            parts = [part for message in conversation for part in message.parts]
            sizes = [image(part.media).pixels.shape for part in parts if part.media]
            shown.append(Completion(text=f"{len(sizes)} images"))
        return shown


def with_images(name: str, folder: Path, rows: int) -> Path:
    """The first rows of a set, and an image for every name in them."""
    lines = (ROWS / FILES[name]).read_text("utf-8").splitlines()[:rows]
    folder.mkdir()
    (folder / FILES[name]).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    for step in omnidata.get_task(name).load(folder / FILES[name], check_media=False).steps:
        size = step.screen if name == "groundui" else (64, 48)
        for ref in filter(None, step.media.values()):
            (ref.root / ref.path).parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", size, "white").save(ref.root / ref.path)
    return folder


@real
@pytest.mark.parametrize(
    "name",
    in_gate(("criticbench", "groundui", "idm-multiple", "idm-single"), 1, "as many images or one"),
)
def test_models_are_shown_the_images_of_the_rows(name: str, tmp_path: Path) -> None:
    count = 4
    folder = with_images(name, tmp_path / "data", count)
    task = omnidata.get_task(name)
    source = task.load(folder)
    assert not [found for found in source.findings if found.code.startswith("media")]
    results = omnidata.evaluate(task, source, Looking(), tmp_path / "run")
    assert results["outcomes"].keys() <= {"ok", "unparsed"}
    for model in task.baselines:
        found = omnidata.evaluate(task, source, f"baseline:{model}", tmp_path / model)
        assert sum(found["outcomes"].values()) == count
    asked = [part for message in task.conversation(source.steps[0]) for part in message.parts]
    shown = next(part.media for part in asked if part.media)
    (shown.root / shown.path).unlink()
    lacking = omnidata.evaluate(task, task.load(folder), Looking(), tmp_path / "lacking")
    assert lacking["outcomes"]["media_error"] >= 1


def test_a_run_is_scored_with_the_instructions_that_it_was_asked_with(tmp_path: Path) -> None:
    """A row without the raw wording is no step of such a run, and none that it missed."""
    rows = [
        {
            "image": f"{n}.png", "instruction": "Tap", "bbox": [1, 1, 9, 9], "resolution": [20, 20],
            "source": "web", "platform": "web", **({"raw_instruction": "tap"} if n else {}),
        }
        for n in range(3)
    ]  # fmt: skip
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(line) + "\n" for line in rows), "utf-8")
    out = tmp_path / "run"
    asked: list[str | Path] = ["evaluate", "groundui", data, "--out", out, "--json"]
    asked += ["--model", "baseline:oracle"]
    evaluated = as_json(here(*asked, "-T", "instructions=raw"))
    scored = as_json(here("score", "groundui", data, out, "--json"))
    assert evaluated["outcomes"] == scored["outcomes"] == {"ok": 2}

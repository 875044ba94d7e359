"""The four tasks of AgentStudio, from rows to tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import omnidata
from omnidata.adapters import Model
from omnidata.media import image
from omnidata.types import Completion, GenerationParams, LoadedDataset, Modality, Prepared
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
PROFILES = ("agentstudio-paper", "agentstudio-release")
CEILINGS = [("groundui", PROFILES[1]), ("idm-multiple", PROFILES[0])]
CEILINGS += sorted({*product(FILES, PROFILES)} - {*CEILINGS})
real = pytest.mark.skipif(not ROWS.is_dir(), reason=NO_SHARED)


@cache
def rows_of(name: str) -> LoadedDataset:
    """All rows of a set, which nobody changes."""
    return omnidata.get_task(name).load(ROWS / FILES[name], check_media=False)


def evaluate(name: str, model: str, out: Path, **options: Any) -> dict[str, Any]:
    return omnidata.evaluate(omnidata.get_task(name), rows_of(name), model, out, **options)


@real
@pytest.mark.parametrize(
    "case", in_gate(CEILINGS, 2, "other rows; test_targets.py judges each"), ids=str
)
def test_the_oracle_is_the_ceiling(case: tuple[str, str], tmp_path: Path) -> None:
    name, profile = case
    results = evaluate(name, "baseline:oracle", tmp_path / "run", profile=profile)
    # A box without height cannot be hit strictly: row 67 of GroundUI-1K.
    ceiling = 0.999 if (name, profile) == ("groundui", "agentstudio-release") else 1.0
    assert results["overall"]["accuracy"] == ceiling
    assert results["overall"].get("edit_distance", 0.0) == 0.0
    assert results["counts"]["without_usable_target"] == 0


@real
@pytest.mark.parametrize(
    ("name", "model", "wanted"),
    [
        ("groundui", "center", {"accuracy": 0.036}),
        ("criticbench", "always-true", {"accuracy": 180 / 350, "recall": 1.0, "f1": 360 / 530}),
        pytest.param(
            *("criticbench", "always-false", {"accuracy": 170 / 350, "precision": 0.0, "f1": 0.0}),
            marks=pytest.mark.full("the other half of the rows"),
        ),
        pytest.param(
            *("criticbench", "majority", {"accuracy": 180 / 350}),
            marks=pytest.mark.full("the same answers as always-true"),
        ),
    ],
)
def test_floors_are_those_of_the_rows(
    name: str, model: str, wanted: dict[str, float], tmp_path: Path
) -> None:
    overall = evaluate(name, f"baseline:{model}", tmp_path / "run")["overall"]
    assert {key: overall[key] for key in wanted} == pytest.approx(wanted)


@real
def test_slices_add_up_to_the_whole(tmp_path: Path) -> None:
    results = evaluate("idm-multiple", "baseline:majority", tmp_path / "run")
    for groups in results["by"].values():
        assert sum(group["steps"] for group in groups.values()) == results["counts"]["steps"] == 345
        hits = sum(group["accuracy"] * group["steps"] for group in groups.values())
        assert hits / 345 == pytest.approx(results["overall"]["accuracy"])
    assert list(results["by"]["platform"]) == ["web", "desktop", "mobile"]
    assert set(results["by"]["source"]) == {"aitw", "mind2web", "vwa", "agent_studio"}


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


@real
def test_the_unit_of_coordinates_is_an_option(tmp_path: Path) -> None:
    lines = (ROWS / FILES["groundui"]).read_text("utf-8").splitlines()[:50]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines), "utf-8")
    for unit in ("rel", "px", "norm1000"):
        task = omnidata.get_task("groundui", {"coordinates": unit})
        source = task.load(tmp_path / "rows.jsonl", check_media=False)
        results = omnidata.evaluate(task, source, "baseline:oracle", tmp_path / unit)
        assert results["overall"]["accuracy"] == 1.0


@real
def test_the_command_line_prints_the_tables_columns(tmp_path: Path) -> None:
    data = ROWS / FILES["idm-multiple"]
    done = here(
        "evaluate", "idm-multiple", data, "--model", "baseline:oracle", "--out", tmp_path / "run"
    )
    assert "edit_distance" in done.stdout
    assert "0.00" in done.stdout


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
    in_gate(("groundui", "criticbench", "idm-multiple", "idm-single"), 2, "as many images or one"),
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

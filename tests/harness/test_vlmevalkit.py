"""VLMEvalKit itself, in its own environment: `tests/harness/run.sh vlmevalkit`."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.cli.running import as_json
from tests.harness.command import omnidata
from tests.loaders.desk import screenspot, spot

pytest.importorskip("vlmeval", reason="tests/harness/run.sh vlmevalkit has it")

from vlmeval.dataset.GUI.screenspot import ScreenSpot
from vlmeval.inference import infer_data_job

NAME = "ScreenSpot_Web"
SPOTS = [
    spot(
        instruction=f"open shop {number // 2}",
        img_filename=f"web_{number}.png",
        bbox=[4 + 4 * number, 9, 16, 9],
        data_type=("text", "icon")[number % 2],
    )
    for number in range(8)
]
FAILED = "Failed to obtain answer via API."


class Local(ScreenSpot):  # type: ignore[misc]
    """Its own class, on a table that lies here."""

    DATASET_MD5: Mapping[str, str] = {}


class Answering:
    """A model, as VLMEvalKit asks one that runs here."""

    is_api = False

    def __init__(self, said: Mapping[str, str]) -> None:
        self.said = said

    def set_dump_image(self, dump_image: Any) -> None:
        return

    def generate(self, message: Sequence[Mapping[str, str]], dataset: str) -> str:
        (picture,) = (Path(part["value"]).name for part in message if part["type"] == "image")
        return self.said[picture]


def middle(row: Mapping[str, Any]) -> str:
    x, y, w, h = row["bbox"]
    return f"pyautogui.click(x={(x + w / 2) / 64:.4f}, y={(y + h / 2) / 36:.4f})"


@pytest.fixture
def answers() -> dict[str, str]:
    texts = ["", FAILED, "pyautogui.click(x=0.99, y=0.99)"]
    return {
        row["img_filename"]: middle(row) if number < 5 else texts[number - 5]
        for number, row in enumerate(SPOTS)
    }


@pytest.mark.parametrize("form", ["tsv", "xlsx", "json"])
def test_what_it_writes_is_scored_as_it_scores_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, str], form: str
) -> None:
    data, kit = screenspot(tmp_path / "data", *SPOTS), tmp_path / "kit"
    kit.mkdir()
    monkeypatch.setenv("LMUData", str(kit))
    monkeypatch.setenv("PRED_FORMAT", form)
    # Its copies of the data have an order and numbers of their own.
    rows = [
        {
            "index": number + 100,
            "image": base64.b64encode(
                (data / "images" / row["img_filename"]).read_bytes()
            ).decode(),
            "image_path": row["img_filename"],
            "question": row["instruction"],
            "bbox": str(row["bbox"]),
            "data_type": row["data_type"],
            "data_source": row["data_source"],
        }
        for number, row in enumerate(reversed(SPOTS))
    ]
    pd.DataFrame(rows).to_csv(kit / f"{NAME}.tsv", sep="\t", index=False)
    dataset = Local(NAME)
    infer_data_job(Answering(answers), str(tmp_path), "m", dataset)
    table = tmp_path / f"m_{NAME}.{form}"
    if form != "json":  # which it writes, and does not take
        assert dataset.evaluate(str(table))["Overall_Accuracy"] == 62.5

    done = omnidata(
        "score", "screenspot", data, table, "--from", "vlmevalkit", "-T", "coordinates=rel",
        "--profile", "screenspot-fixed", "--out", tmp_path / "scored", "--json",
    )  # fmt: skip
    results = as_json(done)
    assert results["overall"]["accuracy"] == 0.625
    assert results["outcomes"]["api_error"] == 1
    lines = map(json.loads, (tmp_path / "scored" / "scores.jsonl").read_text().splitlines())
    right = {line["sample_id"] for line in lines if line["score"]}
    assert right == {f"screenspot_web/{number}" for number in range(5)}

    # The same table against other data is refused with the first row that differs.
    changed = [*SPOTS[:3], {**SPOTS[3], "bbox": [1, 1, 4, 4]}, *SPOTS[4:]]
    other = screenspot(tmp_path / "other", *changed)
    done = omnidata(
        "score", "screenspot", other, table, "--from", "vlmevalkit", "-T", "coordinates=rel", code=2
    )
    assert f"{table}:5" in done.stderr
    assert "its bbox is [16, 9, 16, 9], that of screenspot_web/3 is [1, 1, 4, 4]" in done.stderr

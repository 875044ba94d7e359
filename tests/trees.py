"""Small OmniGUI datasets without media, written by hand as the formats have them."""

from __future__ import annotations

import filecmp
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.tasks.omnigui.load import load
from omnidata.types import LoadedDataset

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
"""Material that may lie beside a checkout."""

DIMENSIONS = {
    "localization": "loc",
    "semantic_understanding": "sem",
    "cross_modal_discrimination": "crm",
    "temporal_reasoning": "tmp",
    "instant_response": "ins",
}
"""OmniGUI's dimensions, and how its Table 7 abbreviates them."""

NO_SHARED = "needs ../shared beside the checkout"


def row(episode: str = "T1", step: int = 0, **changes: Any) -> dict[str, Any]:
    """A step's row as in the paper's listing 3, with changes; a change to None removes the key."""
    full = {
        "episode_id": episode,
        "step_id": step,
        "instruction_en": "Tap Share",
        "video_path": f"{episode}/{step + 1}.mp4",
        "audio_path": f"{episode}/{step + 1}.wav",
        "image_path": f"{episode}/{step + 1}.png",
        "image_width": 720,
        "image_height": 1600,
        "result_action_type": 0,
        "result_action_text": "",
        "result_touch_xy": "[[210,786],[351,850]]",
        "result_lift_xy": "",
        **changes,
    }
    return {key: value for key, value in full.items() if value is not ABSENT}


ABSENT = object()
"""A change that removes the key."""


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """A JSON file of steps."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def write_app(
    folder: Path, rows: Sequence[Mapping[str, Any]], *, dimension: str = "localization"
) -> Path:
    """An app folder of annotations alone: one metadata file and the index of steps."""
    folder.mkdir(parents=True, exist_ok=True)
    episodes = dict.fromkeys(item["episode_id"] for item in rows)
    lines = [
        json.dumps(
            {
                "ID": episode,
                "app": folder.name,
                "instruction_zh": "点击分享",
                "instruction_en": "Tap Share",
            }
        )
        for episode in episodes
    ]
    (folder / f"{dimension}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_rows(folder / f"dataset_{folder.name}.json", rows)
    return folder


def write_lines(path: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    """A JSON-lines file."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def load_rows(tmp_path: Path, *rows: dict[str, Any]) -> LoadedDataset:
    return load(write_rows(tmp_path / "steps.json", list(rows)))


def codes(source: LoadedDataset) -> Counter[str]:
    """Findings by code, but for the absent media of data without any."""
    found = Counter(finding.code for finding in source.findings)
    del found["media-absent"]
    return found


def same_files(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files, to the last byte."""
    names = [
        sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
        for root in (one, other)
    ]
    found = filecmp.cmpfiles(one, other, names[0], shallow=False)
    return bool(names[0]) and names[0] == names[1] == found[0]

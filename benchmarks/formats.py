"""Annotations by the million in the formats that benchmarks have, without media, for `cache.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from cluster import rows
from runner import PER_EPISODE

SHARD = 100_000
TEN = 10  # steps of an episode of AndroidControl, and of a task of Mind2Web


def array(out: Path, count: int) -> None:
    """OmniGUI as one array, each episode's rows together."""
    _write_array(out / "steps.json", rows(count))


def apart(out: Path, count: int) -> None:
    """The same, all first steps before all second ones."""
    episodes = -(-count // PER_EPISODE)
    spread = (
        row | {"episode_id": f"E{number % episodes}", "step_id": number // episodes}
        for number, row in enumerate(rows(count))
    )
    _write_array(out / "steps.json", spread)


def tree(out: Path, count: int) -> None:
    """OmniGUI as the paper has it: an episode is a file, and all are in an index."""
    app = out / "App"
    app.mkdir()
    with (app / "localization.jsonl").open("w") as lines:
        for name, steps in groupby(rows(count), lambda row: row["episode_id"]):
            folder = app / "media" / name
            folder.mkdir(parents=True)
            _write_array(folder / f"{name}.json", steps)
            told = {"ID": name, "app": "App", "instruction_en": f"Open {name}."}
            lines.write(json.dumps(told | {"instruction_zh": f"打开 {name}。"}) + "\n")
    _write_array(app / "dataset_App.json", rows(count))


def aitw(out: Path, count: int) -> None:
    """Android in the Wild: a record is a step."""
    _write_records(out / "general", (_wild(number) for number in range(count)))


def androidcontrol(out: Path, count: int) -> None:
    """AndroidControl: a record is an episode. Its forests are empty; real ones take 5 KB a step."""
    _write_records(out / "android_control", (_episode(number) for number in range(count // TEN)))


def json_rows(out: Path, count: int) -> None:
    """AndroidControl's steps as one array of rows, as AgentCPM-GUI publishes them."""
    click = {"action_type": "click", "x": 200, "y": 300}
    size = {"image_width": 720, "image_height": 1600}
    _write_array(
        out / "steps.json",
        (
            {"episode_id": number // TEN, "step_id": number % TEN, "instruction": "Open it."}
            | {"image_path": "1.png", **size, **click}
            for number in range(count)
        ),
    )


def mind2web(out: Path, count: int) -> None:
    """Multimodal-Mind2Web: a row of a Parquet file is an action."""
    shards = -(-count // SHARD)
    (out / "data").mkdir()
    for shard in range(shards):
        first = shard * SHARD
        every = [_action(number) for number in range(first, min(count, first + SHARD))]
        name = f"test_task-{shard:05d}-of-{shards:05d}.parquet"
        pq.write_table(pa.Table.from_pylist(every), out / "data" / name)


FORMATS: Mapping[str, tuple[str, Callable[[Path, int], None]]] = {
    "array": ("omnigui", array),
    "apart": ("omnigui", apart),
    "tree": ("omnigui", tree),
    "aitw": ("aitw", aitw),
    "androidcontrol": ("androidcontrol", androidcontrol),
    "json-rows": ("androidcontrol", json_rows),
    "mind2web": ("mind2web", mind2web),
}
"""The benchmark of each format, and what writes it into a new folder."""


def _write_array(path: Path, items: Iterable[Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number, item in enumerate(items):
            file.write((",\n" if number else "[\n") + json.dumps(item))
        file.write("\n]\n")


def _write_records(start: Path, examples: Iterator[dict[str, tuple[list[Any], str]]]) -> None:
    from tfrecord import TFRecordWriter  # takes 180 MB

    for shard, many in groupby(enumerate(examples), lambda each: each[0] // SHARD):
        writer = TFRecordWriter(f"{start}-{shard:05d}-of-00099")
        for _, example in many:
            writer.write(example)
        writer.close()


def _wild(number: int) -> dict[str, tuple[list[Any], str]]:
    texts = {
        "episode_id": f"{number // PER_EPISODE}",
        "goal_info": f"Open item {number // PER_EPISODE}.",
        "device_type": "pixel_4",
        "current_activity": "com.android.Launcher",
        "results/type_action": "",
    }
    numbers = {
        "episode_length": PER_EPISODE,
        "step_id": number % PER_EPISODE,
        "android_api_level": 33,
        "image/height": 16,
        "image/width": 8,
        "image/channels": 3,
        "results/action_type": 4,
    }
    places = {
        "results/yx_touch": [0.5, 0.25],
        "results/yx_lift": [0.5, 0.25],
        "image/ui_annotations_positions": [0.25, 0.25, 0.125, 0.5] * 10,
    }
    return {
        **{name: ([text.encode()], "byte") for name, text in texts.items()},
        **{name: ([value], "int") for name, value in numbers.items()},
        **{name: (values, "float") for name, values in places.items()},
        "image/encoded": ([bytes(8 * 16 * 3)], "byte"),
        "image/ui_annotations_text": ([b"Clock"] * 10, "byte"),
        "image/ui_annotations_ui_types": ([b"TEXT"] * 10, "byte"),
    }


def _episode(number: int) -> dict[str, tuple[list[Any], str]]:
    click = json.dumps({"action_type": "click", "x": 200, "y": 300}).encode()
    return {
        "episode_id": ([number], "int"),
        "goal": ([f"Open item {number}.".encode()], "byte"),
        "actions": ([click] * TEN, "byte"),
        "step_instructions": ([b"Tap the item."] * TEN, "byte"),
        "screenshots": ([b"\x89PNG"] * (TEN + 1), "byte"),
        "screenshot_widths": ([720] * (TEN + 1), "int"),
        "screenshot_heights": ([1600] * (TEN + 1), "int"),
        "accessibility_trees": ([b""] * (TEN + 1), "byte"),
    }


def _action(number: int) -> dict[str, Any]:
    own, place = divmod(number, TEN)
    box = json.dumps({"bounding_box_rect": "20,30,100,40", "backend_node_id": "7"})
    return {
        "action_uid": f"a{number}",
        "annotation_id": f"t{own}",
        "operation": json.dumps({"original_op": "CLICK", "value": "", "op": "CLICK"}),
        "pos_candidates": [json.dumps({"attributes": box})],
        "neg_candidates": [],
        "website": "shop",
        "domain": "Shopping",
        "subdomain": "General",
        "confirmed_task": f"Buy item {own}.",
        "screenshot": {"bytes": b"", "path": None},
        "action_reprs": ["[button]  Buy -> CLICK"] * TEN,
        "target_action_index": str(place),
        "target_action_reprs": "[button]  Buy -> CLICK",
    }

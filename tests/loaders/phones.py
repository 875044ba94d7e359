"""Android in the Wild and AndroidControl as their readmes describe them, in values of our own.

TFRecords are written by the `tfrecord` package, forests by Google's protobuf library, so that what
reads them is held against what others write.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

SCREEN = (90, 200)
"""Width and height of the pictures."""

_KINDS = {str: "byte", bytes: "byte", int: "int", float: "float"}


def records(path: Path, *examples: Mapping[str, Sequence[Any]], packed: bool = True) -> Path:
    """A TFRecord file of examples, each feature a list of texts, bytes, whole numbers or floats."""
    from tfrecord import TFRecordWriter  # it imports PyTorch, which takes seconds

    path.parent.mkdir(parents=True, exist_ok=True)
    plain = path.with_name(path.name + ".plain")
    writer = TFRecordWriter(str(plain))
    for example in examples:
        writer.write(
            {
                name: (
                    [v.encode() if isinstance(v, str) else v for v in values],
                    _KINDS[type(values[0])] if values else "int",
                )
                for name, values in example.items()
            }
        )
    writer.close()
    content = plain.read_bytes()
    plain.unlink()
    path.write_bytes(gzip.compress(content, 1) if packed else content)
    return path


def pixels(seed: int = 0, screen: tuple[int, int] = SCREEN) -> npt.NDArray[np.uint8]:
    """A picture of its own: uint8 (H, W, 3)."""
    draw = np.random.default_rng(seed)
    return np.kron(
        draw.integers(0, 255, (screen[1] // 10, screen[0] // 10, 3), np.uint8),
        np.ones((10, 10, 1), np.uint8),
    )


def png(seed: int = 0, screen: tuple[int, int] = SCREEN) -> bytes:
    """The same as a PNG."""
    buffer = io.BytesIO()
    Image.fromarray(pixels(seed, screen)).save(buffer, "PNG")
    return buffer.getvalue()


def example(step: int = 0, episode: str = "7", **changes: Any) -> dict[str, list[Any]]:
    """A step of Android in the Wild: a tap in the middle, on bare pixels."""
    return {
        "episode_id": [episode],
        "episode_length": [2],
        "step_id": [step],
        "goal_info": ["open the clock"],
        "android_api_level": [33],
        "device_type": ["pixel_4"],
        "current_activity": ["com.android.Launcher"],
        "image/height": [SCREEN[1]],
        "image/width": [SCREEN[0]],
        "image/channels": [3],
        "image/encoded": [pixels(step).tobytes()],
        "image/ui_annotations_positions": [0.25, 0.25, 0.125, 0.5],
        "image/ui_annotations_text": ["Clock"],
        "image/ui_annotations_ui_types": ["TEXT"],
        "results/action_type": [4],
        "results/type_action": [""],
        "results/yx_touch": [0.5, 0.25],
        "results/yx_lift": [0.5, 0.25],
        **{name.replace("__", "/"): value for name, value in changes.items()},
    }


def zoo(step: int | str = 0, **changes: Any) -> dict[str, Any]:
    """A step of Android in the Zoo: a tap on the only element."""
    return {
        "episode_id": "5",
        "episode_length": 2,
        "step_id": step,
        "instruction": "open the clock",
        "ui_positions": "[[50, 18, 20, 36]]",
        "ui_text": '["Clock"]',
        "ui_types": '["TEXT"]',
        "result_action_type": 4,
        "result_action_text": "",
        "result_touch_yx": "[0.3, 0.4]",
        "result_lift_yx": "[0.3, 0.4]",
        "image_path": f"general/GENERAL-5/GENERAL-5_{step}.png",
        "coat_action_desc": "click on the clock",
        **changes,
    }


def zoo_episode(folder: Path, *rows: Mapping[str, Any], name: str = "GENERAL-5") -> Path:
    """An episode's folder with a picture of each step."""
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")
    for row in rows:
        (folder / f"{name}_{row['step_id']}.png").write_bytes(png(1))
    return folder


def cagui(step: int = 0, **changes: Any) -> dict[str, Any]:
    """A step of CAGUI, whose boxes go from 0 to 1."""
    return {
        "episode_id": "77",
        "episode_length": 1,
        "step_id": step,
        "instruction": "打开时钟",
        "subset": "domestic",
        "image_path": f"domestic/77/77_{step}.jpeg",
        "image_width": SCREEN[0],
        "image_height": SCREEN[1],
        "ui_positions": "[[0.25, 0.2, 0.1, 0.4]]",
        "result_action_type": 0,
        "result_action_text": "",
        "result_touch_yx": "[0.3, 0.4]",
        "result_lift_yx": "[0.3, 0.4]",
        "duration": 1000,
        **changes,
    }


Bounds = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels."""


@cache
def _message() -> Any:
    """The message of android_env, as far as it is needed, made of a description of it."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="forest.proto", package="a11y", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    fields: Mapping[str, Sequence[tuple[str, int, str]]] = {
        "Rect": [("left", 1, ""), ("top", 2, ""), ("right", 3, ""), ("bottom", 4, "")],
        "Node": [
            ("unique_id", 1, ""),
            ("bounds_in_screen", 2, "Rect"),
            ("class_name", 3, "str"),
            ("content_description", 4, "str"),
            ("hint_text", 5, "str"),
            ("text", 7, "str"),
            ("is_enabled", 16, "bool"),
            ("is_scrollable", 21, "bool"),
            ("is_visible_to_user", 23, "bool"),
            ("child_ids", 25, "*"),
        ],
        "Tree": [("nodes", 1, "*Node")],
        "Window": [("bounds_in_screen", 1, "Rect"), ("title", 5, "str"), ("tree", 11, "Tree")],
        "Forest": [("windows", 1, "*Window")],
    }
    for name, members in fields.items():
        message = file.message_type.add(name=name)
        for member, number, kind in members:
            made = message.field.add(name=member, number=number)
            made.label = field.LABEL_REPEATED if kind[:1] == "*" else field.LABEL_OPTIONAL
            plain = {"": field.TYPE_INT32, "str": field.TYPE_STRING, "bool": field.TYPE_BOOL}
            made.type = plain.get(kind.removesuffix("*"), field.TYPE_MESSAGE)
            if made.type == field.TYPE_MESSAGE:
                made.type_name = f".a11y.{kind.lstrip('*')}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("a11y.Forest"))


def forest(*windows: tuple[Bounds, Sequence[Bounds]]) -> bytes:
    """A forest: windows with their bounds and those of their elements, which are seen."""
    found = _message()()
    for bounds, nodes in windows:
        window = found.windows.add(title="Clock")
        _place(window.bounds_in_screen, bounds)
        for number, node in enumerate(nodes):
            element = window.tree.nodes.add(unique_id=number, text="a", is_visible_to_user=True)
            _place(element.bounds_in_screen, node)
    content: bytes = found.SerializeToString()
    return content


def tree(*nodes: Mapping[str, Any]) -> bytes:
    """A forest of one window, whose elements are enabled and seen unless they say otherwise.

    Args:
        nodes: "bounds", and fields of the message.
    """
    found = _message()()
    window = found.windows.add()
    for node in nodes:
        said = {"is_enabled": True, "is_visible_to_user": True, **node}
        bounds = said.pop("bounds")
        _place(window.tree.nodes.add(**said).bounds_in_screen, bounds)
    content: bytes = found.SerializeToString()
    return content


def _place(rect: Any, bounds: Bounds) -> None:
    rect.SetInParent()
    rect.left, rect.top, rect.right, rect.bottom = bounds


CLICK = {"action_type": "click", "x": 45, "y": 100}
SCROLL = {"action_type": "scroll", "direction": "down"}


def episode(*actions: Any, number: int = 3, **changes: Any) -> dict[str, list[Any]]:
    """An episode of AndroidControl: a click and a scroll; one more screenshot than actions."""
    done = list(actions) or [CLICK, SCROLL]
    seen = len(done) + 1
    whole = (0, 0, *SCREEN)
    return {
        "episode_id": [number],
        "goal": ["Set an alarm"],
        "screenshots": [png(number * 10 + n) for n in range(seen)],
        "accessibility_trees": [forest((whole, [whole, (40, 90, 60, 110)]))] * seen,
        "screenshot_widths": [SCREEN[0]] * seen,
        "screenshot_heights": [SCREEN[1]] * seen,
        "actions": [a if isinstance(a, str) else json.dumps(a) for a in done],
        "step_instructions": [f"Do {n}" for n in range(len(done))],
        **changes,
    }


def two_episodes(task: str, folder: Path) -> Path:
    """A TFRecord of either dataset with two episodes of one step, alone in its folder."""
    if task == "aitw":
        one = {"episode_length": [1]}
        return records(folder / "general.tfrecord", example() | one, example(0, "8") | one)
    whole = records(folder / "android_control", episode(CLICK), episode(SCROLL, number=4))
    (folder / "splits.json").write_text(json.dumps({"train": [3], "test": [4]}))
    return whole

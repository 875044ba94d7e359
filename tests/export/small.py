"""Small datasets with real media, and what an export of them holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.actions import Action, Box
from omnidata.loaders.tree_writer import TreeEpisode, TreeStep, TreeWriter
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.training.export import Exported, export
from omnidata.training.rows import Options
from omnidata.types import LoadedDataset
from tests.data.tiny import SIZE, mp4, png, wav
from tests.loaders import agentstudio

TAP = Action("tap", (Box(10, 20, 30, 44, "px"),))
SWIPE = Action.of("SWIPE_UP", (Box(10, 90, 30, 120, "px"),), (Box(10, 20, 30, 44, "px"),))
TYPE = Action("type", text='你好 "x"')
BACK = Action("back")
ACTIONS = (TAP, SWIPE, TYPE, BACK)
STUDIO = ("groundui", "idm-single", "idm-multiple", "criticbench")

# Of Qwen-Omni, Qwen-VL, Gemma 3n, Gemma 4 and Phi-4.
PLACEHOLDERS = (
    *("<audio_soft_token>", "<audio|>", "<end_of_audio>", "<end_of_image>", "<image_soft_token>"),
    *("<image|>", "<start_of_audio>", "<start_of_image>", "<|AUDIO|>", "<|IMAGE|>", "<|VIDEO|>"),
    *("<|audio>", "<|audio_bos|>", "<|audio_end|>", "<|audio_eos|>", "<|audio_pad|>"),
    *("<|audio_start|>", "<|audio|>", "<|endoftext10|>", "<|endoftext11|>", "<|image>"),
    *("<|image_pad|>", "<|image|>", "<|video_pad|>", "<|video|>", "<|vision_bos|>"),
    *("<|vision_end|>", "<|vision_eos|>", "<|vision_pad|>", "<|vision_start|>"),
)
CONTROLS = (
    *("</think>", "<bos>", "<channel|>", "<end_of_turn>", "<eos>", "<pad>", "<start_of_turn>"),
    *("<think>", "<turn|>", "<|assistant|>", "<|channel>", "<|endoftext|>", "<|end|>"),
    *("<|im_end|>", "<|im_start|>", "<|system|>", "<|think|>", "<|turn>", "<|user|>"),
)

Instruct = Callable[[int], str]


def seen_steps(
    actions: Sequence[Action | None], *, first: int, extra: Mapping[str, Any] = {}
) -> list[TreeStep]:
    """Steps with these actions; the media of step n are `png(first + n)` and so on."""
    return [
        TreeStep(action, screen=SIZE, screenshot=png(n), video=mp4(n), audio=wav(n), extra=extra)
        for n, action in enumerate(actions, first)
    ]


def tree(
    root: Path,
    *,
    episodes: int = 1,
    actions: Sequence[Action] = ACTIONS,
    app: str = "App",
    seed: int = 0,
    instruct: Instruct = "Task number {}".format,
    twins: int = 0,
) -> Path:
    """Episodes whose steps all have a screenshot, a clip and a track of their own.

    So many of them in a row are twins by their column.
    """
    with TreeWriter(root) as writer:
        for number in range(episodes):
            steps = seen_steps(
                actions,
                first=seed + 100 * number,
                extra={"twins": f"G{number // twins}"} if twins else {},
            )
            writer.add(
                TreeEpisode(
                    f"E{seed}{number}", app=app, dimension="localization", steps=steps,
                    language="en", instruction_en=instruct(number),
                )
            )  # fmt: skip
    return root


def folder(root: Path, number: int = 0, *, app: str = "App", seed: int = 0) -> Path:
    """The media of an episode: 1.png, 1.mp4, 1.wav, 2.png, ..."""
    return root / app / "media" / f"E{seed}{number}"


def studio(root: Path, name: str) -> Path:
    rows = {
        "groundui": [agentstudio.ground(), agentstudio.ground(image="b.png")],
        "idm-single": [agentstudio.single(), agentstudio.single(**agentstudio.act(2))],
        "idm-multiple": [agentstudio.trajectory(), agentstudio.trajectory(agentstudio.act(5))],
        "criticbench": [agentstudio.trajectory(), agentstudio.trajectory(is_success=False)],
    }[name]
    names = ["a.png", "b.png", *(f"m2w/{number}.png" for number in range(8))]
    agentstudio.pictures(root / "images", names)
    return agentstudio.write(root / "rows.jsonl", *rows)


def load(data: Path, task: str = "omnigui", **options: str) -> LoadedDataset:
    return get_task(task, options).load(data, check_media=False)


def written(
    data: Path | LoadedDataset,
    out: Path,
    *,
    task: str | Asking = "omnigui",
    coordinates: str = "",
    **options: Any,
) -> Exported:
    if isinstance(task, str):
        task = get_task(task, {"coordinates": coordinates} if coordinates else {})
    source = task.load(data, check_media=False) if isinstance(data, Path) else data
    chosen = {"format": "llamafactory", "shares": {"train": 1.0}}
    own = {
        name: options.pop(name)
        for name in (
            *("where", "exclude", "limit", "against", "overwrite", "progress"),
            *("workers", "cluster"),
        )
        if name in options
    }
    return export(task, source, out, Options(**{**chosen, **options}), **own)


def stop_at_the_end(done: int, total: int) -> None:
    if done == total:
        raise KeyboardInterrupt


def rows(out: Path, split: str = "train") -> list[dict[str, Any]]:
    lines = (out / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def answer(row: dict[str, Any]) -> str:
    if "conversations" in row:
        said: str = row["conversations"][-1]["value"]
    elif "completion" in row:
        said = row["completion"][0]["content"][0]["text"]
    else:
        said = row["messages"][-1]["content"]
    return said


def codes(done: Exported) -> list[str]:
    return [finding.code for finding in done.findings]


def faults(done: Exported) -> list[str]:
    """The codes of what is wrong with steps; that sound was left out is no fault of theirs."""
    return [code for code in codes(done) if code != "media-dropped"]

"""Reads an export as LLaMA-Factory does, from `dataset_info.json` to decoded frames."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_PIXELS = {"image_max_pixels": 1 << 30, "image_min_pixels": 1}


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    from llamafactory.data.loader import _load_single_dataset
    from llamafactory.data.mm_plugin import MMPluginMixin
    from llamafactory.data.parser import get_dataset_list

    (dataset,) = get_dataset_list([name], str(folder))
    data = SimpleNamespace(
        dataset_dir=str(folder), media_dir=str(folder), preprocessing_num_workers=None,
        streaming=False, max_samples=None, overwrite_cache=True,
    )  # fmt: skip
    model = SimpleNamespace(cache_dir=str(folder.parent / "cache"), hf_hub_token=None)
    training = SimpleNamespace(local_process_index=0)
    plugin = MMPluginMixin(image_token="<image>", video_token="<video>", audio_token="<audio>")
    found = []
    for row in _load_single_dataset(dataset, model, data, training):
        images, videos, audios = (row[f"_{kind}s"] or [] for kind in ("image", "video", "audio"))
        plugin._validate_messages(row["_prompt"] + row["_response"], images, videos, audios)
        pictures = plugin._regularize_images(images, **_PIXELS)["images"]
        clips = plugin._regularize_videos(videos, video_fps=2.0, video_maxlen=8, **_PIXELS)
        found.append(
            {
                "system": row["_system"],
                "asked": [turn["content"] for turn in row["_prompt"]],
                "answer": [turn["content"] for turn in row["_response"]],
                "pictures": [picture.size for picture in pictures],
                "frames": [len(clip) for clip in clips["videos"]],
                "files": [*images, *videos, *audios],
            }
        )
    return found


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):
        result = read(Path(sys.argv[1]), sys.argv[2])
    json.dump(result, sys.stdout)

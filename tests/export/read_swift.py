"""Reads an export as ms-swift does, and writes its objects as its template for Qwen2.5-VL does."""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from PIL import Image


def read(path: Path, norm: str) -> list[dict[str, Any]]:
    """The messages with placeholders, the media, and the answer with its places in it."""
    from swift.dataset import load_dataset
    from swift.template.template_inputs import StdTemplateInputs
    from swift.template.templates.qwen import Qwen2_5VLTemplate

    template = object.__new__(Qwen2_5VLTemplate)  # without a model: only its rules for boxes
    template.norm_bbox, template.bbox_format = norm, "new"
    rows, _ = load_dataset([str(path)], strict=True, load_from_cache_file=False)
    found = []
    for row in rows:
        inputs = StdTemplateInputs.from_dict({key: row[key] for key in row if row[key] is not None})
        images = [Image.open(path.parent / image["path"]) for image in inputs.images]
        inputs.images = images
        answer = inputs.messages[-1]["content"]
        if inputs.objects:
            template._get_height_width(inputs)
            template.normalize_bbox(inputs)
            for number, box in enumerate(inputs.objects["bbox"]):
                (text,) = template.replace_bbox(box, number, inputs)
                answer = answer.replace("<bbox>", text, 1)
        found.append(
            {
                "roles": [message["role"] for message in inputs.messages],
                "system": inputs.system,
                "asked": inputs.messages[0]["content"],
                "answer": answer,
                "pictures": [image.size for image in images],
                "videos": inputs.videos,
                "audios": inputs.audios,
            }
        )
    return found


if __name__ == "__main__":
    os.environ["MODELSCOPE_CACHE"] = str(Path(sys.argv[1]).parent.parent / "cache")
    with redirect_stdout(sys.stderr):
        result = read(Path(sys.argv[1]), sys.argv[2])
    json.dump(result, sys.stdout)

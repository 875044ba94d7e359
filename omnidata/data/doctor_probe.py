"""Loads one package and tries it: `python -P -m omnidata.data.doctor_probe NAME`.

A package may raise anything, end the process or hang, so each gets a process of its own. Standard
output gets one JSON object: the `error`, or `detail`, `worked_round`, and of torch `build`, `gpus`.
"""

from __future__ import annotations

import json
import os
import sys
from pkgutil import resolve_name
from typing import Any

_TARGETS = {
    "datasets": "datasets:Dataset",
    "isal": "isal.isal_zlib:compress",
    "torchaudio": "torchaudio.functional:resample",
    "transformers": "transformers:AutoModelForMultimodalLM",
    "accelerate": "accelerate:Accelerator",
    "torchcodec": "torchcodec.decoders",
    "peft": "peft:LoraConfig",
    "trl": "trl:SFTTrainer",
    "openai": "openai:DefaultAioHttpClient",
    "anthropic": "anthropic:DefaultAioHttpClient",
    "google-genai": "google.genai",
    "matplotlib": "matplotlib.backends.backend_agg:FigureCanvasAgg",
}
"""Distribution -> the part of it that omnidata uses, where importing it is the whole trial."""


def _probe(name: str) -> dict[str, Any]:
    if name in ("torchvision", "transformers", "peft", "trl"):
        from omnidata.adapters.hf.checkpoint import prepare_imports

        worked_round = prepare_imports()
        if name == "torchvision":
            resolve_name("torchvision.transforms.v2.functional:resize")
            return {"worked_round": worked_round}
    match name:
        case "av":
            import av

            names = {"h264": "r", "aac": "r", "pcm_s16le": "r", "png": "r", "libx264": "w"}
            for codec, mode in names.items():
                av.Codec(codec, mode)  # type: ignore[arg-type]  # the mode is a name from a table
            return {"detail": "reads H.264, AAC, PCM, PNG; writes H.264"}
        case "pillow":
            from PIL import features

            if lacks := [kind for kind in ("zlib", "jpg", "webp") if not features.check(kind)]:
                raise RuntimeError(f"it lacks {', '.join(lacks)}")
            return {"detail": "PNG, JPEG, WEBP"}
        case "torch":
            return _torch()
        case "espeakng-loader":
            from omnidata.data.voice_engines import Espeak

            return {"detail": Espeak().name}
        case _:
            resolve_name(_TARGETS[name])
            return {}


def _torch() -> dict[str, Any]:
    import torch

    build = "CPU"
    if torch.version.cuda or torch.version.hip:
        build = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}"
    gpus = []
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        about = torch.cuda.get_device_properties(index)
        gpu = {"detail": f"{about.name}, {about.total_memory / 2**30:.1f} GiB", "error": ""}
        try:
            torch.ones(2, device=index).sum().item()
        except torch.cuda.OutOfMemoryError:
            gpu["detail"] += ", full"
        except RuntimeError as error:
            gpu["error"] = f"RuntimeError: {str(error).partition(chr(10))[0]}"
        gpus.append(gpu)
    number = f"{len(gpus) or 'no'} GPU{'s' if len(gpus) > 1 else ''}"
    detail = f"{build} build" + ("" if build == "CPU" else f", {number}")
    return {"build": build, "gpus": gpus, "detail": detail}


def _main(name: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # packages may print
    try:
        answer = _probe(name)
    except BaseException as error:  # an import may also end in SystemExit
        while error.__cause__:
            error = error.__cause__
        answer = {"error": f"{type(error).__name__}: {error}".strip(" :").splitlines()[0]}
    json.dump(answer, answers)
    answers.flush()
    os._exit(0)  # without exit handlers, which may hang or crash too


if __name__ == "__main__":
    _main(sys.argv[1])

"""`transformers serve` in a thread of this process, which has imported all that it needs."""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image, ImageOps

if TYPE_CHECKING:
    import torch

START_S = 120.0


@contextmanager
def serving(model: Path) -> Iterator[str]:
    """The address of a server of a checkpoint.

    The one build of torchvision that fits torch without CUDA cannot load its decoders, which want
    CUDA, and the server decodes pictures with them. There Pillow takes their place.
    """
    from omnidata.adapters.hf.checkpoint import prepare_imports

    prepare_imports()
    import torch
    import torchvision.io
    from transformers.cli.serve import Serve

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with pytest.MonkeyPatch.context() as patch:
        if not hasattr(torch.ops.image, "decode_image"):
            patch.setattr(torchvision.io, "decode_image", decode)
        place = {"host": "127.0.0.1", "port": port, "device": "cpu"}
        running: Any = Serve(str(model), non_blocking=True, **place)
        try:
            begin = time.monotonic()
            while not running.server.started:
                assert time.monotonic() < begin + START_S, "it does not start"
                time.sleep(0.01)
            yield f"http://127.0.0.1:{port}"
        finally:
            running.kill_server()


def decode(data: torch.Tensor, mode: Any, *, apply_exif_orientation: bool) -> torch.Tensor:
    """A picture in RGB, (3, height, width), uint8, as torchvision's decoder gives it."""
    from torchvision.transforms.functional import pil_to_tensor

    with Image.open(io.BytesIO(data.numpy().tobytes())) as picture:
        upright = ImageOps.exif_transpose(picture) if apply_exif_orientation else picture
        pixels: torch.Tensor = pil_to_tensor(upright.convert("RGB"))
    return pixels

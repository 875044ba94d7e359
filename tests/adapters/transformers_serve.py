"""`transformers serve`, on any machine.

The one build of torchvision that fits torch without CUDA cannot load its decoders, which want CUDA,
and transformers decodes the pictures of a request with them. There Pillow takes their place; all
else is the server as it is installed.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from PIL import Image, ImageOps

if TYPE_CHECKING:
    import torch


def decode(data: torch.Tensor, mode: Any, *, apply_exif_orientation: bool) -> torch.Tensor:
    """The picture in RGB, (3, height, width), uint8."""
    from torchvision.transforms.functional import pil_to_tensor

    with Image.open(io.BytesIO(data.numpy().tobytes())) as picture:
        upright = ImageOps.exif_transpose(picture) if apply_exif_orientation else picture
        pixels: torch.Tensor = pil_to_tensor(upright.convert("RGB"))
    return pixels


def main() -> None:
    """Run the command line of transformers."""
    from omnidata.adapters.hf.checkpoint import prepare_imports

    prepare_imports()
    import torch
    import torchvision.io
    from transformers.cli.transformers import main as transformers

    if not hasattr(torch.ops.image, "decode_image"):
        torchvision.io.decode_image = decode
    transformers()  # type: ignore[no-untyped-call]  # theirs has no types


if __name__ == "__main__":
    main()

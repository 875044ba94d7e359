"""Set-of-Mark: boxes with their numbers, as OSWorld draws them (Appendix C.5, Figure 8)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from omnidata.media.encoding import png
from omnidata.media.paths import Budget
from omnidata.media.picture_file import open_picture
from omnidata.types import MediaRef

_LABEL: Final = 15
"""Height of a number in pixels on a screen of 1080 lines; larger ones have larger numbers."""
_LINES: Final = 1080


def read_marked(found: Path | bytes, ref: MediaRef, budget: Budget) -> bytes:
    """Return a picture with its marks drawn on it, as a PNG.

    A mark is a red frame with its number, white on black, in its lower left corner. What of a frame
    lies beyond the picture is not seen.

    Args:
        found: the picture's file, or its bytes.
        ref: whose they are, and the marks.
        budget: limits.

    Raises:
        MediaError: as `open_picture`.
    """
    import numpy as np
    from PIL import ImageDraw, ImageFont

    with open_picture(found, ref, budget) as picture:
        drawn = picture.decode()
    scale = max(1, round(min(drawn.size) / _LINES))
    font = ImageFont.load_default(_LABEL * scale)
    draw = ImageDraw.Draw(drawn)
    width, height = drawn.size
    for box in ref.marks:
        frame = [min(max(-1, at), side) for at, side in zip(box, (width, height) * 2, strict=True)]
        draw.rectangle(frame, outline="red", width=scale)
    for number, (left, _, _, bottom) in enumerate(ref.marks, 1):  # no frame hides a number
        corner = min(max(0, left), width), min(max(0, bottom), height)
        draw.rectangle(draw.textbbox(corner, str(number), font=font, anchor="lb"), fill="black")
        draw.text(corner, str(number), font=font, anchor="lb", fill="white")
    return png(np.asarray(drawn))

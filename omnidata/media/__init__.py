"""Screenshots, clips and audio: found safely, decoded within limits, never guessed.

Every function takes a `MediaRef` and raises `MediaError`, which names the file, for anything that
is not a whole medium inside the dataset's folder.
"""

from omnidata.media.clip import Frames, frames
from omnidata.media.encoding import png, resized, wav, within
from omnidata.media.paths import (
    DEFAULT_BUDGET,
    Budget,
    around,
    closed,
    linkable,
    place,
    resolve,
    unsafe,
)
from omnidata.media.picture import Picture, Placement, image, image_size
from omnidata.media.probing import Glance, Probe, check, examine, glance, hold, probe
from omnidata.media.sound import samples
from omnidata.media.storage import InMemoryMedia, read_bytes, stored

__all__ = [
    "DEFAULT_BUDGET",
    "Budget",
    "Frames",
    "Glance",
    "InMemoryMedia",
    "Picture",
    "Placement",
    "Probe",
    "around",
    "check",
    "closed",
    "examine",
    "frames",
    "glance",
    "hold",
    "image",
    "image_size",
    "linkable",
    "place",
    "png",
    "probe",
    "read_bytes",
    "resized",
    "resolve",
    "samples",
    "stored",
    "unsafe",
    "wav",
    "within",
]

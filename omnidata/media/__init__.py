"""Open and encode screenshots, clips and audio. Import from here.

Functions that read take a `MediaRef`. They raise a `MediaError`, which names the file, for anything
that is not a complete medium inside the dataset's folder.
"""

from omnidata.files import unsafe
from omnidata.media.decoding import Frames, frames, recorded_seconds, samples
from omnidata.media.encoding import (
    AUDIO_RATE,
    Frame,
    Samples,
    encode_mp4,
    encode_wav,
    png,
    resize,
    wav,
    within,
)
from omnidata.media.held import MediaInfo, hold, media_info
from omnidata.media.paths import (
    DEFAULT_BUDGET,
    Budget,
    around,
    is_remote,
    leads_outside,
    linkable,
    place,
    resolve,
    spelling_on_disk,
    unpack_command,
    unpack_zip,
)
from omnidata.media.picture import (
    Picture,
    PictureInfo,
    Placement,
    image,
    image_size,
    letterbox,
    picture_info,
)
from omnidata.media.probing import (
    SILENCE,
    Probe,
    check,
    examine,
    probe,
    stated_seconds,
)
from omnidata.media.storage import (
    InMemoryMedia,
    file_hash,
    file_or_bytes,
    read_bytes,
    read_stored,
)
from omnidata.media.threads import in_threads

__all__ = [
    "AUDIO_RATE",
    "DEFAULT_BUDGET",
    "SILENCE",
    "Budget",
    "Frame",
    "Frames",
    "InMemoryMedia",
    "MediaInfo",
    "Picture",
    "PictureInfo",
    "Placement",
    "Probe",
    "Samples",
    "around",
    "check",
    "encode_mp4",
    "encode_wav",
    "examine",
    "file_hash",
    "file_or_bytes",
    "frames",
    "hold",
    "image",
    "image_size",
    "in_threads",
    "is_remote",
    "leads_outside",
    "letterbox",
    "linkable",
    "media_info",
    "picture_info",
    "place",
    "png",
    "probe",
    "read_bytes",
    "read_stored",
    "recorded_seconds",
    "resize",
    "resolve",
    "samples",
    "spelling_on_disk",
    "stated_seconds",
    "unpack_command",
    "unpack_zip",
    "unsafe",
    "wav",
    "within",
]

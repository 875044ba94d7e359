"""The faults that probes find, with their fixes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Cause(NamedTuple):
    """A fault of a server or of its settings.

    Attributes:
        what: the fault, in a sentence without its full stop.
        fix: what to change.
    """

    what: str
    fix: str


CAUSES: Final[Mapping[str, Cause]] = {
    "refused": Cause(
        "the server refuses the request",
        "read its error; start the server with this modality, or leave it out with --modalities",
    ),
    "resized": Cause(
        "the server resizes the picture again, and answers are in pixels of its copy",
        "send pictures that fit its limit (-M image_size=N), raise that limit, or use "
        "--coordinates norm1000",
    ),
    "padded": Cause(
        "the server puts the picture on a square ground before the model sees it",
        "turn padding off in its image processor",
    ),
    "cropped": Cause(
        "the server cuts off the edges of the picture",
        "turn cropping off in its image processor (`do_center_crop`)",
    ),
    "swapped": Cause(
        "answers have y before x",
        "name the model's own form of answers: --dialect NAME",
    ),
    "units": Cause(
        "answers are in another unit than requested",
        "use the model's own unit: --coordinates UNIT or --dialect NAME",
    ),
    "colours_swapped": Cause(
        "red and blue are swapped: pictures are decoded as BGR",
        "convert to RGB where the server decodes pictures",
    ),
    "picture_order": Cause(
        "the pictures reach the model in another order",
        "check how its chat template places pictures",
    ),
    "first_picture_only": Cause(
        "only the first picture reaches the model",
        "raise the server's limit of pictures per prompt",
    ),
    "last_picture_only": Cause(
        "only the last picture reaches the model",
        "raise the server's limit of pictures per prompt",
    ),
    "frame_order": Cause(
        "frames reach the model in reverse",
        "check how the server decodes clips",
    ),
    "first_frame_only": Cause(
        "only the first frame of a clip reaches the model",
        "raise the number of frames that the server samples",
    ),
    "clip_cut": Cause(
        "the end of a clip does not reach the model",
        "raise the number of frames or the length that the server takes",
    ),
    "frames_lost": Cause(
        "some frames of a clip do not reach the model",
        "raise the number of frames that the server samples",
    ),
    "frame_times": Cause(
        "the model is wrong about the length of clips: frame times are lost",
        "send frame times, or set the frame rate that the server assumes",
    ),
    "sound_lost": Cause(
        "sound does not reach the model",
        "start the server with audio, or send sound apart from clips",
    ),
    "sound_cut_30": Cause(
        "sound is cut at 30 s",
        "the server's audio encoder takes one window of 30 s: enable chunks, or send shorter sound",
    ),
    "sound_cut": Cause(
        "the end of the sound does not reach the model",
        "raise the length of sound that the server takes",
    ),
    "sides_swapped": Cause(
        "left and right of the sound are swapped",
        "check how the server decodes sound",
    ),
    "mono": Cause(
        "the sound is mixed to one channel",
        "do not ask about left and right",
    ),
    "track_lost": Cause(
        "the sound of a clip does not reach the model",
        "enable the clip's own sound (use_audio_in_video), or send sound apart from clips",
    ),
    "system_ignored": Cause(
        "the system message is ignored",
        "check the chat template; put the text into the user's message",
    ),
    "history_dropped": Cause(
        "earlier turns do not reach the model",
        "check the chat template: it may keep only the last message",
    ),
    "roles_swapped": Cause(
        "the turns of user and assistant are mixed up",
        "check the roles in the chat template",
    ),
    "prefix_ignored": Cause(
        "the answer starts anew instead of continuing the given beginning",
        "enable continuation of the last message (continue_final_message)",
    ),
    "stop_ignored": Cause(
        "stop texts are ignored",
        "check that the server supports `stop`",
    ),
    "limit_ignored": Cause(
        "the limit on the length of answers is ignored",
        "check the name of this option on the server (-M)",
    ),
    "output_capped": Cause(
        "answers are cut shorter than requested",
        "raise the server's own limit of output tokens, or its context",
    ),
    "special_tokens_lost": Cause(
        "special tokens of answers are lost, although the model writes them",
        "let the server keep them (`skip_special_tokens=false`, `--special` of llama.cpp), or "
        "choose a dialect whose answers have none",
    ),
    "not_deterministic": Cause(
        "the same question at temperature 0 has different answers",
        "batching changes the numbers: enable the server's deterministic mode, or report several "
        "runs",
    ),
    "seed_ignored": Cause(
        "the same seed gives different answers",
        "the server ignores `seed`: report several runs",
    ),
    "picture_costs_nothing": Cause(
        "a prompt with a picture has no more tokens than one without: the picture is lost",
        "check the content types that the server accepts, and its chat template",
    ),
    "tokens_differ": Cause(
        "the same pictures cost another number of tokens than in the reference: the two resize "
        "them differently",
        "compare the pixel limits of both (-M image_size, the server's image processor)",
    ),
}

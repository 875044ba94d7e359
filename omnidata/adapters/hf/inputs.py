"""Steps as the tensors of one batch, through the checkpoint's own processor and chat template."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omnidata import media
from omnidata.adapters.hf.options import Family, LocalOptions
from omnidata.adapters.media_budget import Capabilities
from omnidata.adapters.render import Line, Turn, render_messages
from omnidata.types import Conversation, MediaRef, Part

if TYPE_CHECKING:
    import numpy.typing as npt


# A conversation's media as arrays, in the form in which transformers' processors take them.

_log = logging.getLogger(__name__)
_PIXELS_PER_TOKEN = 28 * 28
_SAMPLES_PER_TOKEN = 640
_LETTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text or a medium of one message.

    Attributes:
        kind: "text", "image", "video" or "audio".
        text: the text; empty for media.
        values: uint8 (H, W, 3) of a picture, uint8 (T, H, W, 3) of a clip, float32 (N,) of sound;
            None for text.
        role: the medium's role in the step.
        fixed: whether a picture has the size that the prompt says (`Part.size`), which the model's
            own limits do not change.
    """

    kind: str
    text: str = ""
    values: npt.NDArray[Any] | None = None
    role: str = ""
    fixed: bool = False

    @property
    def length(self) -> int:
        """About how many tokens it becomes; good enough to sort steps by."""
        if self.values is None:
            return len(self.text) // _LETTERS_PER_TOKEN
        if self.kind == "audio":
            return self.values.size // _SAMPLES_PER_TOKEN
        return self.values.size // (3 * _PIXELS_PER_TOKEN)


class Decoder:
    """Reads and decodes for one model.

    Args:
        capabilities: what the model takes.
        family: of the model.
        rate: samples per second that its feature extractor expects, in Hz.
        fps: frames per second that are read of a clip.
    """

    def __init__(
        self, capabilities: Capabilities, family: Family, *, rate: int, fps: float
    ) -> None:
        self._capabilities = capabilities
        self._family = family
        self._rate = rate
        self._fps = fps

    def decode(self, conversation: Conversation) -> tuple[list[Turn[Decoded]], Mapping[str, Any]]:
        """Return the messages, and the receipt.

        Raises:
            MediaError: a medium is missing or broken.
            UsageError: the model cannot take the conversation, and `degrade` is off.
        """
        turns, receipt = render_messages(
            conversation, self._capabilities, _text, self._render_medium
        )
        cut = [f"{line['role']}: {line['cut']}" for line in receipt["parts"] if "cut" in line]
        if cut:
            receipt["degraded"] = [*receipt.get("degraded", ()), *cut]
        return turns, receipt

    def _render_medium(
        self, part: Part, ref: MediaRef, frames: int | None, capabilities: Capabilities
    ) -> tuple[list[Decoded], Line]:
        if ref.kind == "audio":
            return self._sound(part, ref)
        held = media.hold(ref)
        if ref.kind == "image":
            return _picture(part, held, capabilities)
        if frames is not None:
            return _stills(held, frames, capabilities)
        clip = media.frames(held, fps=self._fps)
        line = _line("frames", held, clip.pixels.shape[2], clip.pixels.shape[1])
        line |= {"frames": len(clip.pixels), "fps": self._fps, "times_s": _times(clip)}
        return [Decoded("video", values=clip.pixels, role=part.role)], line

    def _sound(self, part: Part, ref: MediaRef) -> tuple[list[Decoded], Line]:
        held = ref if ref.inline is not None else media.hold(ref)
        line: Line = {"as": "waveform"}
        if kept := self._capabilities.audio_rate:
            line["rate"] = kept
            low = {"array": media.samples(held, rate=kept), "sampling_rate": kept}
            held = MediaRef("audio", ref.root, ref.path, inline=low)
        samples = media.samples(held, rate=self._rate)
        line["seconds"] = len(samples) / self._rate
        line["sha256"] = hashlib.sha256(samples.tobytes()).hexdigest()
        most = self._family.audio_window
        if most is not None and len(samples) > most:
            line["cut"] = (
                f"the model hears the first {most / self._rate:g} s of {line['seconds']:.1f} s"
            )
            line["seconds"] = most / self._rate
            _log.warning("%s: %s", media.place(ref), line["cut"])
            samples = samples[:most]
        return [Decoded("audio", values=samples, role=part.role)], line


def _text(text: str) -> Decoded:
    return Decoded("text", text)


def _picture(
    part: Part, held: media.InMemoryMedia, capabilities: Capabilities
) -> tuple[list[Decoded], Line]:
    pixels = media.image(held).pixels
    size = pixels.shape[1], pixels.shape[0]
    fitted = part.size or media.within(size, capabilities.image_size)
    line = _line("pixels", held, *fitted)
    if fitted != size:
        line |= {"scale": max(fitted) / max(size), "original": list(size)}
    sent = media.resize(pixels, fitted)
    return [Decoded("image", values=sent, fixed=part.size is not None)], line


def _stills(
    held: media.InMemoryMedia, count: int, capabilities: Capabilities
) -> tuple[list[Decoded], Line]:
    clip = media.frames(held, num_frames=count)
    size = clip.pixels.shape[2], clip.pixels.shape[1]
    fitted = media.within(size, capabilities.image_size)
    times = _times(clip)
    made: list[Decoded] = []
    for time, pixels in zip(times, clip.pixels, strict=True):
        if capabilities.frame_times:
            made.append(Decoded("text", f"[Video frame at {time:.2f} s]:"))
        made.append(Decoded("image", values=media.resize(pixels, fitted)))
    line = _line("frames", held, *fitted) | {"frames": len(times), "times_s": times}
    if fitted != size:
        line |= {"scale": max(fitted) / max(size), "original": list(size)}
    return made, line


def _line(form: str, held: media.InMemoryMedia, width: int, height: int) -> Line:
    return {"as": form, "width": width, "height": height, "sha256": held.sha256}


def _times(clip: media.Frames) -> list[float]:
    times: list[float] = (clip.pts_seconds - clip.pts_seconds[0]).round(3).tolist()
    return times


def length(turns: Sequence[Turn[Decoded]]) -> int:
    """About how many tokens the messages become."""
    return sum(part.length for turn in turns for part in turn.parts)


def size(turns: Sequence[Turn[Decoded]]) -> int:
    """Bytes of the arrays."""
    parts = (part for turn in turns for part in turn.parts)
    return sum(part.values.nbytes for part in parts if part.values is not None)


Turns = Sequence[Turn[Decoded]]
_TOKENS = ("image", "video", "audio")
_ROWS = ("input_ids", "attention_mask")


@dataclass(frozen=True, slots=True)
class Batch:
    """Some steps as the model takes them.

    Attributes:
        tensors: what the processor returned.
        how: what `generate` has to be told about them.
    """

    tensors: Any
    how: Mapping[str, Any] = field(default_factory=dict)


class Inputs:
    """Makes batches for one checkpoint.

    Args:
        processor: of the checkpoint.
        options: of the model.
    """

    def __init__(self, processor: Any, options: LocalOptions) -> None:
        self._processor = processor
        self._fps = options.fps
        self._audio_in_video = options.audio_in_video
        self._size = _video_size(processor, options)
        names = {kind: getattr(processor, f"{kind}_token", None) for kind in _TOKENS}
        self.placeholders: dict[str, str] = {kind: name for kind, name in names.items() if name}
        self._ids = {
            kind: processor.tokenizer.convert_tokens_to_ids(name)
            for kind, name in self.placeholders.items()
        }

    def forged_token(self, turns: Turns) -> str:
        """Return a token in a text that the processor would obey; empty if there is none.

        Placeholders of media are taken for media. Other control tokens are encoded as plain text,
        but where sound is interleaved with clips.
        """
        names: set[str] = set(self.placeholders.values())
        if self._audio_in_video:
            added = self._processor.tokenizer.added_tokens_decoder.values()
            names |= {token.content for token in added if token.special}
        texts = [part.text for turn in turns for part in turn.parts]
        return next((name for name in sorted(names) for text in texts if name in text), "")

    def interleaves(self, turns: Turns) -> bool:
        """Return whether the sound of the step goes between the frames of its clips.

        The model is told so for a whole batch, and would look for the sound of every clip in it.
        """
        clips = [part for turn in turns for part in turn.parts if part.kind == "video"]
        return self._audio_in_video and 0 < len(clips) == len(_clip_sounds(turns))

    def kind(self, turns: Turns) -> Hashable:
        """Return a value that the steps of one batch share."""
        _, begun = _split_prefix(turns)
        return self.interleaves(turns), begun, str(self._picture_size([turns]))

    def batch(self, steps: Sequence[Turns], *, special_tokens: bool = False) -> Batch:
        """Return the tensors for some steps, on the CPU, padded on the left.

        Clips are taken at the rate at which they were read, and tracks whole. A last turn of the
        assistant's is the beginning of the answer, with which the model goes on.

        Args:
            steps: all of one `kind`, but for the limits of pictures.
            special_tokens: whether special tokens in that beginning are such, as in the answer;
                else they are plain text, as in all other turns.
        """
        asked = [_split_prefix(turns)[0] for turns in steps]
        _, begun = _split_prefix(steps[0])
        if self.interleaves(steps[0]):
            return self._append_prefix(self._interleave_sound(asked), begun, special_tokens)
        tensors = self._processor.apply_chat_template(
            [_messages(turns) for turns in asked],
            tokenize=True,
            return_dict=True,
            add_generation_prompt=True,
            sanitize_control_tokens=True,
            processor_kwargs=self._kwargs(asked),
        )
        return self._append_prefix(Batch(tensors), begun, special_tokens)

    def _append_prefix(self, batch: Batch, begun: str, special_tokens: bool) -> Batch:
        import torch

        if not begun:
            return batch
        ids = self._processor.tokenizer.encode(
            begun, add_special_tokens=False, split_special_tokens=not special_tokens
        )
        shape = batch.tensors["input_ids"].shape
        own = {"input_ids": ids, "attention_mask": [1] * len(ids)}
        for name, values in batch.tensors.items():
            if isinstance(values, torch.Tensor) and values.shape == shape:
                # Whatever else is said of every token is 0: these stand for no medium.
                behind = values.new_tensor(own.get(name, [0] * len(ids)))
                batch.tensors[name] = torch.cat([values, behind.expand(len(values), -1)], dim=1)
        return batch

    def _interleave_sound(self, steps: Sequence[Turns]) -> Batch:
        beside: list[list[dict[str, Any]]] = []
        tracks: list[Any] = []
        clip_of: list[int | None] = []
        clips = 0
        for turns in steps:
            inside = {id(track) for _, track in _clip_sounds(turns)}
            shown = [Turn(t.role, [p for p in t.parts if id(p) not in inside]) for t in turns]
            beside.append(_messages(shown))
            pairs = {id(clip): track for clip, track in _clip_sounds(turns)}
            for part in (part for turn in shown for part in turn.parts):
                if part.kind == "video":
                    if track := pairs.get(id(part)):
                        tracks.append(track.values)
                        clip_of.append(clips)
                    clips += 1
                elif part.kind == "audio":
                    tracks.append(part.values)
                    clip_of.append(None)
        texts = self._processor.apply_chat_template(
            beside, tokenize=False, add_generation_prompt=True
        )
        tensors = self._processor(
            text=texts,
            images=_nest(beside, "image"),
            videos=_nest(beside, "video"),
            audio=tracks,
            audio_from_video_indices=clip_of,
            load_audio_from_video=True,
            **self._kwargs(steps),
        )
        return Batch(tensors, {"use_audio_in_video": True})

    def _kwargs(self, steps: Sequence[Turns]) -> dict[str, Any]:
        clips = _media(steps, "video")
        kwargs: dict[str, Any] = {
            "return_tensors": "pt",
            "padding": True,
            "padding_side": "left",
            "audio_kwargs": {"truncation": False},
        }
        if limits := self._picture_size(steps):
            kwargs["images_kwargs"] = {"size": limits}
        if not clips:
            return kwargs
        seen = [
            {
                "fps": self._fps,
                "total_num_frames": len(clip),
                "duration": len(clip) / self._fps,
                "frames_indices": list(range(len(clip))),
            }
            for clip in clips
        ]
        # Frames are chosen already: without the first of these they would be sampled once more.
        kwargs |= {"do_sample_frames": False, "fps": self._fps, "video_metadata": seen}
        if self._size:
            kwargs["videos_kwargs"] = {"size": self._size}
        return kwargs

    def _picture_size(self, steps: Sequence[Turns]) -> dict[str, int]:
        """Return limits that keep pictures at their size, since answers may be in its pixels."""
        reads = getattr(self._processor, "image_processor", None)
        own = getattr(reads, "size", None)
        areas = [
            part.values.shape[0] * part.values.shape[1]
            for turns in steps
            for turn in turns
            for part in turn.parts
            if part.fixed and part.values is not None
        ]
        if not areas or not own or not hasattr(reads, "merge_size"):
            return {}
        least = min(own["shortest_edge"], *areas)
        most = max(own["longest_edge"], *areas)
        if (least, most) == (own["shortest_edge"], own["longest_edge"]):
            return {}
        return {"shortest_edge": least, "longest_edge": most}

    def tokens(self, inputs: Batch) -> list[dict[str, int]]:
        """For each step how many tokens of its prompt are text, and of each modality."""
        counted = []
        for ids, mask in zip(*(inputs.tensors[name] for name in _ROWS), strict=True):
            media = {kind: int((ids == number).sum()) for kind, number in self._ids.items()}
            media = {kind: count for kind, count in media.items() if count}
            counted.append({"text": int(mask.sum()) - sum(media.values()), **media})
        return counted


def _split_prefix(turns: Turns) -> tuple[Turns, str]:
    if turns[-1].role != "assistant":
        return turns, ""
    return turns[:-1], "".join(part.text for part in turns[-1].parts)


def _clip_sounds(turns: Turns) -> list[tuple[Decoded, Decoded]]:
    pairs: list[tuple[Decoded, Decoded]] = []
    for turn in turns:
        clips = [part for part in turn.parts if part.kind == "video"]
        tracks = [part for part in turn.parts if part.kind == "audio" and part.role == "audio"]
        pairs += zip(clips, tracks, strict=False)
    return pairs


def _media(steps: Sequence[Turns], kind: str) -> list[Any]:
    return [
        part.values for turns in steps for turn in turns for part in turn.parts if part.kind == kind
    ]


def _nest(conversations: Sequence[Sequence[Mapping[str, Any]]], kind: str) -> Any:
    media = [
        [part[kind] for message in messages for part in message["content"] if part["type"] == kind]
        for messages in conversations
    ]
    return media if any(media) else None


def _messages(turns: Turns) -> list[dict[str, Any]]:
    return [
        {"role": turn.role, "content": [_content(part) for part in turn.parts]} for turn in turns
    ]


def _content(part: Decoded) -> dict[str, Any]:
    from PIL import Image

    if part.values is None:
        return {"type": "text", "text": part.text}
    value = Image.fromarray(part.values) if part.kind == "image" else part.values
    return {"type": part.kind, part.kind: value}


def _video_size(processor: Any, options: LocalOptions) -> dict[str, int]:
    """Return the limits of a frame's pixels.

    The processor obeys the lower limit first and rounds up, so half of the upper one is kept as
    distance.
    """
    least, most = options.min_video_pixels, options.max_video_pixels
    if not (least or most):
        return {}
    own = getattr(processor, "videos_kwargs", {}).get("size") or processor.video_processor.size
    return {
        "shortest_edge": least or min(own["shortest_edge"], (most or own["longest_edge"]) // 2),
        "longest_edge": most or max(own["longest_edge"], 2 * (least or 0)),
    }

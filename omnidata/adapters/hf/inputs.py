"""Steps as the tensors of one batch, through the checkpoint's own processor and chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omnidata.adapters.hf.decoded import Decoded
from omnidata.adapters.hf.options import LocalOptions
from omnidata.adapters.walk import Turn

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
        """Find the tokens that stand for media."""
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

    def forged(self, turns: Turns) -> str:
        """A token in a text that the processor would obey; empty if there is none.

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
        """Whether the sound of the step goes between the frames of its clips.

        The model is told so for a whole batch, and would look for the sound of every clip in it.
        """
        clips = [part for turn in turns for part in turn.parts if part.kind == "video"]
        return self._audio_in_video and 0 < len(clips) == len(_clip_sounds(turns))

    def batch(self, steps: Sequence[Turns]) -> Batch:
        """The tensors for some steps, on the CPU, padded on the left.

        Clips are taken at the rate at which they were read, and tracks whole.

        Args:
            steps: all of them interleaved, or none.
        """
        if self.interleaves(steps[0]):
            return self._interleaved(steps)
        tensors = self._processor.apply_chat_template(
            [_messages(turns) for turns in steps],
            tokenize=True,
            return_dict=True,
            add_generation_prompt=True,
            sanitize_control_tokens=True,
            processor_kwargs=self._kwargs(_media(steps, "video")),
        )
        return Batch(tensors)

    def _interleaved(self, steps: Sequence[Turns]) -> Batch:
        """The same with the sound of each clip between its frames, second by second."""
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
            images=_nested(beside, "image"),
            videos=_nested(beside, "video"),
            audio=tracks,
            audio_from_video_indices=clip_of,
            load_audio_from_video=True,
            **self._kwargs(_media(steps, "video")),
        )
        return Batch(tensors, {"use_audio_in_video": True})

    def _kwargs(self, clips: Sequence[Any]) -> dict[str, Any]:
        """What the processor is told beside the messages."""
        kwargs: dict[str, Any] = {
            "return_tensors": "pt",
            "padding": True,
            "padding_side": "left",
            "audio_kwargs": {"truncation": False},
        }
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

    def tokens(self, inputs: Batch) -> list[dict[str, int]]:
        """For each step how many tokens of its prompt are text, and of each modality."""
        counted = []
        for ids, mask in zip(*(inputs.tensors[name] for name in _ROWS), strict=True):
            media = {kind: int((ids == number).sum()) for kind, number in self._ids.items()}
            media = {kind: count for kind, count in media.items() if count}
            counted.append({"text": int(mask.sum()) - sum(media.values()), **media})
        return counted


def _clip_sounds(turns: Turns) -> list[tuple[Decoded, Decoded]]:
    """Clips with the track that was recorded with each; other sounds belong to no clip."""
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


def _nested(conversations: Sequence[Sequence[Mapping[str, Any]]], kind: str) -> Any:
    """For each conversation its media of a kind; None where no conversation has any."""
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
    """Limits of a frame's pixels, where the user gave any; the rest is the processor's own.

    The processor obeys its lower limit first, and rounds up; so it keeps half of the upper one as
    its distance.
    """
    least, most = options.min_video_pixels, options.max_video_pixels
    if not (least or most):
        return {}
    own = getattr(processor, "videos_kwargs", {}).get("size") or processor.video_processor.size
    return {
        "shortest_edge": least or min(own["shortest_edge"], (most or own["longest_edge"]) // 2),
        "longest_edge": most or max(own["longest_edge"], 2 * (least or 0)),
    }

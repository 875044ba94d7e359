"""The rows of four trainers, and what each of them can hold.

Sources: TRL 1.16 (dataset formats, `SFTTrainer`), LLaMA-Factory 0.9.5 (`data/README`, `converter`,
`mm_plugin`), ms-swift 4.6 (custom datasets, `RowPreprocessor`, `Template`), Qwen's qwen-vl-finetune
(`README`, `data_processor`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from omnidata.adapters.capabilities import ALL
from omnidata.adapters.hf.families import CONTROLS, TOKENS
from omnidata.adapters.walk import Turn
from omnidata.types import PLACE, Modality, Target

FormatName = Literal["trl", "llamafactory", "swift", "qwen-vl"]
Objects = Literal["norm1", "real"]
Row = dict[str, Any]

PLACEHOLDERS: Mapping[Modality, str] = {"image": "<image>", "video": "<video>", "audio": "<audio>"}
HOLDS: Mapping[FormatName, frozenset[Modality]] = {
    "trl": frozenset({"image"}),
    "llamafactory": ALL,
    "swift": ALL,
    "qwen-vl": frozenset({"image", "video"}),
}
"""The modalities of which a row may have files."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, or a medium that lies in the export.

    Attributes:
        kind: "text" or the modality; frames of a clip are "image".
        text: the text; empty for media.
        name: the file, relative to the export; empty for text.
        role: the medium's role in the step.
        size: width and height of a picture in pixels.
    """

    kind: Literal["text", "image", "video", "audio"]
    text: str = ""
    name: str = ""
    role: str = ""
    size: tuple[int, int] = field(default=(0, 0))


Turns = Sequence[Turn[Piece]]


def row(
    name: FormatName,
    turns: Turns,
    target: Target,
    *,
    objects: Objects | None,
    kinds: Collection[Modality],
) -> Row:
    """One step in the form of a trainer.

    Args:
        name: of the format.
        turns: the prompt.
        target: the answer.
        objects: of ms-swift: places apart from the answer, in [0, 1] ("norm1") or in pixels of the
            picture ("real"); None leaves them in the answer. The answer's are norm1000 then.
        kinds: modalities that any row of the export has; each row has a list of each.
    """
    if name == "trl":
        return _trl(turns, target.text)
    if name == "qwen-vl":
        return _qwen(turns, target.text)
    if objects is None or not target.places:
        return _tagged(turns, target.text, kinds)
    return {**_tagged(turns, target.marked, kinds), "objects": _objects(turns, target, objects)}


def _trl(turns: Turns, answer: str) -> Row:
    """Prompt and completion, of which `SFTTrainer` learns the completion alone."""
    return {
        "prompt": [
            {
                "role": turn.role,
                "content": [
                    {"type": "text", "text": piece.text}
                    if piece.kind == "text"
                    else {"type": piece.kind}
                    for piece in turn.parts
                ],
            }
            for turn in turns
        ],
        "completion": [{"role": "assistant", "content": [{"type": "text", "text": answer}]}],
        "images": _names(turns, "image"),
    }


def _tagged(turns: Turns, answer: str, kinds: Collection[Modality]) -> Row:
    """Messages of texts with placeholders, the user's turns in one; a list per modality."""
    messages = [{"role": role, "content": text} for role, text in _texts(turns)]
    media = {f"{kind}s": _names(turns, kind) for kind in PLACEHOLDERS if kind in kinds}
    return {"messages": [*messages, {"role": "assistant", "content": answer}], **media}


def _qwen(turns: Turns, answer: str) -> Row:
    """A question and an answer: whoever is not "human" in these rows is taken for the model."""
    asked = "\n\n".join(text for _, text in _texts(turns))
    said = [{"from": "human", "value": asked}, {"from": "gpt", "value": answer}]
    media = {kind: _names(turns, kind) for kind in PLACEHOLDERS}
    return {
        "conversations": said,
        **{kind: names for kind, names in sorted(media.items()) if names},
    }


def _objects(turns: Turns, target: Target, unit: Objects) -> Row:
    pictures = [piece for turn in turns for piece in turn.parts if piece.kind == "image"]
    number = [piece.role for piece in pictures].index("screenshot")
    width, height = pictures[number].size if unit == "real" else (1, 1)
    return {
        "bbox": [[x / 1000 * width, y / 1000 * height] for x, y in target.places],
        "bbox_type": unit,
        "image_id": [number] * len(target.places),
    }


def by_swift(target: Target) -> str:
    """The answer that ms-swift makes of one with `<bbox>`: whole parts of a thousand.

    Examples:
        >>> by_swift(Target("(33.4, 8)", "<bbox>", ((33.4, 8),)))
        '[33, 8]'
    """
    text = target.marked
    for x, y in target.places:
        text = text.replace(PLACE, f"[{round(x)}, {round(y)}]", 1)
    return text


def _texts(turns: Turns) -> list[tuple[str, str]]:
    """Role and text of each turn, turns of one role in one, as trainers want them to alternate."""
    found: list[tuple[str, str]] = []
    for turn in turns:
        text = "".join(
            piece.text if piece.kind == "text" else PLACEHOLDERS[piece.kind] for piece in turn.parts
        )
        if found and found[-1][0] == turn.role:
            text = f"{found.pop()[1]}\n{text}"
        found.append((turn.role, text))
    return found


def _names(turns: Turns, kind: Modality) -> list[str]:
    return [piece.name for turn in turns for piece in turn.parts if piece.kind == kind]


def mismatch(name: FormatName, made: Row) -> str:
    """Where placeholders and lists differ; empty where the trainer finds a medium for each.

    A text of the data that holds a placeholder, of the trainer or of any model that is known
    (`families.TOKENS`), makes the trainer or the model show a medium in its place.

    Args:
        name: of the format.
        made: a row of it.

    Examples:
        >>> mismatch("qwen-vl", {"conversations": [{"from": "human", "value": "Tap <image>"}]})
        '1 <image> in the texts, 0 in the list'
    """
    texts = _turns_of(name, made)
    if name == "trl":
        pictures = sum(
            part["type"] == "image" for turn in made["prompt"] for part in turn["content"]
        )
        pairs = [("<image>", pictures, made["images"])]
        pairs += [_pair(tag, texts, ()) for tag in PLACEHOLDERS.values()]
    elif name == "qwen-vl":
        pairs = [_pair(tag, texts, made.get(kind, ())) for kind, tag in PLACEHOLDERS.items()]
    else:
        pairs = [_pair(tag, texts, made.get(f"{kind}s", ())) for kind, tag in PLACEHOLDERS.items()]
        if objects := made.get("objects"):
            pairs += [_pair(PLACE, texts, objects["bbox"]), _pair("<ref-object>", texts, ())]
    pairs += [_pair(token, texts, ()) for token in sorted(TOKENS)]
    return "; ".join(
        f"{count} {tag} in the texts, {len(listed)} in the list"
        for tag, count, listed in pairs
        if count != len(listed)
    )


def control(name: FormatName, made: Row) -> str:
    """A token in a text that some model obeys (`families.CONTROLS`); empty if there is none.

    Chat templates write texts as they are, and trainers' tokenizers make one token of it: the
    turn ends there, whoever wrote it.

    Args:
        name: of the format.
        made: a row of it.

    Examples:
        >>> control("qwen-vl", {"conversations": [{"from": "human", "value": "Type <|im_end|>"}]})
        '<|im_end|>'
    """
    texts = _turns_of(name, made)
    return next((token for token in sorted(CONTROLS) for text in texts if token in text), "")


def _turns_of(name: FormatName, made: Row) -> list[str]:
    """The texts of a row, one for each turn; in TRL's a NUL stands for each medium."""
    if name == "trl":
        contents = [turn["content"] for turn in (*made["prompt"], *made["completion"])]
        return ["".join(part.get("text", "\0") for part in content) for content in contents]
    if name == "qwen-vl":
        return [turn["value"] for turn in made["conversations"]]
    return [turn["content"] for turn in made["messages"]]


def _pair(tag: str, texts: Sequence[str], listed: Sequence[Any]) -> tuple[str, int, Sequence[Any]]:
    return tag, sum(text.count(tag) for text in texts), listed

"""Steps and examples as training batches for omni models of transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from pyarrow.types import is_boolean, is_floating, is_integer, is_list, is_struct
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from omnidata.adapters.hf.checkpoint import chat_suffix
from omnidata.adapters.hf.inputs import Decoded
from omnidata.adapters.hf.model import InputPipeline
from omnidata.adapters.hf.options import parse
from omnidata.adapters.render import Turn
from omnidata.errors import DataError, MediaError, UsageError
from omnidata.loaders.columns import PLAIN, arrow_type
from omnidata.loaders.rows import RowReader
from omnidata.tasks.asking import Asking
from omnidata.training.examples import Example, as_example, refuse_predictions
from omnidata.types import Step

_IGNORED = -100
"""The label of tokens without a loss; torch's cross entropy ignores it."""


class OmniCollator:
    """Makes training batches for one checkpoint, also in DataLoader workers.

    Prompts equal those of `hf:PATH` in evaluation with the same options, token for token, as the
    same code makes them: `task.conversation(step)`, or a row of an export, through the checkpoint's
    chat template and processor, with media decoded by PyAV and Pillow. The target and the
    template's end of an answer follow. Only these tokens have labels.

    Args:
        path: a checkpoint's folder, or the name of a model that transformers finds.
        task: writes the prompts and targets of steps; None for examples only.
        options: as in evaluation with `-M key=value`.

    Attributes:
        processor: of the checkpoint.

    Raises:
        PlatformError: the libraries of the extra `local` are missing or do not load.
        UsageError: there is no such checkpoint or option, the chat template does not mark the end
            of an answer (see `omnidata.adapters.hf.checkpoint.chat_suffix`), or the prompts need a
            model's own answers.
    """

    def __init__(
        self,
        path: str | Path,
        task: Asking | None = None,
        *,
        options: Mapping[str, str] | None = None,
    ) -> None:
        refuse_predictions(task)
        self._pipeline = InputPipeline(str(path), parse(options or {}))
        self.processor = self._pipeline.processor
        self._task = task
        self._closing = self._encode(chat_suffix(self.processor, str(path)), special=True)

    def __call__(self, items: Sequence[Step | Example | Mapping[str, Any]]) -> dict[str, Any]:
        """Collate one batch, padded on the right.

        Args:
            items: steps, examples, rows of `training_table`, `training_stream` and
                `exported_table`, or rows of a Parquet repository, also `with_format("torch")`.

        Returns:
            `input_ids`, `attention_mask` and `labels`, int64 (B, tokens), labels -100 outside the
            answers; and the processor's tensors of the media.

        Raises:
            DataError: a step has no target, or one in pixels of another screenshot.
            MediaError: a medium cannot be read, or a text holds a placeholder; names the step.
            UsageError: the model cannot take a step whole, or sound is to be interleaved with
                clips and only some of the steps have both.
        """
        examples = list(map(self._example, items))
        turns = list(map(self._decode, examples))
        inputs = self._pipeline.inputs
        if len({inputs.interleaves(found) for found in turns}) > 1:
            raise UsageError(
                "some of the steps have sound to be interleaved with clips, others have not",
                where=examples[0].sample_id,
                expected="batches of steps that all have both, or audio_in_video=false",
            )
        batch = inputs.batch(turns, special_tokens=examples[0].special_tokens)
        answers = list(map(self._answer, examples))
        padding = int(self.processor.tokenizer.pad_token_id)
        return {**_with_answers(dict(batch.tensors), answers, padding), **batch.how}

    def _example(self, item: Step | Example | Mapping[str, Any]) -> Example:
        found: Step | Example = item if isinstance(item, Step | Example) else self._of_row(item)
        if isinstance(found, Example):
            return found
        if self._task is None:
            raise UsageError(
                "only its task knows what is asked about a step",
                where=found.sample_id,
                expected="OmniCollator(path, task)",
            )
        return as_example(self._task, found, longest=self._pipeline.capabilities.image_size)

    def _of_row(self, row: Mapping[str, Any]) -> Step | Example:
        held: Step | Example | None = row.get("step") or row.get("example")
        if held is not None:
            return held
        roles = (self._task.benchmark.card.roles if self._task else None) or {}
        types = {name: arrow_type(name) for name in (*PLAIN, "history_screens")}
        row = {name: _to_python(value, types.get(name), name) for name, value in row.items()}
        step = RowReader.of_row(row, roles).read(row, f"row {row.get('sample_id')}")
        has_history = self._task is None or self._task.options.get("history", "gold") != "none"
        if has_history and len(step.history_screens) < len(step.history):
            raise UsageError(
                "the row does not say the screens of earlier steps, which its prompt tells of",
                where=step.sample_id,
                expected="a row of a Parquet repository, which says them, or a step",
                remedy="omnidata convert TASK DATA OUT, and load OUT; or collate steps: "
                "task.load(DATA).steps",
            )
        return step

    def _decode(self, example: Example) -> list[Turn[Decoded]]:
        try:
            turns, receipt = self._pipeline.decode(example.prompt, example.sample_id)
        except MediaError as error:
            if example.sample_id not in error.where:
                error.where = f"{example.sample_id}: {error.where}"
            raise
        example.check(receipt)
        return turns

    def _answer(self, example: Example) -> Tensor:
        """The tokens of the answer and its end; control tokens in its text are plain text.

        Special tokens are such text, too, unless answers are made of them.
        """
        refused = dict.fromkeys(
            self._pipeline.inputs.placeholders.values(), "a placeholder for media"
        )
        if example.special_tokens:
            refused |= dict.fromkeys(self._pipeline.family.controls, "a control token of the model")
        if forged := next((name for name in refused if name in example.answer), ""):
            raise DataError(
                f"the answer holds {forged}, {refused[forged]}",
                where=example.sample_id,
                expected="texts without such tokens of the model",
                remedy="leave the step out with --exclude",
            )
        said = self._encode(example.answer, special=example.special_tokens)
        return torch.tensor([*said, *self._closing])

    def _encode(self, text: str, *, special: bool) -> list[int]:
        found: list[int] = self.processor.tokenizer.encode(
            text, add_special_tokens=False, split_special_tokens=not special
        )
        return found


def _with_answers(
    tensors: dict[str, Any], answers: Sequence[Tensor], padding: int
) -> dict[str, Any]:
    """Prompts padded on the left become prompts and answers padded on the right.

    Whatever the processor says of every token is 0 for the answers': they stand for no medium.
    """
    ids, mask = tensors["input_ids"], tensors["attention_mask"].bool()
    made = dict(tensors)
    for name, values in tensors.items():
        if not isinstance(values, Tensor) or values.shape != ids.shape:
            continue
        more = answers
        if name != "input_ids":
            more = [values.new_full(each.shape, int(name == "attention_mask")) for each in answers]
        rows = [
            torch.cat([row[kept], behind])
            for row, kept, behind in zip(values, mask, more, strict=True)
        ]
        made[name] = _right(rows, padding if name == "input_ids" else 0)
    labels = [
        torch.cat([answer.new_full((int(kept.sum()),), _IGNORED), answer])
        for kept, answer in zip(mask, answers, strict=True)
    ]
    made["labels"] = _right(labels, _IGNORED)
    return made


def _right(rows: Sequence[Tensor], padding: int) -> Tensor:
    return pad_sequence(list(rows), batch_first=True, padding_value=padding)


# Rows of `with_format("torch")` and the like have tensors or arrays in place of Python's numbers.


def _to_python(value: Any, kind: pa.DataType | None, name: str) -> Any:
    """Return a value of a column in Python's numbers.

    Raises:
        UsageError: the format has rounded a coordinate.
    """
    if isinstance(value, Mapping):
        types = {field.name: field.type for field in kind} if kind and is_struct(kind) else {}
        return {key: _to_python(held, types.get(key), name) for key, held in value.items()}
    if isinstance(value, np.ndarray) and value.dtype == object:  # a list, in numpy's format
        value = value.tolist()
    if isinstance(value, list | tuple):
        item = kind.value_type if kind and is_list(kind) else None
        return [_to_python(held, item, name) for held in value]
    if not hasattr(value, "tolist") or value.ndim:
        return value  # no number, or a medium that is decoded
    plain = value.tolist()
    if plain != plain:  # how a format spells an absent number
        return None
    if kind is None:
        return plain
    if is_floating(kind) and value.dtype.itemsize < 8 and not plain.is_integer():
        raise UsageError(
            f"the column {name} holds numbers that a format rounded ({value.dtype})",
            where="a row of with_format(...)",
            expected="the coordinates as they were loaded",
            remedy='leave with_format out, or use rows.with_format("torch", dtype=torch.float64)',
        )
    if is_integer(kind):
        return int(plain)
    return bool(plain) if is_boolean(kind) else plain

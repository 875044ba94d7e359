"""Tensors in, texts out."""

from __future__ import annotations

import gc
import threading
from typing import Any

import msgspec
import torch
from transformers import StoppingCriteria

from omnidata.adapters.hf.inputs import Batch
from omnidata.types import Completion, GenerationParams

_NO_MEMORY = ("can't allocate memory", "out of memory", "_STATUS_ALLOC_FAILED")


def generate(
    model: Any,
    processor: Any,
    inputs: Batch,
    params: GenerationParams,
    stop: threading.Event,
) -> list[Completion]:
    """Decode one batch.

    Greedy decoding leaves out the checkpoint's own temperature, top_p and top_k; everything else of
    its `generation_config.json` holds.

    Args:
        model: as `checkpoint.load_model` made it.
        processor: of the same checkpoint.
        inputs: as `Inputs.batch` made them.
        params: how to decode.
        stop: ends the answers after the next token once it is set; nobody wants them any more.

    Returns:
        For each step its text and usage; "truncated" where the limit came before the end.
    """
    ends = _ends(model, processor)
    sampled = bool(params.temperature)
    how: dict[str, Any] = {"do_sample": sampled}
    if sampled:
        how["temperature"] = params.temperature
        torch.manual_seed(params.seed or 0)
    else:
        how |= {"temperature": None, "top_p": None, "top_k": None}
    if params.stop:
        how |= {"stop_strings": list(params.stop), "tokenizer": processor.tokenizer}
    placed = inputs.tensors.to(model.device, dtype=model.dtype)
    with torch.inference_mode():
        found = model.generate(
            **placed,
            max_new_tokens=params.max_new_tokens,
            eos_token_id=ends,
            pad_token_id=processor.tokenizer.pad_token_id,
            stopping_criteria=[_Stop(stop)],
            **how,
            **inputs.how,
        )
    answers = found[:, placed["input_ids"].shape[1] :].cpu()
    rows = [_until_end(row, ends) if params.special_tokens else row for row in answers]
    texts = processor.batch_decode(rows, skip_special_tokens=not params.special_tokens)
    prompts = inputs.tensors["attention_mask"].sum(dim=1).tolist()
    return [
        _completion(row, text, int(prompt), ends, processor.tokenizer.pad_token_id, params)
        for row, text, prompt in zip(answers, texts, prompts, strict=True)
    ]


def _completion(
    row: torch.Tensor,
    said: str,
    prompt: int,
    ends: list[int],
    padding: int,
    params: GenerationParams,
) -> Completion:
    text = min((said.partition(stop)[0] for stop in params.stop), key=len, default=said)
    last = torch.isin(row, torch.tensor(ends)).nonzero()
    ended = len(last) > 0
    new = int(last[0]) + 1 if ended else len(row)
    if text != said:
        rest = (row == padding).nonzero()
        ended, new = True, int(rest[0]) if len(rest) else len(row)
    completion = Completion(text=text, usage={"prompt_tokens": prompt, "completion_tokens": new})
    if ended:
        return completion
    return msgspec.structs.replace(
        completion, delivery="truncated", error=f"the answer was cut at {len(row)} tokens"
    )


def _until_end(row: torch.Tensor, ends: list[int]) -> torch.Tensor:
    last = torch.isin(row, torch.tensor(ends)).nonzero()
    return row[: int(last[0])] if len(last) else row


class _Stop(StoppingCriteria):  # type: ignore[misc]  # theirs is not read
    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        return torch.full((len(input_ids),), self._stop.is_set(), device=input_ids.device)


def _ends(model: Any, processor: Any) -> list[int]:
    """Return the tokens that end an answer; full Qwen checkpoints list them on the outer class."""
    own = model.generation_config.eos_token_id
    ends = set(own if isinstance(own, list) else [own]) | {processor.tokenizer.eos_token_id}
    return sorted(ends - {None})


def is_out_of_memory(error: Exception) -> bool:
    """Return whether a smaller batch may succeed."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)
    )


def is_device_lost(error: Exception) -> bool:
    """Return whether the GPU is lost until the process is started again."""
    return isinstance(error, torch.AcceleratorError) and not is_out_of_memory(error)


def free_memory() -> None:
    """Give back what nobody refers to any more."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def peak_memory() -> int | None:
    """Bytes of the GPUs' memory that were in use at most, all together; None without a GPU."""
    if not torch.cuda.is_available():
        return None
    return sum(torch.cuda.max_memory_allocated(index) for index in range(torch.cuda.device_count()))

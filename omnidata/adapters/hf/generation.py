"""Tensors in, texts out."""

from __future__ import annotations

import gc
import threading
from typing import Any

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
    texts = processor.batch_decode(answers, skip_special_tokens=True)
    prompts = inputs.tensors["attention_mask"].sum(dim=1).tolist()
    completions = []
    for row, text, prompt in zip(answers, texts, prompts, strict=True):
        stops = torch.isin(row, torch.tensor(ends)).nonzero()
        ended = len(stops) > 0
        new = int(stops[0]) + 1 if ended else len(row)
        completion = Completion(
            text=text, usage={"prompt_tokens": int(prompt), "completion_tokens": new}
        )
        if not ended:
            completion = Completion(
                delivery="truncated",
                text=text,
                error=f"the answer was cut at {len(row)} tokens",
                usage=completion.usage,
            )
        completions.append(completion)
    return completions


class _Stop(StoppingCriteria):  # type: ignore[misc]  # theirs is not read
    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        return torch.full((len(input_ids),), self._stop.is_set(), device=input_ids.device)


def _ends(model: Any, processor: Any) -> list[int]:
    """The tokens that end an answer.

    The thinkers of full Qwen checkpoints do not say it themselves: the class around them does.
    """
    own = model.generation_config.eos_token_id
    ends = set(own if isinstance(own, list) else [own]) | {processor.tokenizer.eos_token_id}
    return sorted(ends - {None})


def is_out_of_memory(error: Exception) -> bool:
    """Whether a smaller batch may succeed."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)
    )


def is_device_lost(error: Exception) -> bool:
    """Whether the GPU answers nobody any more until the process is started again."""
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

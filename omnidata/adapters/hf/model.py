"""A model of transformers on this machine."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from typing import Any

import msgspec

from omnidata import jsontext
from omnidata.adapters.base import Model
from omnidata.adapters.hf import checkpoint
from omnidata.adapters.hf.inputs import Batch, Decoded, Decoder, Inputs, Turns, length, size
from omnidata.adapters.hf.options import LocalOptions
from omnidata.adapters.media_budget import Capabilities, lacking
from omnidata.adapters.render import RATE, Line, Turn
from omnidata.errors import CallError, MediaError
from omnidata.types import Completion, Conversation, GenerationParams, Prepared, Request

# What stands before a local model: a conversation's media are decoded and become its tensors.


class InputPipeline:
    """Evaluation and training read a checkpoint's prompts through one of these.

    Args:
        path: a folder, or the name of a model that transformers finds.
        options: of the model.

    Attributes:
        kind: the checkpoint's `model_type`.
        family: what is known of that type.
        capabilities: what the model takes.
        processor: of the checkpoint.
        inputs: makes the tensors.

    Raises:
        PlatformError: the libraries of the extra `local` are missing or do not load.
        UsageError: there is no such checkpoint, nobody knows its type, or an option is not for it.
    """

    def __init__(self, path: str, options: LocalOptions) -> None:
        self.kind, self.family = checkpoint.recognise(path, options)
        native = options.video == "native" and "video" in self.family.accepts
        self.capabilities = Capabilities(
            accepts=self.family.accepts | {"video"},  # clips may be shown as frames
            video="native" if native else "frames",
            frames=options.frames,
            frame_times=options.frame_times,
            max_images=options.max_images,
            image_size=options.image_size,
            audio_rate=options.audio_rate,
            degrade=options.degrade,
        )
        self.processor: Any = checkpoint.load_processor(path, options)
        self.inputs = Inputs(self.processor, options)
        rate = checkpoint.sampling_rate(self.processor) or RATE
        self._decoder = Decoder(self.capabilities, self.family, rate=rate, fps=options.fps)

    def decode(
        self, conversation: Conversation, sample_id: str
    ) -> tuple[list[Turn[Decoded]], Line]:
        """Return the messages with their media as arrays, and the receipt.

        Raises:
            MediaError: a medium cannot be read, or a text holds what the processor would take for
                one.
            UsageError: the model cannot take the conversation, and `degrade` is off.
        """
        turns, receipt = self._decoder.decode(conversation)
        if forged := self.inputs.forged_token(turns):
            raise MediaError(
                f"a text of the prompt holds {forged}, a placeholder for media",
                where=sample_id,
                expected="texts without the placeholders of the model",
                remedy="leave the step out with --exclude",
                fault="refused",
            )
        return turns, dict(receipt)


_log = logging.getLogger(__name__)
_VERSION = 1


class LocalModel(Model):
    """A checkpoint behind transformers.

    Three stages run side by side: media are decoded in the engine's threads, batches are made by
    the processor in a thread, and the model generates in another, so that it never waits for what
    could have been done before. Weights are loaded with the first batch.

    Args:
        path: a folder, or the name of a model that transformers finds.
        options: as given with `-M`.

    Raises:
        PlatformError: the libraries of the extra `local` are missing or do not load.
        UsageError: there is no such checkpoint, nobody knows its type, or an option is not for it.
    """

    concurrency = 2  # one batch is generated while the next is made

    def __init__(self, path: str, options: LocalOptions) -> None:
        self.name = f"hf:{path}"
        self.path = path
        self.options = options
        self.params = options.params
        self.max_batch = options.batch_size
        self._pipeline = InputPipeline(path, options)
        self.capabilities = self._pipeline.capabilities
        self.accepts = self.capabilities.accepts
        self._inputs = self._pipeline.inputs
        said = msgspec.structs.asdict(options)
        for name in ("temperature", "max_new_tokens", "seed"):
            said.pop(name)
        kind = self._pipeline.kind
        self.settings: Mapping[str, Any] = {"transformers": _VERSION, "type": kind, **said}
        self._model: Any = None
        self._most = options.batch_size
        self._making = ThreadPoolExecutor(1, "omnidata-processor")
        self._generating = ThreadPoolExecutor(1, "omnidata-model")
        self.busy_s = self._load_s = 0.0
        self._began = self._ended = 0.0
        self._new_tokens = self._steps = 0

    def unsupported_reason(self, conversation: Conversation) -> str:
        """Return why the model cannot take the whole conversation; empty if it may take a part."""
        return "" if self.options.degrade else lacking(conversation, self.capabilities)

    def prepare(self, request: Request) -> Prepared:
        """Decode the media; runs in a thread.

        Raises:
            MediaError: a medium cannot be read, or a text holds what the processor would take for
                one.
        """
        turns, receipt = self._pipeline.decode(request.conversation, request.sample_id)
        asked = [
            self.name,
            dict(self.settings),
            [[turn.role, [(part.kind, part.text) for part in turn.parts]] for turn in turns],
            [line.get("sha256") for line in receipt["parts"]],
        ]
        sized = any(part.fixed for turn in turns for part in turn.parts)
        if sized:  # else the settings tell the sizes
            asked.append([(line.get("width"), line.get("height")) for line in receipt["parts"]])
        digest = hashlib.sha256(jsontext.encode(asked)).hexdigest()
        return Prepared(request, turns, size(turns), receipt, digest, length(turns))

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> Sequence[Completion]:
        """Answer a batch; one that does not fit into memory is halved until it does.

        Raises:
            CallError: the model cannot be loaded, or its device has failed.
        """
        answers: dict[int, Completion] = {}
        kinds = [self._inputs.kind(item.payload) for item in batch]
        for kind in dict.fromkeys(kinds):
            chosen = [number for number, found in enumerate(kinds) if found == kind]
            made = await self._in_parts([batch[number] for number in chosen], params)
            answers |= zip(chosen, made, strict=True)
        return [answers[number] for number in range(len(batch))]

    async def _in_parts(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        from omnidata.adapters.hf.generation import free_memory

        answers: list[Completion] = []
        size = self._most
        while len(answers) < len(batch):
            part = batch[len(answers) : len(answers) + size]
            made, full = await self._try_batch(part, params)
            # Only here: while an error is handled it holds the tensors that took the memory.
            if full:
                self._most = min(self._most, -(-len(part) // 2))
                free_memory()
                _log.warning("out of memory with %d steps; now %d at a time", len(part), self._most)
            answers += made
            size = self._most if made else -(-len(part) // 2)
        return answers

    async def _try_batch(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> tuple[list[Completion], bool]:
        from omnidata.adapters.hf.generation import is_device_lost, is_out_of_memory

        try:
            answers = await self._once(batch, params)
        except CallError:
            raise
        except Exception as error:  # of transformers or torch, which have no common kind of error
            if is_device_lost(error):
                raise CallError(
                    f"the device failed ({type(error).__name__}: {_first_line(error)})",
                    where=self.name,
                    transient=False,
                    hopeless=True,
                ) from error
            if len(batch) == 1:
                return [_failure(error, batch[0])], False
            return [], is_out_of_memory(error)
        return [
            msgspec.structs.replace(answer, receipt={**item.receipt, **answer.receipt})
            for item, answer in zip(batch, answers, strict=True)
        ], False

    async def _once(self, batch: Sequence[Prepared], params: GenerationParams) -> list[Completion]:
        """Make the batch in one thread and generate in the other; a cancellation ends at once."""
        loop = asyncio.get_running_loop()
        steps: list[Turns] = [item.payload for item in batch]
        stop = threading.Event()
        try:
            make = partial(self._inputs.batch, special_tokens=params.special_tokens)
            inputs = await loop.run_in_executor(self._making, make, steps)
            work = partial(self._generate, inputs, params, stop)
            return await loop.run_in_executor(self._generating, work)
        except asyncio.CancelledError:
            stop.set()  # a thread cannot be ended, and Python waits for it before it exits
            raise

    def _generate(
        self, inputs: Batch, params: GenerationParams, stop: threading.Event
    ) -> list[Completion]:
        from omnidata.adapters.hf.generation import generate

        if self._model is None:
            began = time.perf_counter()
            self._model = checkpoint.load_model(self.path, self.options, self._pipeline.family)
            self._began = time.perf_counter()
            self._load_s = self._began - began
        began = time.perf_counter()
        answers = generate(self._model, self._pipeline.processor, inputs, params, stop)
        self._ended = time.perf_counter()
        took = self._ended - began
        self.busy_s += took
        self._steps += len(answers)
        self._new_tokens += sum(answer.usage["completion_tokens"] for answer in answers)
        return [
            msgspec.structs.replace(
                answer,
                latency_s=took,
                receipt={"tokens": tokens, "batch": len(answers)},
            )
            for answer, tokens in zip(answers, self._inputs.tokens(inputs), strict=True)
        ]

    async def close(self) -> None:
        """Let the threads go; what is generated is not waited for."""
        for pool in (self._making, self._generating):
            pool.shutdown(wait=False, cancel_futures=True)

    def run_metadata(self) -> Mapping[str, Any]:
        """Shares and rates of the time since the weights were loaded."""
        from omnidata.adapters.hf.generation import peak_memory

        whole = self._ended - self._began
        if whole <= 0:
            return {}
        return {
            "versions": {name: version(name) for name in ("torch", "transformers")},
            "device": str(self._model.device),
            "dtype": str(self._model.dtype).removeprefix("torch."),
            "batch_size": self._most,
            "load_s": round(self._load_s, 3),
            "busy_s": round(self.busy_s, 3),
            "busy_share": round(self.busy_s / whole, 4),
            "steps_per_s": round(self._steps / whole, 3),
            "new_tokens_per_s": round(self._new_tokens / whole, 3),
            "peak_memory_bytes": peak_memory(),
        }


def _failure(error: Exception, item: Prepared) -> Completion:
    return Completion(
        delivery="api_error",
        error=f"{item.request.sample_id}: transformers failed "
        f"({type(error).__name__}: {_first_line(error)})",
        receipt=dict(item.receipt),
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]

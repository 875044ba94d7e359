"""A model behind HTTP: what all wire formats share."""

from __future__ import annotations

import hashlib
import logging
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from omnidata import jsontext
from omnidata.adapters.addresses import secrets_in
from omnidata.adapters.base import Model, RenderedMessage
from omnidata.adapters.finish_reasons import is_another
from omnidata.adapters.keys import Key
from omnidata.adapters.media_budget import arrange
from omnidata.adapters.presets import Preset
from omnidata.adapters.render import lacking, render
from omnidata.adapters.token_usage import counted, tokens
from omnidata.errors import UsageError
from omnidata.types import (
    Completion,
    Conversation,
    GenerationParams,
    Modality,
    Prepared,
    Request,
)

_log = logging.getLogger(__name__)
_LONGEST_ERROR = 1000


class ApiModel(Model):
    """A preset behind a wire format; a subclass says how a request is written and sent.

    Attributes:
        wire: the name of the wire format.
        version: goes up with every change to what the wire format sends, so that a kept answer is
            never taken for one to another request.
        ours: fields of a request that `extra_body` may not say, inner ones behind a dot.

    Args:
        preset: the row that describes the model.
        key: the secret that the server asks for.

    Raises:
        UsageError: `extra_body` holds what the request says elsewhere.
    """

    wire: ClassVar[str]
    version: ClassVar[int] = 1
    ours: ClassVar[frozenset[str]] = frozenset()
    accepts: frozenset[Modality]
    concurrency = 16
    timeout_s = 300.0

    def __init__(self, preset: Preset, key: Key) -> None:
        for name in sorted(self.ours & _names(preset.extra_body)):
            raise UsageError(
                f'"{name}" is not for extra_body: it is part of every request',
                where=f"--model {preset.spec}",
                remedy="use the options temperature, max_new_tokens and seed",
            )
        self.preset = preset
        self.key = key.also(secrets_in(preset.base_url))
        self.name = preset.spec
        self._warned = False
        self.params = preset.params
        self.capabilities = preset.capabilities
        self.accepts = self.capabilities.accepts
        settings = {**preset.settings, "wire": f"{self.wire}-{self.version}"}
        if preset.base_url:
            settings["base_url"] = self.key.redact(preset.base_url)
        self.settings: Mapping[str, Any] = settings

    def unsupported_reason(self, conversation: Conversation) -> str:
        """What of the conversation the model cannot take, unless it may be left out."""
        if self.capabilities.degrade:
            return ""
        arranged, _ = arrange(conversation, self.preset.layout, self.preset.release)
        return lacking(arranged, self.capabilities)

    def prepare(self, request: Request) -> Prepared:
        """Render the conversation and write the request; runs in a thread.

        Raises:
            MediaError: a medium cannot be read.
        """
        arranged, dropped = arrange(request.conversation, self.preset.layout, self.preset.release)
        messages, receipt = render(arranged, self.capabilities)
        if dropped:
            reasons = [f"{part['role']}: {part['dropped']}" for part in dropped]
            receipt = {
                **receipt,
                "parts": [*receipt["parts"], *dropped],
                "degraded": [*receipt.get("degraded", ()), *reasons],
            }
        payload, size = self.write(messages)
        return Prepared(request, payload, size, receipt, self._digest(messages))

    def _digest(self, messages: Sequence[RenderedMessage]) -> str:
        parts = [
            [
                message.role,
                [(part.kind, part.text, part.mime, part.sha256) for part in message.parts],
            ]
            for message in messages
        ]
        asked = [self.version, self.preset.asked, parts]
        return hashlib.sha256(jsontext.encode(asked)).hexdigest()

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> Sequence[Completion]:
        """Send one request.

        Raises:
            CallError: no answer came; the key is not in its message.
        """
        [prepared] = batch
        began = time.perf_counter()
        with self.key.hidden():
            answer = await self.send(prepared.payload, params)
        usage = counted(answer.usage, self.key.redact)
        said: dict[str, Any] = {"tokens": counts} if (counts := tokens(usage)) else {}
        model = answer.receipt.get("model") or self.preset.model
        if model != self.preset.model:
            said["model"] = model
            self._warn_of(model)
        return [
            msgspec.structs.replace(
                answer,
                text=self.key.redact(answer.text),
                error=self.key.redact(answer.error)[:_LONGEST_ERROR],
                usage=usage,
                latency_s=time.perf_counter() - began,
                receipt={**prepared.receipt, **said},
            )
        ]

    def _warn_of(self, model: str) -> None:
        """Say once that another model answers than was asked for."""
        if self._warned or not is_another(self.preset.model, model):
            return
        self._warned = True
        _log.warning(
            "%s: the server says that %r answered; the receipts of such answers name it",
            self.name,
            model,
        )

    @abstractmethod
    def write(self, messages: Sequence[RenderedMessage]) -> tuple[Any, int]:
        """The request without its generation settings, encoded as far as can be, and its bytes."""

    @abstractmethod
    async def send(self, payload: Any, params: GenerationParams) -> Completion:
        """One attempt; the usage is as the server has it, as is the `model` of the receipt.

        Raises:
            CallError: no answer came.
        """


def _names(body: Mapping[str, Any]) -> set[str]:
    nested = {name: value for name, value in body.items() if isinstance(value, dict)}
    return body.keys() | {f"{name}.{key}" for name, value in nested.items() for key in value}

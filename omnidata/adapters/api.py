"""Models behind HTTP: the base class of all wire formats."""

from __future__ import annotations

import hashlib
import logging
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import msgspec
from multidict import CIMultiDict

from omnidata import jsontext
from omnidata.adapters.answers import is_another, token_usage, tokens_by_modality
from omnidata.adapters.base import Model
from omnidata.adapters.keys import Key, credentials_in, secrets_in
from omnidata.adapters.media_budget import Capabilities, Layout, ReleaseRules, arrange, lacking
from omnidata.adapters.render import RenderedMessage, render
from omnidata.errors import UsageError
from omnidata.types import Completion, Conversation, GenerationParams, Modality, Prepared, Request

if TYPE_CHECKING:
    import aiohttp

    from omnidata.adapters.http import BoundedResponse

_log = logging.getLogger(__name__)
_LONGEST_ERROR = 1000


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options that one wire format alone has; none by default."""


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A model, ready to be asked: its row, the options of the command line, and the defaults.

    Attributes:
        spec: the SPEC that names it.
        wire: the name of the wire format.
        model: the name that the server knows it by.
        base_url: the server's address without a slash at the end; empty for a wire format's own.
        key_env: the environment variable that holds the key; empty if none does.
        key_optional: whether the server may do without a key.
        layout: "paper", or "release" for what the benchmark's own adapter sent.
        release: the rules by which `layout=release` rearranges messages.
        extra_body: merged into the request at the top level.
        capabilities: what it takes.
        params: how it decodes unless the caller says otherwise.
        own: the options of its wire format.
    """

    spec: str
    wire: str
    model: str
    base_url: str = ""
    key_env: str = ""
    key_optional: bool = False
    layout: Layout = "paper"
    release: ReleaseRules = ReleaseRules()
    extra_body: dict[str, Any] = {}
    capabilities: Capabilities = Capabilities()
    params: GenerationParams = GenerationParams()
    own: Options = Options()

    @property
    def wire_settings(self) -> dict[str, Any]:
        """Return the settings that the content of a rendered conversation does not show."""
        names = ("wire", "model", "base_url", "layout", "extra_body")
        fields = {name: getattr(self, name) for name in names} | msgspec.structs.asdict(self.own)
        return _json(fields | ({"release": self.release} if self.layout == "release" else {}))

    @property
    def settings(self) -> dict[str, Any]:
        """Return all that answers depend on beside the generation settings, as JSON values."""
        names = Capabilities.__dataclass_fields__
        fields = {name: getattr(self.capabilities, name) for name in names}
        fields["accepts"] = sorted(self.capabilities.accepts)
        return self.wire_settings | {"capabilities": _json(fields)}


def _json(fields: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(fields))
    return values


class Headers(CIMultiDict[str]):
    """Headers of requests, among them keys: as text it has their names alone."""

    def __repr__(self) -> str:
        return f"Headers({', '.join(self)})"


class ApiModel(Model):
    """A preset behind a wire format; a subclass declares the format, and writes and sends requests.

    Attributes:
        wire: the name of the wire format.
        version: goes up with every change to what the wire format sends, so that a kept answer is
            never taken for one to another request.
        spec_row: the row of the model that SPEC NAME:MODEL names, without wire and model; empty if
            there is no such SPEC.
        options: those that no other wire format has, with their defaults.
        needs_address: whether a row must name a server.
        ours: fields of a request that `extra_body` may not say, inner ones behind a dot.
        controls: as in `Model`: what requests have fields for.
        tools: names of the provider's own tools that a prompt may have (`Capabilities.tools`).
        own: the options of `options` that this model has.
        url: where requests are sent.

    Args:
        preset: the row that describes the model.
        key: the secret that the server asks for.

    Raises:
        UsageError: `extra_body` holds what the request says elsewhere, or there is a generation
            setting that the request has no field for.
    """

    wire: ClassVar[str]
    version: ClassVar[int] = 1
    spec_row: ClassVar[Mapping[str, Any]] = {}
    options: ClassVar[type[Options]] = Options
    needs_address: ClassVar[bool] = True
    ours: ClassVar[frozenset[str]] = frozenset()
    tools: ClassVar[frozenset[str]] = frozenset()
    own: Any
    accepts: frozenset[Modality]
    controls: frozenset[str] = frozenset({"temperature", "max_new_tokens", "seed", "stop"})
    concurrency = 16
    timeout_s = 300.0

    _session: aiohttp.ClientSession | None = None

    def __init__(self, preset: Preset, key: Key) -> None:
        for name in sorted(self.ours & _names(preset.extra_body)):
            raise UsageError(
                f'"{name}" is not for extra_body: it is part of every request',
                where=f"--model {preset.spec}",
                remedy="use the options temperature, max_new_tokens and seed",
            )
        for name in ("temperature", "max_new_tokens", "seed"):  # the others are no options
            if getattr(preset.params, name) is not None and name not in self.controls:
                raise UsageError(
                    f'the wire format "{self.wire}" cannot send {name}',
                    where=f"--model {preset.spec}",
                    expected=f"{name}=none, to use the server's default",
                )
        self.preset = preset
        self.own = preset.own
        self._wire_settings = preset.wire_settings
        hidden = (*secrets_in(preset.base_url), *credentials_in(preset.extra_body))
        self.key = key.also(hidden)
        self.name = preset.spec
        self._warned = False
        self.params = preset.params
        self.capabilities = replace(preset.capabilities, tools=self.tools)
        self.accepts = self.capabilities.accepts
        self.url = preset.base_url
        settings = {**preset.settings, "wire": f"{self.wire}-{self.version}"}
        if preset.base_url:
            settings["base_url"] = self.key.redact(preset.base_url)
        self.settings: Mapping[str, Any] = settings

    @classmethod
    def is_providers_own(cls, url: str) -> bool:
        """Return whether NAME:MODEL needs a key at an address: whether the provider is there."""
        return True

    @classmethod
    def own_options(cls, given: Mapping[str, Any], url: str) -> Options:
        """Return the wire format's own options for a server.

        Args:
            given: those that are set, by name.
            url: the server's address.
        """
        return cls.options(**given)

    def unsupported_reason(self, conversation: Conversation) -> str:
        """Return why the model cannot take the whole conversation; empty if it may take a part."""
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
        content = jsontext.encode([self.version, self._wire_settings, parts])
        return hashlib.sha256(content).hexdigest()

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> Sequence[Completion]:
        """Send one request.

        Raises:
            CallError: no answer came; the key is not in its message.
        """
        [prepared] = batch
        began = time.perf_counter()
        with self.key.hide_in_errors():
            answer = await self.send(prepared.payload, params)
        return [self.finish_answer(answer, prepared.receipt, time.perf_counter() - began)]

    def finish_answer(
        self, answer: Completion, receipt: Mapping[str, Any], latency_s: float = 0.0
    ) -> Completion:
        """Return an answer as a run records it.

        Args:
            answer: as it was read; the usage as the server has it, as is the `model` of its
                receipt.
            receipt: of the request.
            latency_s: seconds that it took; 0 where nobody waited for it.
        """
        usage = token_usage(answer.usage, self.key.redact)
        said: dict[str, Any] = {"tokens": counts} if (counts := tokens_by_modality(usage)) else {}
        model = answer.receipt.get("model") or self.preset.model
        if model != self.preset.model:
            said["model"] = model
            if not self._warned and is_another(self.preset.model, model):
                self._warned = True
                _log.warning(
                    "%s: the server says that %r answered; the receipts of such answers name it",
                    self.name,
                    model,
                )
        return msgspec.structs.replace(
            answer,
            text=self.key.redact(answer.text),
            error=self.key.redact(answer.error)[:_LONGEST_ERROR],
            usage=usage,
            latency_s=latency_s,
            receipt={**receipt, **said},
        )

    def session(self) -> aiohttp.ClientSession:
        """Return the connections to the server, opened by the first call in the event loop."""
        if self._session is None:
            from omnidata.adapters.http import open_session  # aiohttp takes long to import

            self._session = open_session(self.key, self.url)
        return self._session

    async def post(self, data: Any, headers: Mapping[str, str]) -> tuple[str, str]:
        """Send a body; return the answer's text, and its place for errors.

        Raises:
            CallError: no whole answer came.
        """
        async with self.session().post(self.url, data=data, headers=headers) as response:
            return await response.text(), cast("BoundedResponse", response).where

    @cached_property
    def common_headers(self) -> Headers:
        """Headers of every request; by default a key as a bearer token.

        They are not the session's: aiohttp sends those to proxies as well.
        """
        return Headers({"Authorization": f"Bearer {self.key.value}"} if self.key else {})

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    @abstractmethod
    def write(self, messages: Sequence[RenderedMessage]) -> tuple[Any, int]:
        """Return the request without its generation settings, and its size in bytes."""

    @abstractmethod
    async def send(self, payload: Any, params: GenerationParams) -> Completion:
        """Send one request; usage and the `model` of the receipt are as the server has them.

        Raises:
            CallError: no answer came.
        """


def _names(body: Mapping[str, Any]) -> set[str]:
    nested = {name: value for name, value in body.items() if isinstance(value, dict)}
    return body.keys() | {f"{name}.{key}" for name, value in nested.items() for key in value}

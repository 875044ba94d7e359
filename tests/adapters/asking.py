"""One question to a model behind Chat Completions."""

from __future__ import annotations

import asyncio

from omnidata.adapters import presets
from omnidata.adapters.keys import Key
from omnidata.adapters.openai_chat import OpenAIChat
from omnidata.types import Completion, GenerationParams, Request
from tests.adapters.servers import Server


def model(server: Server, key: str = "", **options: str) -> OpenAIChat:
    """The model "m" of a server; options are as given with -M."""
    spec = presets.find("openai:m", options, base_url=f"{server.url}/v1")
    assert spec is not None
    return OpenAIChat(spec, Key(key))


def ask(
    adapter: OpenAIChat, request: Request, params: GenerationParams | None = None
) -> Completion:
    """Prepare, send once, close."""

    async def once() -> Completion:
        try:
            ready = [adapter.prepare(request)]
            [answer] = await adapter.generate(ready, params or adapter.params)
            return answer
        finally:
            await adapter.close()

    return asyncio.run(once())

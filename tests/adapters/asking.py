"""One question to a model behind a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from omnidata.adapters import get_adapter
from omnidata.types import Adapter, Completion, GenerationParams, Message, Part, Request
from tests.adapters.servers import Server

GOAL = Request("a", (Message("user", (Part("text", "Goal"),)),))


def keyed(spec: str, url: str, key: str, options: Mapping[str, str] = {}) -> Adapter:
    """The model at an address, which has its key from a file."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "key")
        file.write_text(key)
        told = file if key else None
        return get_adapter(spec, None, (), options=options, base_url=url, key_file=told)


def model(server: Server, key: str = "", **options: str) -> Adapter:
    """The model "m" of a server; options are as given with -M."""
    return keyed("openai:m", f"{server.url}/v1", key, options)


def ask(
    adapter: Adapter, request: Request = GOAL, params: GenerationParams | None = None
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

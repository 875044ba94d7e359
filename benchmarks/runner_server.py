"""A model that takes its time: Chat Completions on 127.0.0.1, in a process of its own.

    python benchmarks/runner_server.py DELAY_S

Prints its port. GET /stats says what it saw since it was last asked, and forgets it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from aiohttp import web

ANSWER = {
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {
                "role": "assistant",
                "content": json.dumps({"action_type": 0, "coordinate": [500, 500]}),
            },
        }
    ],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020},
}


class Model:
    """Reads requests to the end, waits, answers always the same."""

    def __init__(self, delay_s: float) -> None:
        """Nobody has asked."""
        self.delay_s = delay_s
        self.under_way = 0
        self.forget()

    def forget(self) -> None:
        """Begin the statistics anew."""
        self.requests = self.bytes = self.most = 0
        self.busy_s = 0.0
        self.first = 0.0
        self.ends: list[float] = []

    async def answer(self, request: web.Request) -> web.Response:
        """One request."""
        self.first = self.first or time.time()
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        async for chunk in request.content.iter_any():
            self.bytes += len(chunk)
        began = time.perf_counter()
        await asyncio.sleep(self.delay_s)
        self.busy_s += time.perf_counter() - began
        self.requests += 1
        self.under_way -= 1
        self.ends.append(time.time())
        return web.json_response(ANSWER)

    async def stats(self, request: web.Request) -> web.Response:
        """What was seen."""
        last = self.ends[-1] if self.ends else 0.0
        seen: dict[str, Any] = {
            "requests": self.requests,
            "bytes": self.bytes,
            "most": self.most,
            "first": self.first,
            "span_s": last - self.first,
            "second_half_s": last - self.ends[len(self.ends) // 2] if self.ends else 0.0,
            "mean": self.busy_s / ((last - self.first) or 1),
        }
        self.forget()
        return web.json_response(seen)


async def main(delay_s: float) -> None:
    """Serve until killed."""
    model = Model(delay_s)
    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/v1/chat/completions", model.answer)
    app.router.add_get("/stats", model.stats)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    addresses = runner.addresses
    print(addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))

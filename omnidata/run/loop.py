"""The event loop of a run, which may be interrupted."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end, also where an event loop runs already, as in a notebook.

    Raises:
        KeyboardInterrupt: on Ctrl-C, and on SIGTERM where nothing else handles it; the work was
            cancelled then and has ended.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        return _beside(work)
    try:
        return asyncio.run(_terminable(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _terminable(work: Coroutine[Any, Any, Result]) -> Result:
    """A machine that shuts down or a batch system asks by SIGTERM; it loses no more than Ctrl-C."""
    task = asyncio.current_task()
    in_main = threading.current_thread() is threading.main_thread()
    if task and in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with suppress(NotImplementedError):  # Windows
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


def _beside(work: Coroutine[Any, Any, Result]) -> Result:
    """In a thread of its own, which ends when this one is interrupted."""
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def begin() -> Result:
        task = asyncio.current_task()
        assert task
        started.set_result((asyncio.get_running_loop(), task))
        return await work

    done: Future[Result] = Future()

    def body() -> None:
        try:
            done.set_result(asyncio.run(begin()))
        except BaseException as error:  # for whoever waits
            done.set_exception(error)

    thread = threading.Thread(target=body, name="omnidata-run")
    try:
        thread.start()  # itself a place where an interruption may come
        return done.result()
    except KeyboardInterrupt:
        loop, task = started.result()
        with suppress(RuntimeError):  # it has just ended
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise

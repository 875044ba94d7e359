"""The event loop of runs, which may be interrupted."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Self, TypeVar

Result = TypeVar("Result")


class EventLoop:
    """Runs one coroutine after the other, also inside a running event loop such as a notebook's."""

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._runner.close)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine to its end.

        Raises:
            KeyboardInterrupt: on Ctrl-C, and on SIGTERM where nothing else handles it; the work was
                cancelled then and has ended.
        """
        try:
            return self._call(lambda: self._runner.run(_terminable(work)))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    def _call(self, function: Callable[[], Result]) -> Result:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return function()
        done: Future[Result] = Future()

        def body() -> None:
            try:
                done.set_result(function())
            except BaseException as error:  # raised by the thread that waits
                done.set_exception(error)

        thread = threading.Thread(target=body, name="omnidata-run")
        try:
            thread.start()  # itself a place where an interruption may come
            return done.result()
        except KeyboardInterrupt:
            with suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self._cancel)
            thread.join()
            raise

    def _cancel(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()


async def _terminable(work: Coroutine[Any, Any, Result]) -> Result:
    """Treat SIGTERM as Ctrl-C, so that nothing recorded is lost."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    in_main = threading.current_thread() is threading.main_thread()
    if not (task and in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL):
        return await work
    with suppress(NotImplementedError):  # Windows
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await work
    finally:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGTERM)

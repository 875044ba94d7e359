"""Media too large for a request: uploaded once in a run through Google's File API."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import Hashable
from datetime import UTC, datetime, timedelta

from google.genai.files import AsyncFiles
from google.genai.types import File, FileState, UploadFileConfig

from omnidata.adapters.capabilities import RenderedPart
from omnidata.errors import CallError

_FIRST_WAIT_S = 0.25
_LONGEST_WAIT_S = 4.0
_REMAINING = timedelta(hours=1)
_DELETIONS = 16


class Uploads:
    """The files of a run, by the hash of their content.

    An upload goes on when the call that started it is given up, so that the next attempt finds it
    further on. The service keeps files for 48 hours; one that is about to expire is sent again.

    Args:
        files: the File API of an open client.
    """

    def __init__(self, files: AsyncFiles) -> None:
        """Nothing is uploaded."""
        self._files = files
        self._tasks: dict[Hashable, asyncio.Task[File]] = {}
        self._names: list[str] = []

    async def uri(self, part: RenderedPart) -> str:
        """Where the service keeps the medium, once the model can read it.

        Raises:
            CallError: it cannot be uploaded, or the service cannot read it.
        """
        key = (part.sha256, part.mime)
        task = self._tasks.get(key)
        if task is None or _useless(task):
            task = self._tasks[key] = asyncio.create_task(self._upload(part))
            task.add_done_callback(_look_at)
        uri = (await asyncio.shield(task)).uri
        if not uri:
            raise CallError("the File API gave no address for an uploaded file")
        return uri

    async def _upload(self, part: RenderedPart) -> File:
        file = await self._files.upload(
            file=io.BytesIO(part.data), config=UploadFileConfig(mime_type=part.mime)
        )
        if not file.name:
            raise CallError("the File API gave no name to an uploaded file")
        self._names.append(file.name)
        wait = _FIRST_WAIT_S
        while file.state == FileState.PROCESSING:
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT_S)
            file = await self._files.get(name=file.name or self._names[-1])
        if file.state == FileState.FAILED:
            said = file.error.message if file.error else ""
            raise CallError(
                f"the File API cannot read the {part.role or part.kind}"
                + (f": {said}" if said else ""),
                expected=f"a file that Google's servers can decode as {part.mime}",
                transient=False,
            )
        return file

    async def close(self) -> None:
        """Delete what was uploaded; what cannot be deleted expires within 48 hours."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        slots = asyncio.Semaphore(_DELETIONS)
        await asyncio.gather(*(self._delete(name, slots) for name in self._names))

    async def _delete(self, name: str, slots: asyncio.Semaphore) -> None:
        async with slots:
            with contextlib.suppress(CallError):
                await self._files.delete(name=name)


def _useless(task: asyncio.Task[File]) -> bool:
    """Whether an upload came to nothing or its file is about to expire."""
    if not task.done():
        return False
    if task.cancelled() or task.exception():
        return True
    expires = task.result().expiration_time
    return expires is not None and expires < datetime.now(UTC) + _REMAINING


def _look_at(task: asyncio.Task[File]) -> None:
    """Retrieve the error, which asyncio would otherwise report when nobody waits any more."""
    if not task.cancelled():
        task.exception()

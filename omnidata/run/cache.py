"""Answers kept by content, for runs that ask what another run asked already.

One SQLite file in write-ahead mode, which several processes may use at a time on one machine; it
must not lie on a network file system. It holds answers under digests, and neither prompts nor keys.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec

from omnidata.errors import RunError
from omnidata.jsontext import decode, encode
from omnidata.types import Completion, Delivery, GenerationParams

KEPT: frozenset[Delivery] = frozenset({"ok", "truncated", "refused"})
"""Deliveries that are kept: the model's own. The others say nothing about the request."""

_BUSY_S = 60.0
_APPLICATION = 0x6F6D6E69  # "omni", in the header of the file
_VERSION = 1
_SCHEMA = "CREATE TABLE answers (key TEXT PRIMARY KEY, completion BLOB NOT NULL) WITHOUT ROWID"


def key(
    settings: Mapping[str, Any], params: GenerationParams, prepared_key: str, sample_id: str | None
) -> str:
    """Return the digest under which an answer is kept; equal requests have equal digests.

    Args:
        settings: all that the model's answers depend on, its name included; never a key.
        params: how it decodes.
        prepared_key: `Prepared.key`: the prompt as rendered, the media, the adapter's version.
        sample_id: the step; part of the digest unless the temperature is 0, so that draws for
            steps that look the same stay independent. None shares draws.

    Returns:
        SHA-256 in hexadecimal; empty, which is kept nowhere, if `prepared_key` is.

    Examples:
        >>> greedy, warm = GenerationParams(), GenerationParams(temperature=1.0)
        >>> key({}, greedy, "f00", "a/0") == key({}, greedy, "f00", "b/0")
        True
        >>> key({}, warm, "f00", "a/0") == key({}, warm, "f00", "b/0")
        False
    """
    if not prepared_key:
        return ""
    how = msgspec.to_builtins(params)
    for name in ("stop", "special_tokens"):  # answers were kept before there were any
        if not how[name]:
            del how[name]
    drawn = None if params.temperature == 0 else sample_id
    text = msgspec.json.encode(
        [_VERSION, dict(settings), how, prepared_key, drawn], order="deterministic"
    )
    return hashlib.sha256(text).hexdigest()


class ResponseCache:
    """A file of answers; threads and processes may share it.

    Args:
        path: the database; made if missing, with its folder.

    Raises:
        RunError: the file cannot be opened, is damaged, or is no cache.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._error(f"its folder cannot be made ({error.strerror})") from None
        with self._explain_errors():
            self._db = sqlite3.connect(
                path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def _prepare(self) -> None:
        with self._transaction():  # one process makes the table, the others wait
            if not self._number("SELECT count(*) FROM sqlite_master"):
                self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
                self._db.execute(f"PRAGMA user_version = {_VERSION}")
                self._db.execute(_SCHEMA)
            elif self._number("PRAGMA application_id") != _APPLICATION:
                raise self._error(
                    "the database is not a cache of omnidata", "choose another --cache"
                )
            elif self._number("PRAGMA user_version") != _VERSION:
                raise self._error("another version of omnidata made the cache")
        self._db.execute("PRAGMA journal_mode = WAL")
        # A killed process loses nothing; a power cut may lose the last answers, never the file.
        self._db.execute("PRAGMA synchronous = NORMAL")

    def _number(self, query: str) -> int:
        (number,) = self._db.execute(query).fetchone()
        return int(number)

    def get(self, key: str) -> Completion | None:
        """Return the answer kept under the digest, as one without cost; None if there is none.

        Its receipt says `"cached": true`; usage, latency and attempts are those of no request.

        Raises:
            RunError: the file is damaged, or another process holds it.
        """
        with self._lock, self._explain_errors():
            row = self._db.execute("SELECT completion FROM answers WHERE key = ?", [key]).fetchone()
        if row is None:
            return None
        try:
            kept = msgspec.convert(decode(row[0].decode()), Completion)
        except (ValueError, AttributeError, msgspec.ValidationError):
            raise self._error(f"the answer {key} cannot be read") from None
        return msgspec.structs.replace(
            kept, usage={}, latency_s=0.0, attempts=0, receipt={**kept.receipt, "cached": True}
        )

    def put_many(self, answers: Iterable[tuple[str, Completion]]) -> None:
        """Keep answers under their digests, in one transaction; the first under a digest stays.

        Failures, answers that came out of a cache and empty digests are passed over.

        Raises:
            RunError: the file is damaged, cannot grow, or another process holds it.
        """
        rows = [
            (key, encode(answer))
            for key, answer in answers
            if key and answer.delivery in KEPT and not answer.receipt.get("cached")
        ]
        if not rows:
            return
        with self._lock, self._explain_errors(), self._transaction():
            self._db.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorname", "")
            if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                held = f"other processes held the cache for {_BUSY_S:.0f} s"
                raise self._error(held, "try again, or choose another --cache") from None
            raise self._error(f"the cache cannot be used ({error})") from None

    def _error(self, what: str, remedy: str = "") -> RunError:
        shown = self.path.name
        return RunError(
            what,
            where=f"--cache {self.path}",
            expected="a cache file of omnidata, or a place to create one",
            remedy=remedy
            or f"remove {shown}, {shown}-wal and {shown}-shm, or give another "
            "--cache; run folders keep their answers",
        )

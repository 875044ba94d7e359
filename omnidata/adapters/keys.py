"""The secret that a server asks for: only a wire format sees it, nothing ever shows it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from omnidata.errors import CallError, UsageError

_SENDABLE = re.compile(r"[!-~]+")  # what an HTTP header takes; its error would quote the rest
_TELLING = 8  # characters; shorter ones are placeholders, and words that answers may hold
_LONGEST = 10_000
_HIDDEN = "[key]"


class Key:
    """A secret, or none.

    Attributes:
        value: for the wire only; empty if there is none.

    Examples:
        >>> key = Key("sk-0123456789")
        >>> key, key.redact("wrong key: sk-0123456789")
        (Key(set), 'wrong key: [key]')
        >>> Key()
        Key(none)
    """

    __slots__ = ("value",)

    def __init__(self, value: str = "") -> None:
        """Keep the secret."""
        self.value = value

    def __repr__(self) -> str:
        return "Key(set)" if self.value else "Key(none)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not written to files or sent to other processes")

    def __bool__(self) -> bool:
        return bool(self.value)

    @classmethod
    def find(cls, env: str | Sequence[str] = (), file: Path | None = None) -> Key:
        """The key of a file, else of the first environment variable that is set, else none.

        Args:
            env: names of variables.
            file: holds the key and nothing else.

        Raises:
            UsageError: the file cannot be read, or there is something else than a key; the message
                never quotes it.
        """
        if file is not None:
            return cls(_checked(_read(file), str(file)))
        for name in (env,) if isinstance(env, str) else env:
            if os.environ.get(name, "").strip():
                return cls(_checked(os.environ[name], f"${name}"))
        return cls()

    def redact(self, text: str) -> str:
        """The text with `[key]` in place of the secret, also as URLs and JSON quote it."""
        for form in self._forms():
            text = text.replace(form, _HIDDEN)
        return text

    def redact_bytes(self, body: bytes) -> bytes:
        """The same for a text that is not decoded yet."""
        for form in self._forms():
            body = body.replace(form.encode(), _HIDDEN.encode())
        return body

    def _forms(self) -> set[str]:
        """How a server may repeat the secret; none if it is a placeholder."""
        if len(self.value) < _TELLING:
            return set()
        in_json = json.dumps(self.value)[1:-1]
        in_url = quote(self.value, safe="")
        return {self.value, in_url, in_json, in_json.replace("/", r"\/")}

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Take the secret out of the text of any exception that passes, and of its causes."""
        try:
            yield
        except Exception as error:
            chain = list(_chain(error))
            for link in chain:
                self._clean(link)
            if any(self.redact(text) != text for link in chain for text in (str(link), repr(link))):
                raise CallError(f"{type(error).__name__}; its text held the key") from None
            raise

    def _clean(self, error: BaseException) -> None:
        error.args = tuple(self.redact(a) if isinstance(a, str) else a for a in error.args)
        for name, value in vars(error).items():
            if isinstance(value, str):
                setattr(error, name, self.redact(value))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        link = left.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            left += [link.__cause__, link.__context__]


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8-sig") as stream:  # some editors write a mark first
            return stream.read(_LONGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise UsageError(
            f"the key cannot be read: {reason}",
            where=str(file),
            expected="a file that holds the key and nothing else",
        ) from None


def _checked(text: str, where: str) -> str:
    key = text.strip()
    if len(key) <= _LONGEST and _SENDABLE.fullmatch(key):
        return key
    raise UsageError(
        "there is no key" if not key else "that is no key",
        where=where,
        expected="one word of printable ASCII characters and nothing else",
    )

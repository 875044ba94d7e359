"""Keys and addresses: what a server is reached with, and what must never be shown of it.

Only a wire format sees a key. Addresses are written into run folders, but for what looks like a
secret; they are checked before any library of a server's is loaded.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

from omnidata.errors import CallError, UsageError
from omnidata.files import SETTINGS, read_file
from omnidata.jsontext import decode_utf8

_SENDABLE = re.compile(r"[!-~]+")  # what an HTTP header takes; its error would quote the rest
_TELLING = 8  # characters; shorter ones are placeholders, and words that answers may hold
_LONGEST = 10_000
_LONGEST_QUOTE = 12  # characters for a letter: `&amp;#x0073;`
_SPELLED = 100  # letters of a secret that are looked for one by one
_HIDDEN = "[key]"
_HTML = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}


class Key:
    """A secret, or none.

    Args:
        value: the secret; empty if there is none.
        others: what else nothing may show, e.g. a secret in the server's address.

    Attributes:
        value: for the wire only.
        margin: bytes of the longest way in which a secret is quoted and found.

    Examples:
        >>> key = Key("sk-0123456789")
        >>> key, key.redact("wrong key: sk-0123456789")
        (Key(set), 'wrong key: [key]')
        >>> Key()
        Key(none)
    """

    __slots__ = ("_quoted", "_quoted_bytes", "margin", "value")

    def __init__(self, value: str = "", others: Sequence[str] = ()) -> None:
        self.value = value
        secrets = [secret for secret in (value, *others) if len(secret) >= _TELLING]
        pattern = "|".join(map(_pattern, secrets))
        self._quoted = re.compile(pattern) if pattern else None
        self._quoted_bytes = re.compile(pattern.encode()) if pattern else None
        self.margin = _LONGEST_QUOTE * max(map(len, secrets), default=0)

    def also(self, others: Sequence[str]) -> Key:
        """Return the same key, which hides other secrets as well."""
        return Key(self.value, others) if others else self

    def __repr__(self) -> str:
        return "Key(set)" if self.value else "Key(none)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not written to files or sent to other processes")

    def __bool__(self) -> bool:
        return bool(self.value)

    @classmethod
    def find(cls, env: str = "", file: Path | None = None) -> Key:
        """Return the key of a file, otherwise of an environment variable, otherwise none.

        Args:
            env: the name of the variable.
            file: holds only the key.

        Raises:
            UsageError: the file is unreadable, or the text is no key; the message never quotes it.
        """
        if file is not None:
            return cls(_check_key(_read(file), str(file)))
        value = os.environ.get(env, "")
        return cls(_check_key(value, f"${env}") if value.strip() else "")

    def redact(self, text: str) -> str:
        """Return the text with `[key]` for the secret, also as URLs, JSON and base64 quote it."""
        return self._quoted.sub(_HIDDEN, text) if self._quoted else text

    def redact_bytes(self, body: bytes) -> bytes:
        """Redact a text that is not decoded yet."""
        return self._quoted_bytes.sub(_HIDDEN.encode(), body) if self._quoted_bytes else body

    def redact_start(self, body: bytes, most: int) -> str:
        """Return the first bytes of a text that may have been cut off anywhere behind them.

        Args:
            body: as much of it as was read: of a longer one at least `most + self.margin` bytes.
            most: how many bytes are wanted.
        """
        text = self.redact_bytes(body)
        if len(body) > most:  # what the cut left of a secret is no secret that could be found
            text = text[: max(0, len(text) - self.margin)]
        return text[:most].decode(errors="replace")

    @contextmanager
    def hide_in_errors(self) -> Iterator[None]:
        """Take the secret out of the text of any exception that passes, and of its causes."""
        try:
            yield
        except Exception as error:
            for link in _chain(error):
                self._clean(link)
            if self._shows(error):
                raise CallError(f"{type(error).__name__}; its text held the key") from None
            if any(map(self._shows, _chain(error))):  # such as the headers of a request
                error.__cause__ = error.__context__ = None
            raise

    def _shows(self, error: BaseException) -> bool:
        return any(self.redact(text) != text for text in (str(error), repr(error)))

    def _clean(self, error: BaseException) -> None:
        error.args = tuple(self.redact(a) if isinstance(a, str) else a for a in error.args)
        for name, value in vars(error).items():
            if isinstance(value, str):
                setattr(error, name, self.redact(value))


def _pattern(secret: str) -> str:
    """Match a secret as it is, escaped once or twice, or in base64 at any of three alignments."""
    whole = sorted(set(_in_base64(secret.encode())))
    letters = "".join(map(_letter, secret[:_SPELLED]))
    if len(secret) > _SPELLED:  # so long a beginning is nobody else's: the rest of the word goes
        letters += r"""[^\s"'<>]*"""
    return "|".join([letters, *map(re.escape, whole)])


def _letter(letter: str) -> str:
    code = ord(letter)
    digits = "".join(f"[{digit}{digit.upper()}]" for digit in f"{code:02x}")
    # A backslash before a letter is an escape of something else: `\\n` is no "n".
    forms = [letter if letter.isalnum() else rf"\\{{0,3}}{re.escape(letter)}"]
    forms += [f"%(?:25)?{digits}", rf"\\{{1,3}}(?:u00|x){digits}"]
    forms.append(f"&(?:amp;)?#(?:0{{0,2}}{code}|[xX]0{{0,2}}{digits});")
    if name := _HTML.get(letter):
        forms.append(f"&(?:amp;)?{name};")
    return f"(?:{'|'.join(forms)})"


def _in_base64(secret: bytes) -> Iterator[str]:
    """Return what every base64 text that contains the secret contains."""
    for encode in (b64encode, urlsafe_b64encode):
        for before in range(3):
            whole = encode(bytes(before) + secret).decode()
            # The letters at both ends have bits of what stands beside the secret.
            begin = (8 * before + 5) // 6
            yield whole[begin : 8 * (before + len(secret)) // 6]


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
        return read_file(file, SETTINGS).decode("utf-8-sig")  # some editors write a mark first
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise UsageError(
            f"the key cannot be read: {reason}",
            where=str(file),
            expected="a file that holds the key and nothing else",
        ) from None


def _check_key(text: str, where: str) -> str:
    key = text.strip()
    if len(key) <= _LONGEST and _SENDABLE.fullmatch(key):
        return key
    raise UsageError(
        "there is no key" if not key else "that is no key",
        where=where,
        expected="one word of printable ASCII characters and nothing else",
    )


# Settings, in which users give what a server of their own wants beside its key.

_CREDENTIAL = re.compile(
    r"^(?:key|token|bearer|cookies?)$"
    r"|(?:api|access|auth|bearer|secret|private|refresh|subscription|session|github|hf|id)[-_ ]?"
    r"(?:key|token)$"
    r"|(?:secret|password|passwd|pwd|credentials?|authorization)$",
    re.IGNORECASE,
)
"""What the name of a secret ends with; `pad_token` and `max_tokens` are none."""


def without_credentials(settings: Any) -> Any:
    """Return a JSON value with `[key]` for the values of names like `api_key`, in JSON texts too.

    Examples:
        >>> without_credentials({"extra_body": '{"auth": {"api_key": "sk-1"}, "top_k": 1}'})
        {'extra_body': '{"auth": {"api_key": "[key]"}, "top_k": 1}'}
    """
    if isinstance(settings, Mapping):
        return {
            name: _HIDDEN if _is_credential(name, value) else without_credentials(value)
            for name, value in settings.items()
        }
    if isinstance(settings, list | tuple):
        return [without_credentials(value) for value in settings]
    if isinstance(settings, str) and settings.lstrip().startswith(("{", "[")):
        value = decode_utf8(settings.encode("utf-8", "replace"))
        hidden = without_credentials(value)
        return settings if hidden == value else json.dumps(hidden)
    return settings


def credentials_in(settings: Any) -> Iterator[str]:
    """Yield the values of names like `api_key` in a JSON value.

    Examples:
        >>> list(credentials_in({"auth": [{"api_key": "sk-1"}], "top_k": 1}))
        ['sk-1']
    """
    if isinstance(settings, Mapping):
        for name, value in settings.items():
            yield from _texts(value) if _is_credential(name, value) else credentials_in(value)
    elif isinstance(settings, list | tuple):
        for value in settings:
            yield from credentials_in(value)


def _is_credential(name: object, value: object) -> bool:
    held = isinstance(value, str | list | tuple | Mapping) and bool(value)
    return held and bool(_CREDENTIAL.search(str(name)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple | Mapping):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)


# Addresses.

_SECRET = re.compile(
    r"^(?:sk|pk|key|token|secret)[-_].{8}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=[a-z]*[0-9])(?=[0-9]*[a-z])[a-z0-9]{16}"
    r"|[a-z0-9]{32}",
    re.IGNORECASE,
)
"""What a key looks like: its usual beginnings, a UUID, letters among digits, a very long word."""


def check_address(url: str, where: str) -> str:
    """Return the address without the slash at its end.

    Raises:
        UsageError: it is no address of an HTTP server, or could hold a secret; a message never
            quotes what may be one.

    Examples:
        >>> check_address("http://localhost:8000/v1/", "--base-url")
        'http://localhost:8000/v1'
    """
    problem = ""
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            problem = "that is no address of an HTTP server"
        elif "@" in url:
            problem = "the address holds a user's name or password"
        elif parts.query or parts.fragment:
            problem = "the address holds a query or a fragment"
    except ValueError:
        problem = "that is no address of an HTTP server"
    if problem or not re.fullmatch(r"[!-~]+", url):
        raise UsageError(
            problem or "the address holds blanks or signs that no address has",
            where=where,
            expected="http://HOST:PORT/PATH or https://..., without user, password and query",
            remedy="give the key in the environment or with --key-file",
        )
    return url.rstrip("/")


def secrets_in(url: str) -> tuple[str, ...]:
    """Return the parts of an address's path that look like keys, as gateways have them there.

    Examples:
        >>> secrets_in("https://gateway/t/0f3a9c1b7d5e2468/v1/models/llama-3.1-70b-instruct")
        ('0f3a9c1b7d5e2468',)
    """
    return tuple(part for part in urlsplit(url).path.split("/") if _SECRET.search(unquote(part)))

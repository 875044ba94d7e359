"""Addresses of servers: they are written into run folders, but for what looks like a secret.

They are checked before any library of a server's is loaded.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from omnidata.errors import UsageError

OPENAI_URL = "https://api.openai.com/v1"

_SECRET = re.compile(
    r"^(?:sk|pk|key|token|secret)[-_].{8}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=[a-z]*[0-9])(?=[0-9]*[a-z])[a-z0-9]{16}"
    r"|[a-z0-9]{32}",
    re.IGNORECASE,
)
"""What a key looks like: its usual beginnings, a UUID, letters among digits, a very long word."""


def check_address(url: str, where: str) -> str:
    """The address without the slash at its end.

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
    """The parts of an address's path that look like keys, as gateways have them there.

    Examples:
        >>> secrets_in("https://gateway/t/0f3a9c1b7d5e2468/v1/models/llama-3.1-70b-instruct")
        ('0f3a9c1b7d5e2468',)
    """
    return tuple(part for part in urlsplit(url).path.split("/") if _SECRET.search(unquote(part)))


def is_openai(url: str) -> bool:
    """Whether the server is OpenAI's own, or its form on Azure."""
    host = urlsplit(url).hostname or ""
    return host == "api.openai.com" or host.endswith((".api.openai.com", ".openai.azure.com"))
